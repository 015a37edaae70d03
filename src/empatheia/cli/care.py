"""``empatheia care``: the safety check by itself; what it finds, how well it does, and where it sends people."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from empatheia.care import Detector, Resources
from empatheia.care.evaluating import evaluate as measure
from empatheia.care.evaluating import read_items
from empatheia.cli.arguments import refuse_files
from empatheia.cli.options import CountryOption, JsonOption, ResourcesOption, group
from empatheia.cli.output import labelled, print_json, print_lines, say, shortened, visible
from empatheia.errors import DataError
from empatheia.records.dialogue import ROLES, Dialogue, Turn

if TYPE_CHECKING:
    from empatheia.care import Assessment
    from empatheia.care.evaluating import CareReport

app = group("Check texts for danger, measure the check, show where help is.")
_LONGEST_LIST = 20


@app.command("check")
def check(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEXT...|-]", help="Turns of one conversation, speaker first; '-' or none reads stdin."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    r"""Say how grave a text is, about whom, of what kind, and why.

    From stdin, every line is a separate text. The exit code is always 0: read the level.

    \b
    empatheia care check "I can't go on like this."
    empatheia care check "I'm so tired." "Are you thinking of suicide?" "yes" --json
    printf 'I want to die\nthis traffic makes me want to die lol\n' | empatheia care check - --json
    """
    if not texts or texts == ["-"]:
        lines = sys.stdin.buffer.read().decode("utf-8", "replace").splitlines()
        dialogues = [Dialogue("", (Turn("speaker", line),)) for line in lines if line.strip()]
        if not dialogues:
            raise DataError("stdin holds no text; write one text a line.")
    else:
        refuse_files(texts, "care check")
        if len(texts) % 2 == 0:
            raise DataError(f"{len(texts)} turns end with the listener; end with what the speaker says.")
        dialogues = [Dialogue("", tuple(Turn(ROLES[i % 2], text) for i, text in enumerate(texts)))]

    detector = Detector()
    for dialogue in dialogues:
        found = detector.assess(dialogue)
        if as_json:
            print_json(found.to_dict())
        else:
            print_lines([[(line, "")] for line in _told(found)])


def _told(found: Assessment) -> list[str]:
    newest = visible(found.turns[-1].text) if found.turns else ""
    rows = [("text", shortened(newest, 100)), ("level", found.level), ("about", found.about)]
    rows += [("kinds", ", ".join(found.kinds))] if found.kinds else []
    words = list(dict.fromkeys(shortened(visible(span.of(found.turns)), 80) for span in found.spans))
    rows += [("words" if i == 0 else "", word) for i, word in enumerate(words[:5])]
    rows += [("because" if i == 0 else "", visible(reason)) for i, reason in enumerate(found.reasons)]
    rows += [("uncertain", doubt) for doubt in found.uncertain]
    return ["".join(text for text, _ in labelled(name, told)) for name, told in rows]


@app.command("evaluate")
def evaluate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines: text (or turns), level, kind.")],
    typos: Annotated[float, typer.Option(help="Share of words that get a typo.")] = 0.0,
    before: Annotated[int, typer.Option(help="Turns of other talk before each text: 0, 2, ... 10.")] = 0,
    small: Annotated[
        bool, typer.Option("--small", help="Use the small classifier alone, as without the encoder.")
    ] = False,
    show_all: Annotated[bool, typer.Option("--all", help="List every miss and every false alarm.")] = False,
    as_json: JsonOption = False,
) -> None:
    r"""Measure recall and false alarms on labelled texts, with Wilson intervals, by kind.

    A risk counts as found if its level is concern or crisis.

    \b
    empatheia care evaluate held_out.jsonl
    empatheia care evaluate held_out.jsonl --typos 0.05 --before 10 --json
    """
    report = measure(read_items(file), Detector(encoder=not small), typos=typos, n_before=before)
    if as_json:
        print_json(report.to_dict())
        return
    print_lines([[(line, "")] for line in _reported(report, None if show_all else _LONGEST_LIST)])


def _reported(report: CareReport, most: int | None) -> list[str]:
    lines = [
        f"risks found         {report.recall}",
        f"crises as crises    {report.crisis_recall}",
        f"false alarms        {report.false_alarms}",
        f"of these, crises    {report.false_crises}",
        f"milliseconds        median {report.milliseconds[0]:.1f}, 95th percentile {report.milliseconds[1]:.1f}",
        "",
        *(f"  {kind:<32} {share}" for kind, share in report.by_kind.items()),
        "",
        "limits              " + ", ".join(f"{name} {value:.3f}" for name, value in report.thresholds.items()),
        "when trained        " + ", ".join(f"{name} {value}" for name, value in _flat(report.notes)),
    ]
    for title, rows in (("missed", report.missed), ("false alarms", report.alarmed)):
        lines += ["", f"{title}: {len(rows)}"] if rows else []
        for row in rows[:most]:
            lines.append(f"  {row['id']} ({row['kind']}, {row['score']:.2f}) {shortened(visible(row['text']), 110)}")
        if most is not None and len(rows) > most:
            lines.append(f"  ... {len(rows) - most} more; --all lists them")
    return lines


def _flat(notes: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name.replace("_", " "), value) for name, value in notes.items() if not isinstance(value, dict)]


@app.command("resources")
def resources(country: CountryOption = None, file: ResourcesOption = None, as_json: JsonOption = False) -> None:
    r"""Show the services that replies name, with their sources and the day each was checked.

    \b
    empatheia care resources --country IE
    empatheia care resources --json
    """
    read = Resources.read(file, country)
    if as_json:
        print_json(read.to_list(read.country if country else None))
        return
    for doubt in read.doubts():
        say(f"note: {doubt}.")
    rows = read.to_list(read.country if country else None)
    lines = []
    for row in rows:
        number = row["number"] or row["text"] or row["url"]
        lines.append(
            f"{row['country']}  {row['for']:<10} {number:<16} {row['name']} ({row['hours'] or 'hours not known'})"
        )
        lines.append(f"    source: {row['source']}; checked {row['last_verified']}")
    if country and not rows:
        lines.append(f"{read.country}  no entry: replies say {read.emergency!r}.")
    print_lines([[(line, "")] for line in lines])
