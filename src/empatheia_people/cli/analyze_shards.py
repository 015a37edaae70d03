"""``empatheia analyze FOLDER --engine dask``: files of any size, by several processes or a cluster, into Parquet.

Each file is cut into shards of as many rows as the plain command reads at a time, so the answers are the same; each
shard becomes a Parquet file with the caller's columns and ours. What is there and fits is not done again.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from empatheia.cli.output import say
from empatheia.errors import ConfigError, DataError
from empatheia.files.bulk import ROWS_PER_CHUNK, Work, record_of
from empatheia.files.result_file import model_mark
from empatheia.files.result_table import beside, flat
from empatheia.files.rows import SUFFIXES, Row, item_of, read_rows
from empatheia.files.talks import Notes
from empatheia.listener.progress import SECONDS_BETWEEN, duration
from empatheia.reading import UnreadableError, parse_json, read_record
from empatheia.records.dialogue import Dialogue
from empatheia.text.inputs import as_dialogue
from empatheia_people.curation.run import Progress
from empatheia_people.curation.shards import finish, is_made, pyarrow, rows_of, settings_hash, whole_file, write_json
from empatheia_people.curation.workers import DiedError, Workers, started

if TYPE_CHECKING:
    from empatheia.listener import Listener

T = TypeVar("T", "FileTask", "ShardTask")
KINDS = (*SUFFIXES, ".parquet")
OWN = ("row", "emotion", "probability", "side", "causes", "uncertain", "error", "analysis")
"""Our columns, ``empatheia_NAME`` if the caller has one; ``analysis`` is what ``analyze --json`` prints."""
RESULT = "analysis.json"
_ROWS = "rows"
_HIDDEN = ("__number", "__item", "__error", "__id")


@dataclass(frozen=True, slots=True)
class FileTask:
    """A file to cut.

    Attributes:
        path: Of the file.
        folder: Where its shards go.
        column: With the text; None = a usual name.
        key: Of the file as it is.
    """

    path: str
    folder: str
    column: str | None
    key: str


@dataclass(frozen=True, slots=True)
class ShardTask:
    """A shard to analyse.

    Attributes:
        rows: File of its rows.
        out: File of the result.
        key: Of rows and model.
        model: Name or folder.
        batch_size: Texts in a pass.
    """

    rows: str
    out: str
    key: str
    model: str
    batch_size: int


class Analyzed(TypedDict):
    """What ``analysis.json`` holds.

    Attributes:
        key: Of inputs, settings and code.
        files, rows, bad, shards: How many; bad rows say why in their column ``error``.
        problems: Of files that could not be read.
        outputs: Names of the shards.
    """

    key: str
    files: int
    rows: int
    bad: int
    shards: int
    problems: list[str]
    outputs: list[str]


def analyze_files(
    place: Path,
    out: Path,
    *,
    model: str,
    column: str | None,
    batch_size: int,
    workers: int,
    scheduler: str | None,
) -> Analyzed:
    """Analyses a file or all files of a folder.

    Returns:
        Numbers of files, rows and bad rows.

    Raises:
        DataError: There is nothing to read, no row can be used, or a worker died again and again.
        ConfigError: The result would lie among the inputs.
    """
    files = files_of(place)
    if out.resolve().is_relative_to(place.resolve()):
        raise ConfigError(f"{out} lies in {place}, where it would be read the next time; choose another folder.")
    mark = model_mark(model)
    names = _names(files, place)
    keys = [settings_hash(str(path), path.stat().st_size, path.stat().st_mtime_ns, column) for path in files]
    out.mkdir(parents=True, exist_ok=True)
    whole = settings_hash(keys, names, mark, batch_size)
    if (done := _finished(out, whole)) is not None:
        return done
    tell = told_shards()
    with started(workers, "4GB", scheduler, say) as own:
        cuts = [
            FileTask(str(path), str(out / _ROWS / name), column, key)
            for path, name, key in zip(files, names, keys, strict=True)
        ]
        shards = _each(own, cut_file, cuts, "cut", tell)
        tasks = [
            ShardTask(
                str(Path(cut.folder) / f"{number:05}.parquet"),
                str(out / f"{name}-{number:05}.parquet"),
                settings_hash(cut.key, number, mark, batch_size),
                model,
                batch_size,
            )
            for cut, name, made in zip(cuts, names, shards, strict=True)
            for number in range(made["shards"])
        ]
        parts = _each(own, analyze_shard, tasks, "analyze", tell)
    record: Analyzed = {
        "key": whole,
        "files": len(files),
        "rows": sum(part["rows"] for part in parts),
        "bad": sum(part["bad"] for part in parts),
        "shards": len(parts),
        "problems": [problem for made in shards for problem in made["problems"]],
        "outputs": [Path(task.out).name for task in tasks],
    }
    if record["rows"] == record["bad"]:
        first = f" ({record['problems'][0]})" if record["problems"] else ""
        raise DataError(f"no row of {place} could be used{first}; the column `error` of {out} says why.")
    write_json(out / RESULT, record)
    shutil.rmtree(out / _ROWS, ignore_errors=True)
    return record


def told_shards() -> Callable[[Progress], None]:
    """Tells on stderr how far work in shards is: each stage's first and last line, and one now and then."""
    told = 0.0

    def tell(progress: Progress) -> None:
        nonlocal told
        now = time.monotonic()
        is_end = progress.done == progress.total
        if not is_end and now - told < SECONDS_BETWEEN:
            return
        told = now
        left = "" if is_end or progress.seconds_left is None else f", {duration(progress.seconds_left)} left"
        say(f"{progress.stage}: {progress.done:,} of {progress.total:,} shards{left}")

    return tell


