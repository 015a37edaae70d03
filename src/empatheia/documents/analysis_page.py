"""Analyses as one HTML file that needs nothing else: no network, no script, no font but the reader's own.

Everything a picture or a colour says stands beside it in words. Conversations beyond a limit are counted in the summary
and left out of the page, which says so and where the rest is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from empatheia.documents.analysis_turns import by_turn, effects_of, label_bars, turn_item
from empatheia.documents.document import Content, Marked, element
from empatheia.documents.emotion_timeline import emotion_timeline
from empatheia.documents.html import render
from empatheia.errors import DataError
from empatheia.records.analysis import PARTS, Analysis
from empatheia.text.readable import readable
from empatheia.writing import check_place, write_whole

MAX_CONVERSATIONS = 50
MAX_TURNS = 1000
MAX_FAULTS = 20
LONG = 60
"""Shown turns from which a conversation gets links into its middle, and inferences that unfold when asked."""
JUMP = 25
"""Turns between two of these links."""
QUESTIONS = {
    "emotion": "what the speaker feels",
    "intent": "what each turn expresses or intends",
    "causes": "which turns and phrases caused the feeling",
    "words": "which words carry it",
    "mechanisms": "how empathic the replies are",
    "inferences": "what is probably true besides",
    "reaction": "which kind of reply would fit next",
}
_ABOUT = (
    "Probabilities are the models' own and can be wrong. This is no diagnosis; look at the conversation itself before"
    " you act on a number."
)
_LEGEND: Mapping[str, Content] = {
    "emotion": "timeline: the line is the share of pleasant emotions; below, a row is an emotion,"
    " stronger = more probable; a turn's strongest is framed or underlined",
    "words": (
        *(element("mark", "word", class_="w4"), " ", element("mark", "word", class_="w2")),
        " carries the emotion; stronger = more",
    ),
    "causes": (element("span", "phrase", class_="cause"), element("sup", "3"), " caused the feeling in turn 3"),
    "mechanisms": (element("span", "phrase", class_="ground"), " shows empathy"),
}


class Report:
    """Collects analyses and writes the page; memory is bounded by the limits, whatever is added.

    Args:
        source: What was analysed, for the heading.
        full_data: Where everything is, told when the page leaves something out.
        max_conversations: Most conversations in the page.
        max_turns: Most turns in the page, of all conversations together.

    Raises:
        DataError: A limit is below 1.
    """

    def __init__(
        self,
        source: str = "",
        full_data: str = "",
        max_conversations: int = MAX_CONVERSATIONS,
        max_turns: int = MAX_TURNS,
    ) -> None:
        for name, value in (("max_conversations", max_conversations), ("max_turns", max_turns)):
            if value < 1:
                raise DataError(f"{name} is {value}; accepted: 1 or more.")
        self.source = source
        self.full_data = full_data
        self.max_conversations = max_conversations
        self.max_turns = max_turns
        self.n_conversations = 0
        self.n_turns = 0
        self.n_bad = 0
        self._n_shown_turns = 0
        self._records: list[dict[str, Any]] = []
        self._faults: list[tuple[str, str]] = []
        self._emotions: Counter[str] = Counter()
        self._models: dict[str, str] = {}
        self._missing: dict[str, Counter[str]] = {}

    def add(self, record: Analysis | Mapping[str, object]) -> None:
        """Adds one analysis, its :meth:`Analysis.to_dict`, or a bad row (``row`` and ``error``)."""
        plain: dict[str, Any] = record.to_dict() if isinstance(record, Analysis) else dict(record)
        if "error" in plain:
            self.n_bad += 1
            if len(self._faults) < MAX_FAULTS:
                self._faults.append((str(plain.get("row", "?")), str(plain["error"])))
            return
        self.n_conversations += 1
        self.n_turns += len(plain["turns"])
        self._emotions.update(str(labels["label"]) for labels in plain.get("emotion", ()))
        self._models.update(plain["models"])
        for part, reason in plain["missing"].items():
            self._missing.setdefault(part, Counter())[str(reason)] += 1
        if len(self._records) < self.max_conversations and self._n_shown_turns < self.max_turns:
            plain["n_hidden"] = max(0, len(plain["turns"]) - (self.max_turns - self._n_shown_turns))
            self._n_shown_turns += len(plain["turns"]) - plain["n_hidden"]
            self._records.append(plain)

    def html(self) -> str:
        """The whole page."""
        n = self.n_conversations
        here = Path(__file__)
        return render(
            here.with_suffix(".html"),
            f"Analysis of {n:,} conversation{'' if n == 1 else 's'}",
            here.with_suffix(".css").read_text(encoding="utf-8"),
            skip=("conversations", "Skip to the conversations"),
            about=_ABOUT,
            report=self,
            feelings=self._feelings(),
            legend=[line for part, line in _LEGEND.items() if part in self._models],
            parts=[*self._parts()],
            faults=self._faults,
            index=[*self._index()],
            conversations=[self._conversation(i, record) for i, record in enumerate(self._records, 1)],
            where=f"All of them are in {self.full_data}."
            if self.full_data
            else "For all of them run the same command with --out FILE.jsonl.",
        )

    def write(self, path: str | Path) -> None:
        """Writes the page, whole or not at all.

        Raises:
            DataError: The folder does not exist, or the path is a folder.
        """
        check_place(Path(path))
        write_whole(Path(path), self.html())

    def _feelings(self) -> tuple[int, Marked] | None:
        """How many speaker turns have an emotion, and the most frequent ones."""
        total = sum(self._emotions.values())
        shares = {name: count / total for name, count in self._emotions.most_common(8)}
        return (total, label_bars(shares, 8)) if total else None

    def _parts(self) -> Iterator[tuple[str, str, str | None, list[str]]]:
        """Each part that was asked: its question, its model if it has one, and what it lacks."""
        for part in PARTS:
            if part not in self._models and part not in self._missing:
                continue
            reasons = self._missing.get(part, Counter())
            told = [
                reason + (f" ({count:,} of {self.n_conversations:,})" if part in self._models else "")
                for reason, count in reasons.most_common(3)
            ]
            yield part, QUESTIONS[part], self._models.get(part), told

    def _index(self) -> Iterator[tuple[int, str, int, str, str]]:
        """Number, name, turns, course of feeling and first words of each conversation, where there are several."""
        for number, record in enumerate(self._records if len(self._records) > 1 else (), 1):
            turns = record["turns"]
            first = next((turn["text"] for turn in turns if turn["role"] == "speaker"), turns[0]["text"])
            course = " → ".join(dict.fromkeys(str(labels["label"]) for labels in _ends(record.get("emotion", ()))))
            yield number, _name(record, number), len(turns), course, _shortened(first, 90)

    def _conversation(self, number: int, record: Mapping[str, Any]) -> dict[str, Any]:
        """What the template shows of a conversation."""
        key, turns = f"c{number}", record["turns"]
        shown = turns[: len(turns) - record["n_hidden"]]
        found = {part: by_turn(record.get(part, ()), "target" if part == "causes" else "turn") for part in PARTS}
        effects = effects_of(note for note in record.get("causes", ()) if note["target"] < len(shown))
        shown_emotions = [labels for labels in record.get("emotion", ()) if labels["turn"] < len(shown)]
        return {
            "key": key,
            "name": _name(record, number),
            "doubts": _doubts(record),
            "timeline": emotion_timeline(shown_emotions, key),
            "jumps": range(1, len(shown) + 1, JUMP) if len(shown) >= LONG else (),
            "n_shown": len(shown),
            "n_turns": len(turns),
            "turns": [
                turn_item(
                    turn,
                    index,
                    key,
                    {part: records[index] for part, records in found.items() if index in records},
                    effects.get(index, ([], [])),
                    is_open=len(shown) < LONG,
                )
                for index, turn in enumerate(shown)
            ],
        }


def _doubts(record: Mapping[str, Any]) -> list[str]:
    """What is doubtful, and what could not be asked of this conversation."""
    missing = (f"{part}: {why}" for part, why in record["missing"].items() if part in record["models"])
    return [*record["uncertain"], *missing]


def write_report(path: str | Path, analyses: Iterable[Analysis | Mapping[str, object]], **options: Any) -> None:
    """Writes a page of analyses.

    Args:
        path: Of the HTML file.
        analyses: Analyses, or their ``to_dict``.
        **options: Of :class:`Report`.

    Raises:
        DataError: The folder does not exist, or a limit is below 1.
    """
    report = Report(**options)
    for analysis in analyses:
        report.add(analysis)
    report.write(path)


def _name(record: Mapping[str, Any], number: int) -> str:
    identity = readable(str(record.get("id") or "")).strip()
    return (
        _shortened(identity, 60)
        if identity
        else f"Row {record['row']}"
        if "row" in record
        else f"Conversation {number}"
    )


def _ends(records: Any) -> list[Any]:
    """First, middle and last of the records."""
    return [records[i] for i in sorted({0, len(records) // 2, len(records) - 1})] if records else []


def _shortened(text: str, width: int) -> str:
    plain = " ".join(readable(text).split())
    return plain if len(plain) <= width else plain[: width - 1].rstrip() + "…"
