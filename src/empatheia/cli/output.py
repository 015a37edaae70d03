"""What commands print: emotion bars, cause words marked in the text, notes on doubtful input.

On a terminal colours and underlines (NO_COLOR drops the colours); elsewhere plain text, with ``[brackets]``
round cause words and ASCII bars, so that pipes and logs stay readable.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import IO, cast

from empatheia.files.visible import json_line, visible, visible_lines
from empatheia.records.analysis import Analysis, TurnAnalysis
from empatheia.records.dialogue import Span, Turn
from empatheia.records.reply import Reply

Segment = tuple[str, str]  # text and its rich style
Line = list[Segment]

LABEL_WIDTH = 10
BAR_WIDTH = 24
MAX_SHOWN_CHARACTERS = 1200
NO_EMOTION = "(this system names no emotion)"
_CAUSE = "bold underline yellow"


def print_json(record: object, stream: IO[str] | None = None) -> None:
    """Prints :func:`json_line`."""
    stream = cast("IO[str]", stream or sys.stdout)
    stream.write(json_line(record) + "\n")


def show(text: str) -> None:
    """Lines on stdout: the result of a command."""
    sys.stdout.write(visible_lines(text) + "\n")


def show_piece(text: str, keeps_lines: bool = False) -> None:
    """A piece of a text on stdout, at once; in one line unless its own are kept."""
    sys.stdout.write(visible_lines(text) if keeps_lines else visible(text))
    sys.stdout.flush()


def print_lines(lines: Iterable[Line], stream: IO[str] | None = None) -> None:
    """Prints styled lines; without a terminal the styles are dropped."""
    stream = cast("IO[str]", stream or sys.stdout)
    lines = ([(visible(text), style) for text, style in line] for line in lines)
    if not stream.isatty():
        for line in lines:
            stream.write("".join(text for text, _ in line).rstrip() + "\n")
        stream.flush()
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream, highlight=False)
    for line in lines:
        if line and len(line[0][0]) == LABEL_WIDTH:  # what is wrapped stays right of the label
            grid = Table.grid()
            grid.add_column(width=LABEL_WIDTH)
            grid.add_row(Text(*line[0]), Text.assemble(*line[1:]))
            console.print(grid)
        else:
            console.print(Text.assemble(*line))


def say(message: str) -> None:
    """A line for the person, on stderr."""
    sys.stderr.write(visible_lines(message) + "\n")
    sys.stderr.flush()


def perceived_lines(
    analysis: Analysis, top: int = 5, is_plain: bool | None = None, last_turns: int | None = None
) -> list[Line]:
    """The conversation with its cause words marked, the strongest emotions as bars, the causes, and doubts.

    Args:
        analysis: What to show.
        top: How many emotions.
        is_plain: Brackets and ASCII in place of styles; None = unless stdout is a terminal.
        last_turns: Repeat only so many turns of the conversation; None = all.
    """
    plain = not sys.stdout.isatty() if is_plain is None else is_plain
    newest, turns = analysis.newest, analysis.dialogue.turns
    lines: list[Line] = []
    first = 0 if last_turns is None else max(0, len(turns) - last_turns)
    for index, turn in enumerate(turns[first:], first):
        spans = [span for span in newest.causes if span.turn == index]
        lines.append([_label(turn.role), *marked_turn(turn, spans, plain)])
    if top:
        lines += _feelings(newest, top, plain)
    for place, span in enumerate(newest.causes[:5]):
        score = "" if span.score is None else f" ({span.score:.2f})"
        text = shortened(visible(span.of(turns)), 100)
        lines.append([_label("because" if place == 0 else ""), (text, "yellow"), (score, "dim")])
    lines += [[_label("uncertain"), (reason, "magenta")] for reason in analysis.unsure]
    return lines


def _feelings(one: TurnAnalysis, top: int, is_plain: bool) -> list[Line]:
    """The strongest emotions as bars, or that none is named, and the stronger side."""
    lines: list[Line] = []
    if one.emotion is not None:
        ranked = sorted(one.emotions.items(), key=lambda item: -item[1])[:top]
        for place, (name, probability) in enumerate(ranked):
            lines.append([_label("feels" if place == 0 else ""), *_bar(name, probability, is_plain)])
    else:
        lines.append(labelled("feels", NO_EMOTION))
    if one.side is not None:
        lines.append([_label("side"), (f"{one.side.label:<13}", "bold"), (f"{one.sides[one.side.label]:.1%}", "")])
    return lines


def reply_lines(reply: Reply) -> list[Line]:
    """The answer itself, with its own lines."""
    first, *others = visible_lines(reply.text).split("\n")
    return [[_label("listener"), (first, "bold green")], *([(line, "bold green")] for line in others)]


def row_line(number: int, analysis: Analysis) -> Line:
    """One row of a file: number, emotion, probability, last turn with its cause words marked."""
    plain, newest = not sys.stdout.isatty(), analysis.newest
    last = len(analysis.dialogue.turns) - 1
    spans = [span for span in newest.causes if span.turn == last]
    name = max(newest.emotions, key=lambda emotion: newest.emotions[emotion])
    return [
        (f"{number:>7}  ", "dim"),
        (f"{name:<12} ", "bold"),
        (f"{newest.emotions[name]:.2f}  ", ""),
        *marked_turn(analysis.dialogue.turns[last], spans, plain),
        *([("  (uncertain: " + "; ".join(analysis.unsure) + ")", "magenta")] if analysis.unsure else []),
    ]


def marked_turn(turn: Turn, spans: Sequence[Span], is_plain: bool) -> Line:
    """A turn's text with its cause spans marked; long turns are shown in part."""
    text = visible(turn.text)
    segments: Line = []
    position = 0
    end = min(len(text), MAX_SHOWN_CHARACTERS)
    for span in sorted(spans, key=lambda span: span.start):
        if span.start < position or span.end > end:
            continue
        cause = text[span.start : span.end]
        segments += [(text[position : span.start], ""), (f"[{cause}]" if is_plain else cause, _CAUSE)]
        position = span.end
    segments.append((text[position:end], ""))
    if end < len(text):
        segments.append((f" ... ({len(text):,} characters)", "dim"))
    return segments


def shortened(text: str, width: int) -> str:
    """The text, or its start and ``...`` when it is longer than ``width``."""
    return text if len(text) <= width else text[: width - 3] + "..."


def labelled(name: str, text: str) -> Line:
    """A line with a label in front, empty for a line that goes on."""
    return [_label(name), (text, "")]


def listed(name: str, texts: Iterable[str]) -> list[Line]:
    """A line each, the label in front of the first."""
    return [labelled("" if place else name, text) for place, text in enumerate(texts)]


def aligned(rows: Sequence[Sequence[str]], right: Container[int]) -> Iterator[str]:
    """Rows of a table with columns of even width.

    Args:
        rows: Of as many cells each.
        right: Places of the columns that stand to the right, as numbers do.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        yield "  ".join(cells).rstrip()


def _label(name: str) -> Segment:
    return (f"{name:<{LABEL_WIDTH}}", "dim")


def _bar(name: str, probability: float, is_plain: bool) -> Line:
    filled = round(probability * BAR_WIDTH)
    full, empty = ("#", ".") if is_plain else ("█", "░")
    return [
        (f"{name:<13}", "bold"),
        (full * filled, "cyan"),
        (empty * (BAR_WIDTH - filled), "dim"),
        (f" {probability:6.1%}", ""),
    ]
