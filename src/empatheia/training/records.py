"""Run records kept in ``results/``: one JSON a run, copied as the run wrote it, and the table made from all of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from empatheia.errors import CheckpointError
from empatheia.training.runner import write_atomically

TABLE = "README.md"
_COLUMNS = (
    ("accuracy", "accuracy", 2, 1),
    ("ppl_word", "PPL word", 2, 1),
    ("ppl_token", "PPL piece", 2, 1),
    ("bleu_nltk_4", "BLEU-4", 3, 1),
    ("dist_corpus_1", "D-1 %", 3, 1),
    ("dist_corpus_2", "D-2 %", 3, 1),
    ("cause_f1_turn", "cause F1", 2, 1),
)


def keep_record(run: Path, results: Path) -> Path:
    """Copies a finished run's record and curves into ``results/<recipe>/<size>-seed<seed>.*``.

    Raises:
        CheckpointError: The run is not finished.
    """
    source = run / "metrics.json"
    if not source.is_file():
        raise CheckpointError(f"{run} has no metrics.json: the run is not finished; go on with `empatheia train`.")
    record = json.loads(source.read_text(encoding="utf-8"))
    target = results / record["recipe"] / f"{record['size']}-seed{record['seed']}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    if (run / "curves.jsonl").is_file():
        shutil.copyfile(run / "curves.jsonl", target.with_suffix(".curves.jsonl"))
    write_atomically(results / TABLE, table(results))
    return target


def read_records(results: Path) -> list[dict[str, Any]]:
    """All records under a folder, by recipe, size and seed."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.rglob("*-seed*.json"))]
    return sorted(records, key=lambda r: (r["recipe"], r["size"], r["seed"]))


def table(results: Path) -> str:
    """The Markdown page of all records; values as measured, intervals in the JSON beside them."""
    records = read_records(results)
    lines = [
        "# Results",
        "",
        "Made by `empatheia train --record results` from the run records in this folder; not edited by hand. Each",
        "record holds its recipe, seed, commit, hardware, duration, curves and scores with signatures and 95 %",
        "intervals. The size says how much was trained: `cpu` runs are small and short, `full` as published.",
        "",
        "## Responders on EmpatheticDialogues",
        "",
        "| recipe | size | seed | minutes | parameters | " + " | ".join(c[1] for c in _COLUMNS) + " |",
        "|---|---|---|---|---|" + "---|" * len(_COLUMNS),
    ]
    for record in (r for r in records if "ppl_word" in r["metrics"]):
        cells = [_cell(record["metrics"], key, digits) for key, _, digits, _ in _COLUMNS]
        lines.append(f"| {_facts(record)} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "## Cause annotator on RECCON fold 1 (percent)",
        "",
        "| recipe | size | seed | minutes | parameters | threshold | positive F1 | negative F1 | macro F1 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for record in records:
        for name, values in record["metrics"].items():
            if name.startswith("fold1 pairs"):
                scores = " | ".join(f"{values[k]:.2f}" for k in ("positive_f1", "negative_f1", "macro_f1"))
                lines.append(f"| {_facts(record)} | {values['threshold']} ({name.split('threshold ')[1]}) | {scores} |")
    lines += [
        "",
        "Published with context, trained and tested on fold 1: RoBERTa-base 64.28 / 88.74 / 76.51,",
        "RoBERTa-large 66.23 / 87.89 / 77.06 (Poria et al. 2021).",
        "",
    ]
    return "\n".join(lines)


def _facts(record: dict[str, Any]) -> str:
    return " | ".join(
        (
            f"`{record['recipe']}`",
            record["size"],
            str(record["seed"]),
            f"{record['training_seconds'] / 60:.0f}",
            f"{record['parameters'] / 1e6:.1f}M",
        )
    )


def _cell(metrics: dict[str, Any], key: str, digits: int) -> str:
    score = metrics.get(key)
    if score is None or score["value"] is None:
        return "-"
    factor = 100.0 if score["unit"] == "fraction" else 1.0
    return f"{factor * score['value']:.{digits}f}"
