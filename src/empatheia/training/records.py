"""Run records kept in ``results/``: one JSON a run, copied as the run wrote it, and the table made from all of them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from empatheia.errors import CheckpointError
from empatheia.taxonomy import MECHANISMS
from empatheia.training.runner import write_atomically

TABLE = "README.md"
_FOLD = re.compile(r"fold(\d) (pairs|spans), threshold (.*)")
_CLASSIFIER_COLUMNS = (
    ("accuracy", "accuracy", 2),
    ("accuracy_top5", "top 5", 2),
    ("f1_weighted", "weighted F1", 2),
    ("f1_macro", "macro F1", 2),
    ("calibration_error_before", "ECE before", 2),
    ("calibration_error", "ECE after", 2),
)
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
    """Copies a finished run's record, curves and charts into ``results/<recipe>/<size>-seed<seed>.*``.

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
    for chart in sorted(run.glob("*.svg")):
        shutil.copyfile(chart, target.with_suffix(f".{chart.name}"))
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
    lines += _reccon_table(records, "pairs", ("positive_f1", "negative_f1", "macro_f1"))
    lines += [
        "",
        "Published with context, trained and tested on fold 1: RoBERTa-base 64.28 / 88.74 / 76.51,",
        "RoBERTa-large 66.23 / 87.89 / 77.06 (Poria et al. 2021).",
    ]
    lines += _reccon_table(records, "spans", ("em_pos", "f1_pos", "f1_pos_nested", "f1_neg", "f1", "f1_nested"))
    lines += [
        "",
        "Published with context, trained and tested on fold 1, EM_pos / F1_pos / F1_neg / F1: RoBERTa-base 32.63 /",
        "58.17 / 85.85 / 75.45, SpanBERT 34.64 / 60.00 / 86.02 / 75.71 (Poria et al. 2021). The printed F1_pos and F1",
        "are the nested ones: the released script gives 0 to an answer that neither lies inside the gold span nor",
        "holds it. Answering nothing gives F1 73.78.",
        "",
    ]
    lines += _classifier_table(records)
    lines += _mechanism_table(records)
    lines += _word_table(records, results)
    lines += _reaction_table(records)
    return "\n".join(lines)


def _reccon_table(records: list[dict[str, Any]], of: str, columns: tuple[str, ...]) -> list[str]:
    """Scores of cause models on each test fold: the cross-fold table is its rows side by side."""
    titles = {"pairs": "Cause annotator: turns of RECCON (percent)", "spans": "Causal spans of RECCON (percent)"}
    heads = [name.replace("_f1", " F1").replace("em_", "EM_").replace("f1", "F1") for name in columns]
    lines = [
        "",
        f"## {titles[of]}",
        "",
        "| recipe | size | seed | minutes | parameters | test fold | threshold | " + " | ".join(heads) + " |",
        "|---|---|---|---|---|---|---|" + "---|" * len(heads),
    ]
    for record in records:
        for name, values in record["metrics"].items():
            if found := _FOLD.fullmatch(name):
                fold, kind, chosen = found.groups()
                if kind == of:
                    scores = " | ".join(f"{values[column]:.2f}" if column in values else "-" for column in columns)
                    lines.append(f"| {_facts(record)} | {fold} | {values['threshold']} ({chosen}) | {scores} |")
    return lines


def _classifier_table(records: list[dict[str, Any]]) -> list[str]:
    """Text classifiers; nothing if there is none."""
    rows = [record for record in records if "calibration_error_before" in record["metrics"]]
    if not rows:
        return []
    lines = [
        "## Emotion or intent of one text (percent)",
        "",
        "| recipe | size | seed | minutes | parameters | " + " | ".join(c[1] for c in _CLASSIFIER_COLUMNS) + " |",
        "|---|---|---|---|---|" + "---|" * len(_CLASSIFIER_COLUMNS),
    ]
    for record in rows:
        cells = [_cell(record["metrics"], key, digits) for key, _, digits in _CLASSIFIER_COLUMNS]
        lines.append(f"| {_facts(record)} | " + " | ".join(cells) + " |")
    return [
        *lines,
        "",
        "Published: 32 emotions from the situation, ED / ED-cut, fastText 43 / 41, DeepMoji 48 / 45 (Rashkin et al.",
        "2019, table 9); 41 emotions and intents, RoBERTa-base 65.88 (Xie and Pu 2021). ECE is the calibration error,",
        "before and after temperature scaling on valid.",
        "",
    ]