def files_of(place: Path) -> list[Path]:
    """The file, or all files of a folder that can be read, in order.

    Raises:
        DataError: There is none.
    """
    found = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    files = [path for path in found if path.suffix.lower() in KINDS and not path.name.startswith(".")]
    if not files:
        raise DataError(f"nothing to analyse in {place}; accepted: files with a suffix of {', '.join(KINDS)}.")
    return files


def _names(files: Sequence[Path], place: Path) -> list[str]:
    """A plain name for each, all different."""
    root = place if place.is_dir() else place.parent
    out: list[str] = []
    for path in files:
        name = "-".join(path.relative_to(root).with_suffix("").parts)
        out.append(name if name not in out else f"{name}-{path.suffix[1:]}-{len(out)}")
    return out


def _finished(out: Path, key: str) -> Analyzed | None:
    try:
        record = read_record(out / RESULT)
    except (OSError, UnreadableError):
        return None
    there = all((out / str(name)).is_file() for name in record.get("outputs", ()))
    return Analyzed(**record) if record.get("key") == key and there else None


def _each(
    own: Workers, function: Callable[[T], dict[str, Any]], tasks: Sequence[T], stage: str, tell: Callable
) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = [{} for _ in tasks]
    begun = time.monotonic()
    tell(Progress(stage, 0, len(tasks), None))
    for n, (place, result) in enumerate(own.results(function, tasks), 1):
        if isinstance(result, DiedError):
            raise DataError(f"{asdict(tasks[place])}: {result}. Repeat the command to continue.")
        out[place] = result
        passed = time.monotonic() - begun
        tell(Progress(stage, n, len(tasks), passed * (len(tasks) - n) / n))
    return out


# -- rows ----------------------------------------------------------------------------------------------------


def cut_file(task: FileTask) -> dict[str, object]:
    """Rows of a file as Parquet shards, with the caller's columns; a file that cannot be read has none and says why."""
    folder = Path(task.folder)
    if (made := is_made(folder / "cut", task.key)) is not None:
        return made
    n, chunk, problems, notes = 0, [], [], Notes()
    try:
        for pair in _pairs(Path(task.path), task.column, notes):
            chunk.append(pair)
            if len(chunk) == ROWS_PER_CHUNK:
                _write_rows(folder / f"{n:05}.parquet", chunk)
                n, chunk = n + 1, []
    except (DataError, OSError) as error:
        problems.append(f"{task.path}: {error}")
    if chunk:
        _write_rows(folder / f"{n:05}.parquet", chunk)
        n += 1
    problems += (f"{task.path}: {line}" for line in notes.lines())
    files = [folder / f"{number:05}.parquet" for number in range(n)]
    return finish(folder / "cut", task.key, {"shards": n, "problems": problems}, files)


