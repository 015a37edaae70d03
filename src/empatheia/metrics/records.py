"""Run records, one JSON file a run: checked, and read as rows of scores."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from empatheia.errors import DataError
from empatheia.metrics.earlier_records import measured_by_names
from empatheia.metrics.rows import Measured
from empatheia.reading import files_below, read_record

SIZES = ("smoke", "row", "cpu", "full")
_NEEDED = ("recipe", "size", "seed", "metrics")
_NUMBER = int | float
_FIELDS: Mapping[str, Any] = {
    **{"recipe": str, "size": str, "seed": int, "metrics": dict, "note": str, "environment": dict, "data": dict},
    **{"stages": dict, "start": dict, "overrides": list, "training_seconds": _NUMBER, "parameters": _NUMBER},
}

logger = logging.getLogger("empatheia.records")


def read_records(results: Path) -> list[dict[str, Any]]:
    """All whole records under a folder, by recipe, size and seed; what is none is told and left out."""
    records = whole_records(files_below(results, "*-seed*.json"))
    return [record for _, record in sorted(records, key=lambda found: record_key(found[1]))]


def whole_records(files: Iterable[Path]) -> list[tuple[Path, dict[str, Any]]]:
    """The records of files, in that order; a file that holds none is told and left out.

    Raises:
        DataError: There are files, and none of them holds a record.
    """
    found: list[tuple[Path, dict[str, Any]]] = []
    faults = []
    for file in files:
        try:
            found.append((file, check_record(read_record(file))))
        except (OSError, ValueError) as problem:
            faults.append(f"{file} is not a whole run record ({problem}); delete it or make the run again.")
    if faults and not found:
        raise DataError(faults[0])
    for fault in faults:
        logger.warning("%s It is left out.", fault)
    return found


def measured_of(record: Mapping[str, Any]) -> Measured:
    """What a run measured, as rows; taken from the record's names once where :func:`check_record` has seen it."""
    found = record.get("measured")
    return found if isinstance(found, Measured) else measured_by_names(record.get("metrics", {}))


def record_key(record: Mapping[str, Any]) -> tuple[str, str, int]:
    """Recipe, size and seed."""
    return record["recipe"], record["size"], record["seed"]


def check_record(record: dict[str, Any]) -> dict[str, Any]:
    """The record with its scores as rows, if its fields and scores are of the kinds that tables and pages read.

    Raises:
        ValueError: One is not; says which.
    """
    for name, kind in _FIELDS.items():
        value = record.get(name)
        if isinstance(value, bool) or not (isinstance(value, kind) or (value is None and name not in _NEEDED)):
            raise ValueError(f"{name} is {value!r:.60}")
    if record["size"] not in SIZES:
        raise ValueError(f"size is {record['size']!r:.60}; accepted: {', '.join(SIZES)}")
    _check_scores(record["metrics"], "")
    return record | {"measured": measured_of(record)}


def _check_scores(metrics: Mapping[str, Any], prefix: str) -> None:
    for name, score in metrics.items():
        if not isinstance(score, dict):
            continue
        if "value" not in score:
            _check_scores(score, f"{prefix}{name}: ")
            continue
        interval = score.get("interval")
        ends = interval if isinstance(interval, list) and len(interval) == 2 else [None if interval is None else ""]
        texts = (score.get("unit"), score.get("signature", ""), score.get("name", ""))
        is_right = all(map(_is_number, (score["value"], *ends))) and _is_count(score.get("n"))
        is_right = (
            is_right and all(isinstance(text, str) for text in texts) and isinstance(score.get("parts", {}), dict)
        )
        if not is_right:
            raise ValueError(f"the score {prefix + name!r:.80} is {score!r:.80}")


def _is_count(value: Any) -> bool:
    return value is None or (_is_number(value) and not isinstance(value, str))


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return is_number or value is None or (isinstance(value, str) and value in ("inf", "-inf"))  # as a Score writes them