def _mechanism_table(records: list[dict[str, Any]]) -> list[str]:
    """EPITOME, one line a mechanism; nothing if there is none."""
    columns = (
        ("accuracy", "accuracy", 2),
        ("f1_macro", "macro F1", 2),
        ("rationale_f1", "rationale F1", 2),
        ("rationale_iou_f1", "IOU F1", 2),
    )
    lines = []
    for record in records:
        for mechanism in MECHANISMS:
            own = {key: record["metrics"].get(f"{mechanism}: {key}") for key, *_ in columns}
            if own["accuracy"] is not None:
                cells = [_cell(own, key, digits) for key, _, digits in columns]
                lines.append(f"| {_facts(record)} | {mechanism} | " + " | ".join(cells) + " |")
    if not lines:
        return []
    return [
        "## Mechanisms of empathy: EPITOME, Reddit (percent)",
        "",
        "| recipe | size | seed | minutes | parameters | mechanism | " + " | ".join(c[1] for c in columns) + " |",
        "|---|---|---|---|---|---|" + "---|" * len(columns),
        *lines,
        "",
        "Published (Sharma et al. 2020, RoBERTa-base, another split; recalled, not checked against the paper):",
        "accuracy / macro F1 of emotional reaction 79.43 / 74.46, interpretation 84.04 / 62.60, exploration 92.61 /",
        "72.58.",
        "",
    ]


def _word_table(records: list[dict[str, Any]], results: Path) -> list[str]:
    """Cause words found without word labels, one line a method, and their charts; nothing if there is none."""
    lines = []
    for record in records:
        keys = [key for key in record["metrics"] if key.endswith(": cause_recall_top1") and " - " not in key]
        for key in keys:
            place, method, _ = key.split(": ")
            cells = [_cell(record["metrics"], f"{place}: {method}: cause_recall_top{k}", 2) for k in (1, 3, 5)]
            top = record["metrics"][key]
            ceiling = top["parts"].get("ceiling") if top.get("parts") else None
            lines.append(
                f"| `{record['recipe']}` | {record['size']} | {record['seed']} | {place} | {method} | "
                + " | ".join(cells)
                + f" | {'-' if ceiling is None else f'{ceiling:.1f}'} | {top['n']} |"
            )
    if not lines:
        return []
    return [
        "## Cause words without word labels (recall, percent)",
        "",
        "| recipe | size | seed | set | method | top 1 | top 3 | top 5 | ceiling at 1 | items |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *lines,
        "",
        "A method gets the emotion it recognises itself unless `gold emotion` is named. The set of words from RECCON's",
        "spans is ours; nothing is published on it.",
        "",
        *(f"![{chart.stem}]({chart.relative_to(results).as_posix()})\n" for chart in sorted(results.rglob("*.svg"))),
    ]


def _reaction_table(records: list[dict[str, Any]]) -> list[str]:
    """Emotion or intent of the reply to come; nothing if there is none."""
    columns = (("precision_weighted", "weighted P"), ("recall_weighted", "weighted R"), ("f1_weighted", "weighted F1"))
    lines = []
    for record in records:
        for prefix, title in (("", "one turn a dialogue, 2,000"), ("all: ", "all turns"), ("listener: ", "replies")):
            if "all: f1_weighted" in record["metrics"]:
                own = {key: record["metrics"].get(prefix + key) for key, *_ in columns}
                cells = ["-" if own[key] is None else f"{own[key]['value']:.4f}" for key, *_ in columns]
                lines.append(f"| {_facts(record)} | {title} | " + " | ".join(cells) + " |")
    if not lines:
        return []
    return [
        "## Emotion or intent of the reply to come: EmpatheticDialogues, 41 classes (fractions)",
        "",
        "| recipe | size | seed | minutes | parameters | test turns | " + " | ".join(c[1] for c in columns) + " |",
        "|---|---|---|---|---|---|---|---|---|",
        *lines,
        "",
        "Published over 2,000 dialogues drawn at random (Xie and Pu 2021, table 4): MEED2 (OS to ED) .2660 / .3530 /",
        ".2864.",
        "",
    ]


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
