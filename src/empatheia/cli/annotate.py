"""``empatheia annotate``: cause labels for EmpatheticDialogues from a trained annotator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Optional

import typer


def annotate(
    model: Annotated[Path, typer.Argument(help="Checkpoint folder of a reccon/entailment run.")],
    out: Annotated[Path, typer.Option(help="File of the annotations (.jsonl or .jsonl.gz).")],
    splits: Annotated[str, typer.Option(help="Splits of EmpatheticDialogues, comma-separated.")] = "train,valid,test",
    emotions: Annotated[str, typer.Option(help="Emotion words the annotator reads: reccon or verbatim.")] = "reccon",
    report: Annotated[Optional[Path], typer.Option(help="Write agreement with RecEC as JSON.")] = None,  # noqa: UP045
    limit: Annotated[Optional[int], typer.Option(help="First so many dialogues of each split.")] = None,  # noqa: UP045
) -> None:
    """Say which turns (and words) caused the emotion, for every prefix of every conversation.

    Example: empatheia annotate runs/reccon/entailment/cpu-seed1024/checkpoint --out causes.jsonl.gz
    """
    from rich.console import Console
    from rich.progress import Progress

    from empatheia.corpora.annotations import write_annotations
    from empatheia.training.annotating import SPLITS, agreement_with_released, annotate_dialogues, load_splits

    names = [name.strip() for name in splits.split(",") if name.strip()]
    for name in names:
        if name not in SPLITS:
            raise typer.BadParameter(f"unknown split {name!r}; accepted: {', '.join(SPLITS)}.")
    notes, agreement = [], {}
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for name, dialogues in load_splits(names).items():
            task = bar.add_task(name, total=None)
            made = annotate_dialogues(
                model,
                dialogues[:limit] if limit else dialogues,
                emotion_words=emotions,
                progress=lambda done, total, task=task: bar.update(task, completed=done, total=total),
            )
            notes += made
            if name != "train":
                agreement[name] = agreement_with_released(made, name)
    n = write_annotations(out, notes)
    result = {"annotations": n, "file": str(out), "agreement_with_recec": agreement}
    if report is not None:
        report.write_text(json.dumps(result, indent=2), encoding="utf-8")
    typer.echo(json.dumps(result, indent=2))
