"""Run records, one JSON file a run: checked, and read as rows of scores."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Required, TypedDict, cast

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
    "measuring_seconds": _NUMBER,
}

logger = logging.getLogger("empatheia.records")


class RunRecord(TypedDict, total=False):
    """What a run folder's ``metrics.json`` holds, once :func:`check_record` has seen it.

    Attributes:
        recipe, size, seed: Whose run it is.
        metrics: Scores and facts as they were written; read them through :func:`measured_of`.
        measured: The same as rows.
        note: Of the recipe, for who reads the numbers.
        environment: Versions, processor, commit.
        data: Counts and checksums of what was learnt from.
        stages: What each stage of training took and reached.
        start: The run whose weights it began with.
        overrides: What ``--set`` gave.
        training_seconds: In seconds, of this run alone.
        measuring_seconds: In seconds; that of the evaluation that ended, if one was stopped. Earlier records have none.
        parameters: Numbers in the network.
        file: Where the record was read.
    """

    recipe: Required[str]
    size: Required[str]
    seed: Required[int]
    metrics: Required[dict[str, Any]]
    measured: Required[Measured]
    note: str | None
    environment: dict[str, Any] | None
    data: dict[str, Any] | None
    stages: dict[str, Any] | None
    start: dict[str, Any] | None
    overrides: list[str] | None
    training_seconds: float | None
    measuring_seconds: float | None
    parameters: float | None
    file: str


def read_records(results: Path) -> list[RunRecord]:
    """All whole records under a folder, by recipe, size and seed; what is none is told and left out."""
    records = whole_records(files_below(results, "*-seed*.json"))
    return [record for _, record in sorted(records, key=lambda found: record_key(found[1]))]


def whole_records(files: Iterable[Path]) -> list[tuple[Path, RunRecord]]:
    """The records of files, in that order; a file that holds none is told and left out.

    Raises:
        DataError: There are files, and none of them holds a record.
    """
    found: list[tuple[Path, RunRecord]] = []
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


def measured_of(record: RunRecord | Mapping[str, object]) -> Measured:
    """What a run measured, as rows; taken from the record's names once where :func:`check_record` has seen it.

    Raises:
        DataError: The record's metrics are no object.
    """
    found = record.get("measured")
    if isinstance(found, Measured):
        return found
    metrics = record.get("metrics", {})
    if not isinstance(metrics, Mapping):
        raise DataError(f"metrics is {metrics!r:.60}; accepted: an object of named scores. Make the run anew.")
    return measured_by_names(metrics)


def record_key(record: RunRecord) -> tuple[str, str, int]:
    """Recipe, size and seed."""
    return record["recipe"], record["size"], record["seed"]


def check_record(record: Mapping[str, object]) -> RunRecord:
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
    whole = cast("RunRecord", {**record})  # each of its fields has been looked at
    _check_scores(whole["metrics"], "")
    whole["measured"] = measured_of(record)
    return whole


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
