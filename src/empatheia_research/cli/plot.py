"""``empatheia plot``: pictures of runs and replies, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from empatheia.cli.options import group
from empatheia.cli.output import show
from empatheia.errors import DataError
from empatheia.replies.reply_files import read_replies
from empatheia.resources.quiet import quiet_loading
from empatheia_research.reports.charts import save
from empatheia_research.reports.curves import curves_chart, curves_of, read_curves
from empatheia_research.reports.focus_chart import focus_chart, read_focus_record
from empatheia_research.reports.label_charts import (
    GOLD_FIELDS,
    LABEL_FIELDS,
    confusion_chart,
    labels_in,
    read_rows,
    shares_chart,
)
from empatheia_research.reports.reproduction import read_runs
from empatheia_research.reports.system_charts import points_of, printed_points, systems_chart, tradeoff_chart, unit_of
from empatheia_research.reports.targets import tables, tables_named
from empatheia_research.shipped import shipped_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

app = group("Draw pictures of runs and replies, as PNG and SVG.")

OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="File.png or File.svg; another name gets both endings. Default: the picture's name."),
]


@app.command("curves")
def plot_curves(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, kept records (results/.../cpu-seed1.json), curves.")],
    out: OutOption = None,
) -> None:
    """Loss over updates, on training batches and on validation: a panel for each stage.

    Example: empatheia plot curves results/default/listener/cpu-seed1024.json --out curves.svg
    """
    found: dict[str, Any] = {}
    for run in runs:
        if (file := curves_of(run)) is None:
            raise DataError(f"no curves belong to {run}; name a run folder, a kept record, or a curves.jsonl file.")
        found[_run_name(run)] = read_curves(file)
    _save(curves_chart(found), out, "curves")


@app.command("confusion")
def plot_confusion(
    outputs: Annotated[Path, typer.Argument(help="A run folder, or JSON lines with gold and predicted labels.")],
    out: OutOption = None,
) -> None:
    """Which emotion is taken for which: gold labels in rows, predicted ones in columns, percent of the row.

    Example: empatheia plot confusion runs/rashkin2018/emotion_situation/cpu-seed1024
    """
    rows = read_rows(outputs)
    gold = labels_in(rows, GOLD_FIELDS, outputs)
    predicted = labels_in(rows, ("predicted",), outputs)
    _save(confusion_chart(gold, predicted, _run_name(outputs)), out, "confusion")


@app.command("labels")
def plot_labels(
    files: Annotated[list[str], typer.Argument(help="Files of replies or labels; NAME=FILE names the system.")],
    classifier: Annotated[
        str | None,
        typer.Option(help="Label the replies with this classifier of 41 emotions and intents (folder or name)."),
    ] = None,
    field: Annotated[str | None, typer.Option(help="Where a JSON line has its label.")] = None,
    out: OutOption = None,
) -> None:
    r"""How often each emotion and intent occurs in the replies of systems.

    Without --classifier the files are JSON lines that have labels; with it they are replies in any format of 'empatheia
    score', and the gold replies are drawn too.

    \b
    empatheia plot labels mine=labels.jsonl --field intent
    empatheia plot labels generation_result.txt --classifier intent
    """
    systems: dict[str, Sequence[str]] = {}
    if classifier is None:
        for text in files:
            name, file = _named(text)
            systems[name] = labels_in(read_rows(file), (field,) if field else LABEL_FIELDS, file)
    else:
        from empatheia_research.understanding.labels.classifier import TextClassifier

        with quiet_loading():
            model = TextClassifier.load(classifier)
        for name, replies in _replies(files, gold=True).items():
            found = model.classify_texts(list(replies))
            systems[name] = [model.labels[i] for i in found.argmax(-1)]
    _save(shares_chart(systems), out, "labels")


@app.command("systems")
def plot_systems(
    files: Annotated[list[str], typer.Argument(help="Files of replies in any format of 'empatheia score'.")],
    out: OutOption = None,
) -> None:
    """How long the replies of systems are and how varied, beside the gold replies.

    Example: empatheia plot systems generation_result.txt mine=outputs.jsonl
    """
    _save(systems_chart(_replies(files, gold=True)), out, "systems")


@app.command("tradeoff")
def plot_tradeoff(
    x: Annotated[str, typer.Option(help="Score across, e.g. ppl_word.")],
    y: Annotated[str, typer.Option(help="Score upwards, e.g. dist_corpus_2.")],
    results: Annotated[Path, typer.Option(help="Folder of kept run records.")] = Path("results"),
    runs: Annotated[
        list[Path] | None, typer.Option(help="Also this run folder, or all runs below it; can be repeated.")
    ] = None,
    published: Annotated[str | None, typer.Option(help="Also the rows of this printed table, e.g. imagine/1.")] = None,
    out: OutOption = None,
) -> None:
    """One score against another, a mark for each run, with intervals.

    Example: empatheia plot tradeoff --x accuracy --y dist_corpus_2 --published gao2021/2
    """
    records = [record for record in read_runs(shipped_path(results), runs or ()) if record["size"] != "smoke"]
    points = points_of(records, x, y)
    for key in tables_named([published] if published else ()):
        points += printed_points(tables()[key], x, y)
    _save(tradeoff_chart(points, x, y, unit_of(records, x), unit_of(records, y)), out, "tradeoff")


@app.command("focus")
def plot_focus(
    runs: Annotated[list[Path], typer.Argument(help="Run folders or kept records of task focus (kim2021/focus_...).")],
    x: Annotated[str, typer.Option(help="Score across: ppl_token, ppl_word, dist_corpus_2 ...")] = "ppl_token",
    y: Annotated[str, typer.Option(help="Score upwards: coverage, coverage_near, listener_accuracy ...")] = "coverage",
    out: OutOption = None,
) -> None:
    """What focus gains and costs: a line for each kind of distractors and beta, a mark for each alpha.

    Example: empatheia plot focus runs/kim2021/focus_soft/cpu-seed1024 --y listener_accuracy
    """
    _save(focus_chart({_run_name(run): read_focus_record(run) for run in runs}, x, y), out, "focus")


def _replies(files: Sequence[str], gold: bool) -> Mapping[str, Sequence[str]]:
    """System to its replies, from all files; the first file's references as ``gold``."""
    systems: dict[str, Sequence[str]] = {}
    references: list[str] = []
    for text in files:
        name, path = _named(text)
        file = read_replies(path)
        for system, replies in file.replies.items():
            label = name if len(file.replies) == 1 else f"{name} {system}" if "=" in text else system
            systems[label if label not in systems else f"{label} ({path.name})"] = [reply.reply for reply in replies]
            references = references or [reply.reference for reply in replies if reply.reference is not None]
    return {**systems, "gold": references} if gold and references else systems


def _named(text: str) -> tuple[str, Path]:
    """``NAME=FILE``, or a file under its own name."""
    name, equals, file = text.partition("=")
    if equals and not Path(text).exists():
        return name, Path(file)
    return _run_name(Path(text)), Path(text)


def _run_name(place: Path) -> str:
    """How a run or file is called in a picture: its last parts, as far as they say something."""
    if place.name == "outputs.jsonl" and place.absolute().parent.name:  # of a run folder
        place = place.absolute().parent
    plain = place.with_suffix("") if place.suffix in (".json", ".jsonl") else place
    parts = [part for part in plain.parts if part not in ("outputs", "curves", "runs", "results", "/", ".", "..")]
    return "/".join(parts[-3:]) if place.is_dir() or place.suffix == ".json" else place.stem if parts else str(place)


def _save(figure: Figure, out: Path | None, name: str) -> None:
    show(f"written: {', '.join(map(str, save(figure, out or Path(name))))}")
