"""Replies as the repositories of MoEL, MIME, EmpDG, KEMP and CEM write them: blocks of ``label:text`` lines.

MoEL: ``Emotion``, ``Context``, a line for each system, ``ref``. MIME: ``emotion`` with the predicted one beside it,
``Context``, ``Topk``, ``Beam``, ``Greedy``, ``Ref``. EmpDG and KEMP: ``Pred`` (EmpDG's MoEL baseline: ``Greedy``)
and what they were given besides. CEM: ``Pred Emotions`` and its inferences. MIME and CEM begin with their scores.
EmpDG's analysis also reads one JSON object of parallel lists.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from empatheia.errors import DataError
from empatheia.reading import Problem, parse_json, report
from empatheia.replies.replies import ReplyFile, SystemReply, file_of, numbered

_RULE = re.compile(r"-{5,}")
_RULE_OR_NUMBER = re.compile(r"-{5,}|\d{1,6}")  # EmpDG's baselines print a bare number before each item
KNOWLEDGE = re.compile(r"x_?(?:intent|need|want|effect|react)", re.IGNORECASE)  # CEM prints its inferences
_DECODED = ("Pred", "Greedy", "Beam", "Topk")


@dataclass(frozen=True)
class _Blocks:
    """How a repository writes an item: an emotion line, then one line for each of the others, in any order."""

    reference: str
    systems: tuple[str, ...] | None  # None: whatever else the first block names
    others: tuple[str, ...] = ()  # read over
    predicted: str = ""
    strips_letters: bool = False  # what ``as_released`` repeats
    between: re.Pattern[str] = _RULE  # a line that may stand between items

    def label_of(self, line: str) -> str | None:
        """The label a line begins with, as the format spells it; None if it has none of this format."""
        label, colon, _ = line.partition(":")
        label = label.strip().lstrip("\ufeff")
        if not colon:
            return None
        if label.lower() == "emotion":
            return "Emotion"
        if label and label in ("Context", self.reference, self.predicted, *self.others, *(self.systems or ())):
            return label
        if self.systems is None and re.fullmatch(r"\S.{0,39}", label):
            return label
        return label if self.predicted and KNOWLEDGE.fullmatch(label) else None


LAYOUTS = {
    "moel": _Blocks("ref", None),
    "mime": _Blocks("Ref", ("Topk", "Beam", "Greedy")),
    "empdg": _Blocks("Ref", _DECODED, ("Emotion_context", "Feedback"), "", True, _RULE_OR_NUMBER),
    "kemp": _Blocks("Ref", _DECODED, ("Concept",), strips_letters=True),
    "cem": _Blocks("Ref", _DECODED, predicted="Pred Emotions", strips_letters=True),
}


@dataclass
class _Block:
    """The lines of one item: label to line number and text behind the label, and the whole line."""

    line: int
    fields: dict[str, tuple[int, str, str]] = field(default_factory=dict)


class _BlockReader:
    """Reads one of the five block formats; see :func:`read_replies` for what it raises."""

    def __init__(self, name: str, path: Path, as_released: bool) -> None:
        self.name, self.path, self.layout = name, path, LAYOUTS[name]
        self.strips_letters = as_released and self.layout.strips_letters
        self.problems: list[Problem] = []
        self.reported: dict[str, float] = {}
        self.labels: tuple[str, ...] = ()  # of the first block; the others must have the same
        self.replies: dict[str, list[SystemReply]] = {}

    def read(self, text: str) -> ReplyFile:
        """All blocks of a file's text."""
        for block in self._blocks(text):
            self._take(block)
        if not self.replies and not self.problems:
            self._fault(0, f"holds no item of the format {self.name}; an item begins with a line 'Emotion:...'")
        report(self.problems, strict=True)
        return file_of(self.path, self.name, self.replies, self.reported)

    def _fault(self, line: int, reason: str) -> None:
        self.problems.append(Problem(str(self.path), line, reason + "."))

    def _blocks(self, text: str) -> Iterator[_Block]:
        block: _Block | None = None
        header: list[str] | None = None
        for number, line in numbered(text):
            if not line.strip() or self.layout.between.fullmatch(line.strip()):
                continue
            if block is None and line.startswith("###"):
                continue
            if block is None and line.startswith("EVAL\t"):
                header = line.split("\t")
                continue
            if header is not None:
                self._take_header(number, header, line.split("\t"))
                header = None
                continue
            label = self.layout.label_of(line)
            if label == "Emotion":
                if block is not None:
                    yield block
                block = _Block(number)
            if label is None or block is None:
                self._fault_of_label(number, line, label)
            elif label in block.fields:
                first = block.fields[label][0]
                self._fault(
                    number,
                    f"a second {label!r} in the item that begins at line {block.line} (the first is line {first});"
                    " the 'Emotion:' line of the next item may be missing",
                )
            else:
                block.fields[label] = (number, line.partition(":")[2].strip(), line)
        if block is not None:
            yield block

    def _fault_of_label(self, number: int, line: str, label: str | None) -> None:
        """A line without a label, or with one before the first item."""
        known = self.layout.systems or ("a system's name",)
        accepted = ", ".join(dict.fromkeys(["Emotion", "Context", self.layout.reference, *known]))
        where = "begins with none of the labels" if label is None else "stands before the first 'Emotion:'"
        self._fault(number, f"{line[:60]!r} {where} of {self.name}; accepted: {accepted}, each with a colon")

    def _take_header(self, line: int, names: list[str], values: list[str]) -> None:
        """The scores MIME and CEM print first; CEM prints four numbers under names that do not fit them."""
        if _number(values[0]) is not None and len(values) == 4:
            names = ["Loss", "PPL", "Emotion loss", "Accuracy"]
        for name, value in zip(names, values, strict=False):
            if name == "EVAL":
                continue
            number = _number(value)
            if number is None:
                self._fault(line, f"{value!r} under {name!r} is no number")
            else:
                self.reported[name.strip()] = number

    def _take(self, block: _Block) -> None:
        layout = self.layout
        skipped = {"Emotion", "Context", layout.reference, layout.predicted, *layout.others}
        found = [label for label in block.fields if label not in skipped and not KNOWLEDGE.fullmatch(label)]
        if not self.labels:
            self.labels = tuple(found)
            if not found:
                self._fault(block.line, "the first item holds no system's reply")
        last = max(number for number, _, _ in block.fields.values())
        needed = {layout.reference, *self.labels}
        if missing := sorted(needed - set(block.fields)):
            self._fault(
                block.line,
                f"the item at lines {block.line} to {last} has no {', '.join(map(repr, missing))};"
                " the file may be truncated",
            )
            return
        if extra := [label for label in found if label not in self.labels]:
            number = block.fields[extra[0]][0]
            self._fault(number, f"{extra[0]!r} is none of the systems of the first item ({', '.join(self.labels)})")
            return
        emotion, predicted = self._emotions(block)
        reference = self._text(block, layout.reference)
        context = self._context(block)
        for system in self.labels:
            reply = SystemReply(system, self._text(block, system), reference, context, emotion, predicted, block.line)
            self.replies.setdefault(system, []).append(reply)

    def _text(self, block: _Block, label: str) -> str:
        _, text, line = block.fields[label]
        return line.lstrip(label + ":").strip() if self.strips_letters else text

    def _context(self, block: _Block) -> tuple[str, ...]:
        number, text, _ = block.fields.get("Context", (0, "[]", ""))
        try:
            turns = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            turns = None
        if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
            self._fault(number, f"the context {text[:40]!r} is no printed list of turns, e.g. ['i passed !']")
            return ()
        return tuple(turn.strip() for turn in turns)

    def _emotions(self, block: _Block) -> tuple[str | None, tuple[str, ...]]:
        gold, *rest = block.fields["Emotion"][1].split("\t")  # MIME: gold, vader-score, predicted_emotion
        named = {key.strip(): value.strip() for key, _, value in (part.partition(":") for part in rest)}
        guesses = block.fields.get(self.layout.predicted, (0, named.get("predicted_emotion", ""), ""))[1]
        predicted = tuple(guess.strip().lower() for guess in guesses.split(",") if guess.strip())
        return gold.strip().lower() or None, predicted


