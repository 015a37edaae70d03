"""``empatheia annotate``: causes, a teacher's emotions or mechanisms of replies for EmpatheticDialogues."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from empatheia.cli.output import say, show
from empatheia.errors import DataError, MissingResourceError
from empatheia.resources import resolve_model
from empatheia_research.corpora.annotations import write_annotations
from empatheia_research.corpora.mechanism_levels import write_levels

if TYPE_CHECKING:
    from empatheia.records.dialogue import CauseAnnotation


class What(StrEnum):
    """What is annotated."""

    causes = "causes"
    emotions = "emotions"
    mechanisms = "mechanisms"


def annotate(
    model: Annotated[
        Path,
        typer.Argument(
            help="Checkpoint of a reccon/entailment run; a responder's run (emotions); checkpoint of an epitome run"
            " (mechanisms)."
        ),
    ],
    out: Annotated[Path, typer.Option(help="File to write: .jsonl or .jsonl.gz; .safetensors (emotions).")],
    what: Annotated[
        What,
        typer.Option(
            help="causes: turns and spans; emotions: distributions to learn from; mechanisms: levels in each reply."
        ),
    ] = What.causes,
    corpus: Annotated[
        str, typer.Option(help="Corpus to label, as named by `empatheia data list`.")
    ] = "empathetic_dialogues",
    splits: Annotated[str, typer.Option(help="Its splits, comma-separated.")] = "train,valid,test",
    emotions: Annotated[str, typer.Option(help="Emotion words the annotator reads: reccon or verbatim.")] = "reccon",
    emotion: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="For causes without gold labels: model that predicts the emotion; none = no emotion."
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write agreement with RecEC as JSON.")] = None,
    limit: Annotated[int | None, typer.Option(help="Only so many dialogues of each split.")] = None,
) -> None:
    r"""Say which turns (and words) caused the emotion, or how probable each emotion is, or what each reply does.

    \b
    empatheia annotate runs/reccon/entailment/cpu-seed1024/checkpoint --out causes.jsonl.gz
    empatheia annotate causes --emotion emotion --splits test \
        --out recipes/annotations/empathetic_dialogues.detected_causes.jsonl.gz
    empatheia annotate runs/gao2021/soft_pretrained/cpu-seed1024 --what emotions --splits train \
        --out recipes/annotations/empathetic_dialogues.emotions.safetensors
    empatheia annotate runs/epitome/shared/cpu-seed12/checkpoint --what mechanisms --splits train,valid \
        --out recipes/annotations/empathetic_dialogues.mechanisms.jsonl.gz
    """
    _check_options(out, what, corpus, emotion)
    _check_place(model)
    names = _checked_splits(splits)
    if what is What.emotions:
        result = _write_distributions(model, out, names, limit)
    elif what is What.mechanisms:
        result = _write_levels(model, out, names, limit, corpus)
    else:
        result = _write_causes(model, out, names, limit, corpus, emotions, emotion)
        if report is not None:
            report.write_text(json.dumps(result, indent=2), encoding="utf-8")
    show(json.dumps(result, indent=2))


def _checked_splits(splits: str) -> list[str]:
    """Names of splits; raises BadParameter for one that is none."""
    from empatheia_research.training import corpus_labels

    names = [name.strip() for name in splits.split(",") if name.strip()]
    for name in names:
        if name not in corpus_labels.SPLITS:
            raise typer.BadParameter(f"unknown split {name!r}; accepted: {', '.join(corpus_labels.SPLITS)}.")
    return names


def _check_options(out: Path, what: What, corpus: str, emotion: str | None) -> None:
    """Whether the options go together; raises DataError or BadParameter with what would."""
    if out.is_dir():
        raise DataError(f"{out} is a folder; name a file, e.g. {out / 'annotations.jsonl.gz'}.")
    if emotion is not None and what is not What.causes:
        raise typer.BadParameter(f"--emotion is for --what causes, not {what.value}.")
    if what is What.emotions and corpus != "empathetic_dialogues":
        raise typer.BadParameter("--corpus is for causes and mechanisms; emotions are of the run's own corpus.")


def _check_place(model: Path) -> None:
    """Looks for the models before torch is imported; raises MissingResourceError for one that is not there."""
    for place in str(model).split(","):
        if not Path(place).exists():
            resolve_model(place)


def _write_causes(
    model: Path, out: Path, splits: list[str], limit: int | None, corpus: str, words: str, emotion: str | None
) -> dict[str, Any]:
    """Cause turns and spans of each split, and how well they agree with the released labels."""
    from rich.console import Console
    from rich.progress import Progress

    from empatheia_research.training import corpus_labels

    by_split: dict[str, list[CauseAnnotation]] = {}
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for name, dialogues in corpus_labels.load_splits(splits, corpus).items():
            chosen = dialogues[:limit] if limit else dialogues
            task = bar.add_task(name, total=None if emotion is None else len(chosen))
            if emotion is None:
                by_split[name] = corpus_labels.annotate_dialogues(
                    model,
                    chosen,
                    emotion_words=words,
                    progress=lambda done, total, task=task: bar.update(task, completed=done, total=total),
                )
            else:
                reader = None if emotion == "none" else emotion
                by_split[name] = corpus_labels.detect_causes(
                    model, reader, chosen, progress=lambda n, task=task: bar.advance(task, n)
                )
    n = write_annotations(out, [note for made in by_split.values() for note in made])
    agreement = {}
    for name in by_split if corpus == "empathetic_dialogues" else ():  # after the work is safe
        if name == "train":
            continue
        try:
            agreement[name] = corpus_labels.agreement_with_released(by_split[name], name)
        except MissingResourceError as problem:
            say(f"{name}: not compared with the released labels: {problem}")
    return {"annotations": n, "file": str(out), "agreement_with_recec": agreement}


def _write_levels(model: Path, out: Path, splits: list[str], limit: int | None, corpus: str) -> dict[str, Any]:
    from rich.console import Console
    from rich.progress import Progress

    from empatheia_research.training.corpus_labels import load_splits, mechanism_levels, shares_shown
    from empatheia_research.understanding.mechanisms.identifier import MechanismsOfTurns

    component = MechanismsOfTurns.load(str(model))
    rows: list[tuple[str, int, tuple[int, ...]]] = []
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for name, dialogues in load_splits(splits, corpus).items():
            chosen = dialogues[:limit] if limit else dialogues
            task = bar.add_task(name, total=len(chosen))
            rows += mechanism_levels(component, chosen, progress=lambda n, task=task: bar.advance(task, n))
    n = write_levels(out, component.name, rows)
    return {"replies": n, "file": str(out), "model": component.name, "shown": shares_shown(rows)}


def _write_distributions(run: Path, out: Path, splits: list[str], limit: int | None) -> dict[str, Any]:
    from rich.console import Console
    from rich.progress import Progress

    from empatheia_research.training.teacher_labels import emotion_distributions, load_run, teacher_items, write_teacher

    task = load_run(run)
    items = teacher_items(task, splits)[:limit]
    with Progress(console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("emotions", total=len(items))
        made = emotion_distributions(
            task, items, progress=lambda done, total: bar.update(row, completed=done, total=total)
        )
    return write_teacher(out, items, made, f"{task.recipe.name} {task.recipe.size} seed {task.recipe.seed}")
