"""Run records kept in ``results/``: one JSON a run, copied as the run wrote it, with its curves and charts."""

from __future__ import annotations

import json
from pathlib import Path

from empatheia.errors import CheckpointError
from empatheia.reading import read_record
from empatheia.settings import path_name, plain_name
from empatheia.writing import cannot_write, copy_atomically, write_atomically


def keep_record(run: Path, results: Path) -> Path:
    """Copies a finished run's record, curves and charts into ``results/<recipe>/<size>-seed<seed>.*``.

    The record comes last: one that is there has all that belongs to it.

    Raises:
        CheckpointError: The run is not finished, its record has no recipe, size and seed that can name a file, or the
            disk is full; nothing half-written stays then, and the next call keeps it.
    """
    source = run / "metrics.json"
    if not source.is_file():
        raise CheckpointError(
            f"{run} has no metrics.json: the run is not finished; continue it with `empatheia train`."
        )
    record = read_record(source)
    try:
        name, file = path_name(record["recipe"]), plain_name(f"{record['size']}-seed{record['seed']}.json")
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise CheckpointError(
            f"{source} does not say whose record it is: {problem}. Give a folder that `empatheia train` made."
        ) from None
    target = results / name / file
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise cannot_write(target.parent, problem) from None
    if (run / "curves.jsonl").is_file():
        copy_atomically(run / "curves.jsonl", target.with_suffix(".curves.jsonl"))
    for chart in sorted(run.glob("*.svg")):
        copy_atomically(chart, target.with_suffix(f".{chart.name}"))
    write_atomically(target, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return target
