"""Run records kept in ``results/``: one JSON a run, copied as the run wrote it, with its curves and charts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from empatheia.config import path_name, plain_name
from empatheia.errors import CheckpointError
from empatheia.reading import read_record
from empatheia.training.saving import write_atomically


def keep_record(run: Path, results: Path) -> Path:
    """Copies a finished run's record, curves and charts into ``results/<recipe>/<size>-seed<seed>.*``.

    Raises:
        CheckpointError: The run is not finished, or its record has no recipe, size and seed that can name a file.
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
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    if (run / "curves.jsonl").is_file():
        shutil.copyfile(run / "curves.jsonl", target.with_suffix(".curves.jsonl"))
    for chart in sorted(run.glob("*.svg")):
        shutil.copyfile(chart, target.with_suffix(f".{chart.name}"))
    return target
