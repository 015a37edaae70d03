"""Analyses as one HTML file that needs nothing else: no network, no script, no font but the reader's own.

Everything a picture or a colour says stands beside it in words. Conversations beyond a limit are counted in the summary
and left out of the page, which says so and where the rest is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from empatheia.analysis import PARTS, Analysis
from empatheia.errors import DataError
from empatheia.reports.analysis_turns import by_turn, effects_of, label_bars, turn_html
from empatheia.reports.emotion_timeline import emotion_timeline
from empatheia.reports.page import check_place, html_page, safe, write_whole
from empatheia.text.readable import readable

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
_NOTHING = "<p>There is no conversation to show.</p>"


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
        title = f"Analysis of {n:,} conversation{'' if n == 1 else 's'}"
        source = f'<p class="source">{safe(self.source)}</p>' if self.source else ""
        body = "".join(self._conversation(i, record) for i, record in enumerate(self._records, 1))
        return html_page(
            title,
            f'{source}<p class="note">{safe(_ABOUT)}</p>',
            f"{self._summary()}{self._faulty()}{self._index()}"
            f'<div id="conversations">{body or _NOTHING}</div>\n{self._cut()}',
            style=Path(__file__).with_name("analysis_page.css").read_text(encoding="utf-8"),
            skip=("conversations", "Skip to the conversations"),
        )

    def write(self, path: str | Path) -> None:
        """Writes the page, whole or not at all.

        Raises:
            DataError: The folder does not exist, or the path is a folder.
        """
        check_place(Path(path))
        write_whole(Path(path), self.html())

    def _summary(self) -> str:
        n, total = self.n_conversations, sum(self._emotions.values())
        counts = f"{n:,} conversation{'' if n == 1 else 's'}, {self.n_turns:,} turn{'' if self.n_turns == 1 else 's'}"
        counts += f", {self.n_bad:,} row{'' if self.n_bad == 1 else 's'} that could not be used" if self.n_bad else ""
        feelings = ""
        if total:
            shares = {name: count / total for name, count in self._emotions.most_common(8)}
            note = f"strongest emotion of {total:,} speaker turn{'' if total == 1 else 's'}"
            feelings = f'<h3>What speakers feel</h3><p class="note">{note}</p>{label_bars(shares, 8)}'
        left, right = f"{feelings}{_legend(self._models)}", self._parts()
        return (
            f'<section aria-labelledby="summary"><h2 id="summary">Summary</h2><p>{counts}.</p>'
            f'<div class="columns"><div>{left}</div><div>{right}</div></div></section>\n'
        )

    def _parts(self) -> str:
        rows = []
        for part in PARTS:
            if part not in self._models and part not in self._missing:
                continue
            reasons = self._missing.get(part, Counter())
            told = [
                safe(reason) + (f" ({count:,} of {self.n_conversations:,})" if part in self._models else "")
                for reason, count in reasons.most_common(3)
            ]
            model = safe(self._models[part]) if part in self._models else "<strong>missing</strong>"
            note = f'<p class="note">{"<br>".join(told)}</p>' if told else ""
            rows.append(f'<tr><th scope="row">{part}</th><td>{QUESTIONS[part]}</td><td>{model}{note}</td></tr>')
        head = '<tr><th scope="col">part</th><th scope="col">question</th><th scope="col">model</th></tr>'
        table = f'<table class="parts"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'
        return f"<h3>What was asked</h3>{table}"

    def _faulty(self) -> str:
        if not self.n_bad:
            return ""
        items = "".join(f"<li>row {safe(row)}: {safe(why)}</li>" for row, why in self._faults)
        n_more = self.n_bad - len(self._faults)
        more = f"<p>{n_more:,} more are not listed.</p>" if n_more else ""
        return f'<section><h2>Rows that could not be used</h2><ul class="faults">{items}</ul>{more}</section>\n'

    def _index(self) -> str:
        if len(self._records) < 2:
            return ""
        rows = []
        for number, record in enumerate(self._records, 1):
            turns = record["turns"]
            first = next((turn["text"] for turn in turns if turn["role"] == "speaker"), turns[0]["text"])
            course = " → ".join(dict.fromkeys(str(labels["label"]) for labels in _ends(record.get("emotion", ()))))
            rows.append(
                f'<tr><th scope="row"><a href="#c{number}">{safe(_name(record, number))}</a></th>'
                f'<td class="count">{len(turns):,}</td><td>{safe(course)}</td>'
                f"<td>{safe(_shortened(first, 90))}</td></tr>"
            )
        head = "".join(f'<th scope="col">{name}</th>' for name in ("conversation", "turns", "feeling", "begins"))
        return (
            '<nav aria-labelledby="index"><h2 id="index">Conversations</h2>'
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></nav>\n"
        )

    def _cut(self) -> str:
        n_left = self.n_conversations - len(self._records)
        if not n_left:
            return ""
        return (
            f'<p class="cut" role="note">This page shows the first {len(self._records):,} of {self.n_conversations:,}'
            f" conversations; {n_left:,} more are counted in the summary only. {safe(self._where())}</p>\n"
        )

    def _where(self) -> str:
        if self.full_data:
            return f"All of them are in {self.full_data}."
        return "For all of them run the same command with --out FILE.jsonl."

    def _conversation(self, number: int, record: Mapping[str, Any]) -> str:
        key, turns = f"c{number}", record["turns"]
        shown = turns[: len(turns) - record["n_hidden"]]
        found = {part: by_turn(record.get(part, ()), "target" if part == "causes" else "turn") for part in PARTS}
        effects = effects_of(note for note in record.get("causes", ()) if note["target"] < len(shown))
        items = "".join(
            turn_html(
                turn,
                index,
                key,
                {part: records[index] for part, records in found.items() if index in records},
                effects.get(index, ([], [])),
                is_open=len(shown) < LONG,
            )
            for index, turn in enumerate(shown)
        )
        shown_emotions = [labels for labels in record.get("emotion", ()) if labels["turn"] < len(shown)]
        timeline = emotion_timeline(shown_emotions, key)
        chart = f'<div class="chart" tabindex="0">{timeline}</div>' if timeline else ""
        hidden = ""
        if record["n_hidden"]:
            hidden = (
                f'<p class="cut" role="note">The first {len(shown):,} of {len(turns):,} turns are shown.'
                f" {safe(self._where())}</p>"
            )
        return (
            f'<section class="conversation" id="{key}" aria-labelledby="{key}-h">'
            f'<h2 id="{key}-h">{safe(_name(record, number))}</h2>'
            f'{_doubts(record)}{chart}{_jumps(key, len(shown))}<ol class="turns">{items}</ol>{hidden}</section>\n'
        )


def _doubts(record: Mapping[str, Any]) -> str:
    """What is doubtful, and what could not be asked of this conversation."""
    notes = [*record["uncertain"]]
    notes += [f"{part}: {why}" for part, why in record["missing"].items() if part in record["models"]]
    doubts = "".join(f"<li>{safe(note)}</li>" for note in notes)
    return f'<ul class="doubts">{doubts}</ul>' if doubts else ""


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


def _jumps(key: str, n_turns: int) -> str:
    """Links into a long conversation."""
    if n_turns < LONG:
        return ""
    links = " ".join(f'<a href="#{key}-t{number}">{number}</a>' for number in range(1, n_turns + 1, JUMP))
    return f'<p class="jumps">Go to turn {links}</p>'


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


def _legend(models: Mapping[str, str]) -> str:
    lines = {
        "emotion": "timeline: the line is the share of pleasant emotions; below, a row is an emotion,"
        " stronger = more probable; a turn's strongest is framed or underlined",
        "words": '<mark class="w4">word</mark> <mark class="w2">word</mark> carries the emotion; stronger = more',
        "causes": '<span class="cause">phrase</span><sup>3</sup> caused the feeling in turn 3',
        "mechanisms": '<span class="ground">phrase</span> shows empathy',
    }
    items = "".join(f"<li>{line}</li>" for part, line in lines.items() if part in models)
    return f'<h3>How to read it</h3><ul class="legend">{items}</ul>' if items else ""
