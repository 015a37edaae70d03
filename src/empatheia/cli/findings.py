"""How an analysis is shown on a terminal, and as rows of a table."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from empatheia.cli.output import LABEL_WIDTH, Line, Segment, marked_turn, shortened, visible
from empatheia.files.result_table import side_of
from empatheia.records.analysis import LEVELS, Analysis, Inference, Labels, TurnAnalysis
from empatheia.records.dialogue import Span, Turn, strongest
from empatheia.taxonomy import MECHANISMS

TABLE_COLUMNS = (
    "row",
    "id",
    "turn",
    "role",
    "text",
    "emotion",
    "emotion_probability",
    "side",
    "intent",
    "intent_probability",
    "cause_turns",
    "cause_spans",
    "words",
    *(name.replace(" ", "_") for name in MECHANISMS),
    "inferences",
    "reaction",
    "reaction_probability",
    "uncertain",
    "missing",
    "error",
)
"""One row a turn; turns are counted from 1, as ``cause_turns`` does."""
TOP_LABELS = 3
TOP_WORDS = 3
TOP_TAILS = 2


def analysis_lines(analysis: Analysis, is_plain: bool | None = None) -> list[Line]:
    """A conversation turn by turn with what was found, then what is doubtful or could not be asked of it.

    Parts without a model are not repeated for each conversation.

    Args:
        analysis: What to show.
        is_plain: Brackets in place of styles; None = unless stdout is a terminal.
    """
    plain = not sys.stdout.isatty() if is_plain is None else is_plain
    turns = analysis.dialogue.turns
    found = {one.turn: one for one in analysis.turns}
    causes = [span for one in analysis.turns for span in one.causes]
    lines: list[Line] = []
    for index, turn in enumerate(turns):
        spans = _apart([span for span in causes if span.turn == index])
        lines.append([_label(turn.role), *marked_turn(turn, spans, plain)])
        lines += _about(found[index], turns) if index in found else ()
    lines += [[_label("uncertain"), (visible(reason), "magenta")] for reason in analysis.unsure]
    unasked = [(part, why) for part, why in analysis.missing.items() if part in analysis.by]
    lines += [[_label("nothing"), (f"{part}: {visible(why)}", "magenta")] for part, why in unasked]
    return lines


def _about(one: TurnAnalysis, turns: Sequence[Turn]) -> Iterable[Line]:
    """Everything that was said of a turn, part by part."""
    yield from _labels("feels", "bold", one.emotion)
    if one.side is not None:
        yield [_label("side"), (strongest(one.side.probabilities, 1), "bold")]
    yield from _labels("intent", "bold", one.intent)
    if (note := one.evidence) is not None:
        causes = "; ".join(_cause(turn, note.spans, note.probabilities, turns) for turn in note.turns)
        yield [_label("because"), (causes or "no cause found up to here", "yellow" if causes else "dim")]
    if one.scores is not None:
        words = [f"{visible(word.of(turns))} {word.score or 0.0:.2f}" for word in one.scores.top(TOP_WORDS)]
        yield [_label("words"), (", ".join(words), "yellow")]
    if shown := one.mechanisms:
        yield [_label("shows"), ("; ".join(_mechanism(m.name, m.level, m.rationales, turns) for m in shown), "green")]
    if tails := [inference for inference in one.inferences if inference.tails]:
        yield [_label("likely"), ("; ".join(map(_inference, tails)), "")]
    yield from _labels("reply", "green", one.reaction)


def _labels(name: str, style: str, labels: Labels | None) -> Iterator[Line]:
    """A line for a distribution over labels."""
    if labels is not None:
        yield [_label(name), (strongest(labels.probabilities, TOP_LABELS), style)]


def table_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A result record (``Analysis.to_dict`` with ``row``) as rows of ``TABLE_COLUMNS``; a bad row is one row."""
    head = {"row": record["row"], "id": record.get("id", "")}
    if "error" in record:
        return [{**head, "error": record["error"]}]
    rows = []
    for index, turn in enumerate(record["turns"]):
        cells: dict[str, Any] = {**head, "turn": index + 1, **turn}
        for part in ("emotion", "intent", "reaction"):
            for labels in _of(record, part, index):
                cells[part] = labels["label"]
                cells[f"{part}_probability"] = f"{labels['probabilities'][labels['label']]:.4f}"
                cells |= {"side": side_of(labels["label"], labels.get("sides"))} if part == "emotion" else {}
        for note in _of(record, "causes", index, "target"):
            cells["cause_turns"] = " ".join(str(turn + 1) for turn in note["turns"])
            cells["cause_spans"] = " | ".join(span["text"] for span in note["spans"])
        for scores in _of(record, "words", index):
            best = sorted(scores["words"], key=lambda word: -(word["score"] or 0.0))[:TOP_WORDS]
            cells["words"] = " | ".join(word["text"] for word in best)
        for mechanism in _of(record, "mechanisms", index):
            cells[mechanism["mechanism"].replace(" ", "_")] = mechanism["level"]
        told = [f"{i['relation']}: {'; '.join(i['tails'])}" for i in _of(record, "inferences", index) if i["tails"]]
        cells["inferences"] = " | ".join(told)
        cells["uncertain"] = "; ".join(record["uncertain"])
        cells["missing"] = ", ".join(record["missing"])
        rows.append(cells)
    return rows


def _of(record: Mapping[str, Any], part: str, index: int, field: str = "turn") -> list[dict[str, Any]]:
    return [own for own in record.get(part, ()) if own[field] == index]


def _cause(turn: int, spans: Sequence[Span], chances: Sequence[float], turns: Sequence[Turn]) -> str:
    chance = f" ({chances[turn]:.2f})" if turn < len(chances) else ""
    quotes = ", ".join(f'"{shortened(visible(s.of(turns)), 60)}"' for s in spans if s.turn == turn)
    return f"turn {turn + 1}{f' {quotes}' if quotes else ''}{chance}"


def _mechanism(name: str, level: int, rationales: Sequence[Span], turns: Sequence[Turn]) -> str:
    quotes = ", ".join(f'"{shortened(visible(span.of(turns)), 60)}"' for span in rationales)
    return f"{name} {LEVELS[level]}{f' {quotes}' if quotes else ''}"


def _inference(inference: Inference) -> str:
    return f"{inference.relation}: {', '.join(map(visible, inference.tails[:TOP_TAILS]))}"


def _apart(spans: Sequence[Span]) -> list[Span]:
    """Spans with overlapping ones joined, so that each character is marked once."""
    joined: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if joined and span.start < joined[-1].end:
            last = joined.pop()
            span = Span(last.turn, last.start, max(last.end, span.end))
        joined.append(span)
    return joined


def _label(name: str) -> Segment:
    return (f"{name:<{LABEL_WIDTH}}", "dim")