def read_blocks(name: str, path: Path, text: str, as_released: bool) -> ReplyFile:
    """Reads one of the five formats, a key of ``LAYOUTS``.

    Raises:
        DataError: With the line of the first fault and the number of the others.
    """
    if name == "empdg" and text.lstrip("\ufeff \n").startswith("{"):
        return _read_parallel_lists(path, text)
    return _BlockReader(name, path, as_released).read(text)


def is_parallel_lists(line: str) -> bool:
    """Whether a JSON object holds lists, by the beginnings of two of them; it may be one very long line."""
    return (
        re.match(r"\ufeff?\{\s*\"[^\"]*\"\s*:\s*\[", line) is not None
        and re.search(r'"ref"\s*:\s*\[', line) is not None
    )


def _read_parallel_lists(path: Path, text: str) -> ReplyFile:
    """EmpDG's ``models_result.json``: system to its replies, and ``ref`` to the gold replies."""
    try:
        lists = parse_json(text.lstrip("\ufeff"))
    except ValueError as error:
        line = getattr(error, "lineno", 0)
        raise DataError(f"{path}:{line}: not valid JSON: {error}. The file may be truncated.") from error
    if not isinstance(lists, dict) or "ref" not in lists or len(lists) < 2:
        raise DataError(f"{path}: not an object of lists with 'ref' and at least one system.")
    for name, texts in lists.items():
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            raise DataError(f"{path}: {name!r} is not a list of at least one string.")
        if len(texts) != len(lists["ref"]):
            raise DataError(f"{path}: {name!r} has {len(texts):,} replies, 'ref' has {len(lists['ref']):,}.")
    replies = {
        name: [
            SystemReply(name, reply.strip(), reference.strip(), line=i)
            for i, (reply, reference) in enumerate(zip(texts, lists["ref"], strict=True), start=1)
        ]
        for name, texts in lists.items()
        if name != "ref"
    }
    return file_of(path, "empdg", replies, {}, ("the file has no lines: items are numbered from 1",))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