def _pairs(path: Path, column: str | None, notes: Notes) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Each row with all its columns."""
    if path.suffix.lower() == ".parquet":
        for number, fields in enumerate(rows_of(path), 1):
            try:
                yield Row(number, item_of(fields, column), None, fields.get("id")), fields
            except DataError as error:
                yield Row(number, None, str(error), fields.get("id")), fields
        return
    seen: list[dict[str, Any]] = []

    def remembered(record: object, name: str | None, notes: Notes) -> str | Dialogue:
        seen[:] = [record] if isinstance(record, dict) else []
        return item_of(record, name, notes=notes)

    for row in read_rows(path, column, notes=notes, read_item=remembered):
        fields = dict(row.cells[0]) if row.cells else dict(seen[0]) if seen else {}
        seen.clear()
        yield row, fields


def _write_rows(path: Path, pairs: Sequence[tuple[Row, dict[str, Any]]]) -> None:
    arrow = pyarrow()
    names = list(dict.fromkeys(name for _, fields in pairs for name in fields))
    columns: dict[str, Any] = {}
    for name in names:
        values = [fields.get(name) for _, fields in pairs]
        try:
            columns[name] = arrow.array(values)
        except (arrow.ArrowException, TypeError, ValueError, OverflowError):  # of several kinds
            columns[name] = arrow.array([None if value is None else _text(value) for value in values], arrow.string())
    columns["__number"] = arrow.array([row.number for row, _ in pairs], arrow.int64())
    columns["__item"] = arrow.array([_packed(row.item) for row, _ in pairs], arrow.string())
    columns["__error"] = arrow.array([row.error for row, _ in pairs], arrow.string())
    columns["__id"] = arrow.array([json.dumps(row.id, default=str) for row, _ in pairs], arrow.string())
    with whole_file(path) as part:
        arrow.parquet.write_table(arrow.table(columns), part, compression="zstd")


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _packed(item: str | Dialogue | None) -> str | None:
    if item is None or isinstance(item, str):
        return None if item is None else json.dumps(item)
    return json.dumps(item.to_dict())


def _unpacked(text: str | None) -> str | Dialogue | None:
    value = None if text is None else parse_json(text)
    if isinstance(value, dict):
        return Dialogue.from_dict(value)
    return value


# -- analysis ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _listener(model: str) -> Listener:
    """One a process, on one thread."""
    import torch

    from empatheia.listener import Listener

    torch.set_num_threads(1)
    return Listener.load(model)


def analyze_shard(task: ShardTask) -> dict[str, object]:
    """A shard's rows with what the plain command says of each."""
    out = Path(task.out)
    if (made := is_made(out, task.key)) is not None:
        return made
    arrow = pyarrow()
    table = arrow.parquet.read_table(task.rows)
    hidden = {name: table.column(name).to_pylist() for name in _HIDDEN}
    rows = [
        Row(number, _unpacked(item), error, parse_json(identity))
        for number, item, error, identity in zip(*hidden.values(), strict=True)
    ]
    listener = _listener(task.model)
    work = Work(as_dialogue, lambda items, moved: listener.analyze(items, batch_size=task.batch_size, progress=moved))
    records = [record_of(row, found) for row, found in work.answers(rows)]
    ours = [{**flat(record), "analysis": json.dumps(record, ensure_ascii=False)} for record in records]
    table = table.drop_columns(list(_HIDDEN))
    kinds = {"row": arrow.int64(), "probability": arrow.float64()}
    for name, shown in beside(table.column_names, OWN).items():
        table = table.append_column(shown, arrow.array(_values(name, records, ours), kinds.get(name, arrow.string())))
    with whole_file(out) as part:
        arrow.parquet.write_table(table, part, compression="zstd")
    return finish(out, task.key, {"rows": len(records), "bad": sum("error" in record for record in records)})


def _values(name: str, records: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]]) -> list[Any]:
    """A column of ours: the probability as it is, the others as a table has them; None where there is nothing."""
    if name == "probability":
        return [None if "error" in one else one["emotions"][one["emotion"]] for one in records]
    return [one.get(name) if one.get(name) != "" else None for one in ours]
