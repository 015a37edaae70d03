"""A published table beside our runs: every printed number with ours, the difference, a verdict, and what is missing.

Numbers come from run records (``results/``, or run folders) and from nowhere else.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import TypeVar

from empatheia.config import load_recipe, recipe_sizes, recipes_root
from empatheia.config.needs import runs_to_make_first
from empatheia.errors import DataError
from empatheia.metrics.published import DEFINITIONS, Published, Verdict, compare
from empatheia.metrics.records import RunRecord, measured_of, record_key, whole_records
from empatheia.metrics.score import Score
from empatheia.reading import files_below
from empatheia.reports.targets import Note, Reason, Target, answering, is_automatic, notes_of, reason_of, tables

PAPER_SEEDS: Mapping[str, tuple[int, ...]] = MappingProxyType({"gao2021": (1024, 2048, 3170, 4096, 5120)})
"""Seeds of papers that print a mean over several runs."""
CANDIDATES: Mapping[str, str] = MappingProxyType({"candidates=ED": "own", "candidates=ED+DD": "own+dailydialog"})
"""Printed sets of candidates, as ``data.candidates`` of a recipe calls them."""
_RUN_OF_PAPER = re.compile(r"run (\d) of 5")
_TEST_FOLD = re.compile(r"test (\d)$")
_RANKS = {"smoke": 0, "row": 1, "cpu": 2, "full": 3}
_Thing = TypeVar("_Thing")
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Line:
    """A printed number beside a run of a recipe, or beside none.

    Attributes:
        number: What was printed.
        recipe: The recipe whose run it is; empty where no recipe answers the number.
        size: Of the run; empty where there is none.
        seeds: Of the runs the value is the mean of.
        variant: What distinguishes several scores of one run, e.g. the threshold; or empty.
        verdict: Ours beside the printed number; None without a run.
        deviation: Sample deviation over seeds, in the unit of print, or None.
        reason: Why there is no recipe, or None.
        marks: Numbers of the notes that belong to it, from 1.
    """

    number: Published
    recipe: str = ""
    size: str = ""
    seeds: tuple[int, ...] = ()
    variant: str = ""
    verdict: Verdict | None = None
    deviation: float | None = None
    reason: Reason | None = None
    marks: tuple[int, ...] = ()

    @property
    def run(self) -> str:
        """Recipe, size, seeds and variant in words; empty without a run."""
        if self.verdict is None:
            return ""
        seeds = f"seed{'s' if len(self.seeds) > 1 else ''} {', '.join(map(str, self.seeds))}"
        return f"{self.recipe} {self.size}, {seeds}" + (f"; {self.variant}" if self.variant else "")

    @property
    def difference(self) -> float | None:
        """Ours less the printed value; None without a run, or where the two do not compare."""
        return None if self.verdict is None or math.isnan(self.verdict.difference) else self.verdict.difference

    @property
    def is_inside(self) -> bool | None:
        """Whether the printed value lies in our interval; None without one, or where the two do not compare."""
        if self.verdict is None or self.verdict.interval is None or self.difference is None:
            return None
        low, high = self.verdict.interval
        return low <= self.number.value <= high

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "row": self.number.row,
            "dataset": self.number.dataset,
            "setting": self.number.setting,
            "metric": self.number.metric,
            "published": self.number.value,
            "published_std": self.number.std,
            "recipe": self.recipe or None,
            "size": self.size or None,
            "seeds": list(self.seeds),
            "variant": self.variant or None,
            **self._verdict_dict(),
            "reason": None if self.reason is None else {"kind": self.reason.kind, "text": self.reason.text},
            "recipe_to_come": None if self.reason is None else self.reason.recipe or None,
            "notes": list(self.marks),
        }

    def _verdict_dict(self) -> dict[str, object]:
        """Ours beside the printed number; None in every place without a run."""
        verdict = self.verdict
        if verdict is None:
            names = ("ours", "interval", "std", "difference", "verdict", "published_in_interval", "score")
            return {**dict.fromkeys(names), "std": self.deviation}
        return {
            "ours": None if math.isnan(verdict.ours) else verdict.ours,
            "interval": None if verdict.interval is None else list(verdict.interval),
            "std": self.deviation,
            "difference": self.difference,
            "verdict": verdict.verdict,
            "published_in_interval": self.is_inside,
            "score": verdict.score or None,
        }


@dataclass(frozen=True, slots=True)
class MissingRun:
    """A run that no record tells of.

    Attributes:
        target: Its recipe.
        size: ``smoke``, ``row``, ``cpu`` or ``full``.
        seeds: Seeds without a record.
        command: What makes it and keeps its record.
        is_partial: There is a record, but an old one without some rows of the table; the run must be made anew.
        after: Commands of the runs it reads that are not here, in order.
    """

    target: Target
    size: str
    seeds: tuple[int, ...]
    command: str
    is_partial: bool = False
    after: tuple[str, ...] = ()

    def __str__(self) -> str:
        told = ["anew: the record at hand lacks rows of this table"] if self.is_partial else []
        told += [f"after: {'; '.join(self.after)}"] if self.after else []
        return self.command + (f"  # {'; '.join(told)}" if told else "")

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        facts = {"recipe": self.target.recipe, "size": self.size, "seeds": list(self.seeds), "command": self.command}
        return {**facts, "after": list(self.after)}


@dataclass(frozen=True, slots=True)
class TableReport:
    """A published table beside our runs.

    Attributes:
        key: E.g. ``gao2021/2``.
        paper: Key of the paper.
        table: As printed.
        lines: Every automatic number, row by row; within a row run by run.
        other: Numbers that no program computes (ratings, facts about data), with the reason.
        missing: Runs to make first: one of every recipe of the table, at the size asked for.
        as_published: Runs to make besides, to compare at the published size and number of seeds.
        notes: What may explain differences; the first is note 1.
        runs: The records used.
        left_out: Smoke runs of the table's recipes that are not shown, in words.
    """

    key: str
    paper: str
    table: str
    lines: tuple[Line, ...]
    other: tuple[tuple[Published, Reason], ...]
    missing: tuple[MissingRun, ...]
    as_published: tuple[MissingRun, ...]
    notes: tuple[Note, ...]
    runs: tuple[RunRecord, ...]
    left_out: tuple[str, ...] = ()

    @property
    def is_smoke(self) -> bool:
        """Whether smoke runs are shown."""
        return any(line.size == "smoke" for line in self.lines)

    @property
    def n_rows(self) -> int:
        """Rows with an automatic number."""
        return len({_row(line.number) for line in self.lines})

    @property
    def n_rows_with_recipe(self) -> int:
        """Rows a recipe answers."""
        return len({_row(line.number) for line in self.lines if line.recipe})

    @property
    def n_rows_with_run(self) -> int:
        """Rows with at least one run."""
        return len({_row(line.number) for line in self.lines if line.verdict is not None})

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "table": self.key,
            "printed_as": self.table,
            "rows": self.n_rows,
            "rows_with_recipe": self.n_rows_with_recipe,
            "rows_with_run": self.n_rows_with_run,
            "lines": [line.to_dict() for line in self.lines],
            "not_computed": [{"row": n.row, "metric": n.metric, "reason": r.text} for n, r in self.other],
            "missing": [run.to_dict() for run in self.missing],
            "as_published": [run.to_dict() for run in self.as_published],
            "left_out": list(self.left_out),
            "notes": [{"text": note.text, "see": note.see or None} for note in self.notes],
        }


def read_runs(results: Path, runs: Iterable[Path] = ()) -> list[RunRecord]:
    """Records of a results folder and of finished runs; of the same recipe, size and seed the last one counts.

    A record that is not whole is told and left out.

    Args:
        results: Folder of kept records; it need not exist.
        runs: Run folders, or folders with run folders in them.

    Raises:
        DataError: A run folder holds no finished run, or there are records and none of them is whole.
    """
    files = files_below(results, "*-seed*.json")
    for folder in runs:
        found = files_below(folder, "metrics.json")
        if not found:
            raise DataError(f"{folder} holds no finished run (metrics.json); name a run folder or a parent of some.")
        files += found
    records: dict[tuple[str, str, int], RunRecord] = {}
    for file, record in whole_records(files):
        record["file"] = str(file)
        records[record_key(record)] = record
    return [records[key] for key in sorted(records)]


def report_table(
    key: str,
    targets: Sequence[Target],
    records: Sequence[RunRecord],
    size: str = "cpu",
    results: Path = Path("results"),
) -> TableReport:
    """Sets a printed table beside the runs.

    Args:
        key: See :func:`~empatheia.reports.targets.tables`.
        targets: From :func:`~empatheia.reports.targets.read_targets`.
        records: From :func:`read_runs`. Runs of size ``smoke`` are left out, unless that size is asked for; then they
            are shown as not comparable.
        size: Of the runs that are called missing; a larger run stands for a smaller one. ``cpu`` where a recipe has
            no ``row``.
        results: Where the commands keep records.
    """
    numbers = tables()[key]
    shown = [record for record in records if record["size"] != "smoke" or size == "smoke"]
    by_recipe = _grouped(shown, lambda record: record["recipe"])
    rows = list(_grouped(numbers, _row).values())
    lines, notes, asked = _beside_runs(rows, targets, by_recipe)
    runs = {line.recipe: None for line in lines if line.verdict is not None}
    used = [record for record in shown if record["recipe"] in runs]
    left_out = [record for record in records if record["size"] == "smoke" != size and record["recipe"] in asked]
    return TableReport(
        key,
        numbers[0].paper,
        numbers[0].table,
        tuple(lines),
        tuple(_not_computed(rows)),
        tuple(_missing(asked.values(), numbers, shown, size, results)),
        tuple(_missing(asked.values(), numbers, shown, "full", results, as_published=True)),
        tuple(notes),
        tuple(used),
        tuple(f"{record['recipe']} smoke, seed {record['seed']}" for record in left_out),
    )


def _grouped(things: Iterable[_Thing], key: Callable[[_Thing], _Key]) -> dict[_Key, list[_Thing]]:
    """Things with the same key together, in the order in which the keys are met."""
    out: dict[_Key, list[_Thing]] = {}
    for thing in things:
        out.setdefault(key(thing), []).append(thing)
    return out


def _beside_runs(
    rows: Iterable[Sequence[Published]], targets: Sequence[Target], by_recipe: Mapping[str, Sequence[RunRecord]]
) -> tuple[list[Line], list[Note], dict[str, Target]]:
    """The lines of all rows, the notes that they name, and the recipes that answer a number."""
    notes: list[Note] = []
    lines: list[Line] = []
    asked: dict[str, Target] = {}
    for row in rows:
        automatic = list(filter(is_automatic, row))
        found = {target.recipe: target for number in automatic for target in answering(number, targets)}
        asked |= found
        own = _row_lines(automatic, list(found.values()), by_recipe)
        lines += [_marked(line, by_recipe.get(line.recipe, ()), notes) for line in own]
    return lines, notes, asked


def _not_computed(rows: Iterable[Sequence[Published]]) -> Iterator[tuple[Published, Reason]]:
    """Numbers that no program computes, row by row, each with the reason."""
    for row in rows:
        for number in row:
            if not is_automatic(number):
                yield number, reason_of(number) or Reason("undefined", "No reason is known.")


def scores_for(record: RunRecord, number: Published) -> list[tuple[str, Score]]:
    """The scores of a run that are measured as the printed number is: (variant, score).

    RECCON's rows name the fold they are tested on, and have a score at the published threshold and one at the threshold
    chosen on valid. Retrieval's rows name the candidates: ``candidates=ED`` are the corpus's own, ``candidates=ED+DD``
    DailyDialog's besides; the first set of a run has its scores without that label.
    """
    definition = DEFINITIONS.get((number.paper, number.metric))
    if not isinstance(definition, tuple):
        return []
    metric, measured = definition[0], measured_of(record)
    if fold := _TEST_FOLD.search(number.row):
        of = "spans" if metric.startswith("span_") else "pairs"
        found = measured.where(metric, fold=fold.group(1), of=of)
        return [(_threshold_name(row.labels["threshold"]), row.score) for row in found]
    labels = {}
    for part in number.setting.split("; "):
        if "=" in part:
            labels = _candidates(record, part)
    score = measured.score(metric, **labels)
    return [] if score is None else [("", score)]


def _candidates(record: RunRecord, setting: str) -> dict[str, str]:
    """The label of a score over the candidates of a printed setting; the first set of a run has none."""
    known = CANDIDATES.get(setting, setting)
    first = next(iter((record.get("data") or {}).get("candidates") or ()), None)
    return {} if known == first else {"candidates": known}


def _threshold_name(chosen: str) -> str:
    return f"threshold {chosen}, as published" if chosen in ("0", "0.5") else f"threshold {chosen}"


def _row(number: Published) -> tuple[str, str, str]:
    """What one row of print is: its settings that print different metrics are one row."""
    setting = number.setting if _RUN_OF_PAPER.search(number.setting) else ""
    return number.row, number.dataset, setting


def _row_lines(
    numbers: Sequence[Published], found: Sequence[Target], by_recipe: Mapping[str, Sequence[RunRecord]]
) -> Iterator[Line]:
    """Lines of one printed row: first every run, then what no run measured."""
    with_run: set[Published] = set()
    for target in found:
        own = by_recipe.get(target.recipe, ())
        for size, of_size in _grouped(own, lambda record: record["size"]).items():
            measured = [(n, _by_variant(n, of_size)) for n in numbers if target.answers(n)]
            for variant in dict.fromkeys(v for _, variants in measured for v in variants):
                for number, variants in measured:
                    with_run.add(number)
                    if variant in variants:
                        yield _line(number, target.recipe, size, variant, variants[variant])
                    else:
                        (verdict,) = compare([], {number.metric: number})
                        seeds = tuple(record["seed"] for record in of_size)
                        yield Line(number, target.recipe, size, seeds, variant, verdict)
    yield from (_line_without_run(number, found) for number in numbers if number not in with_run)


def _line_without_run(number: Published, found: Sequence[Target]) -> Line:
    """With the first recipe that answers the number, or the reason why there is none."""
    target = next((target for target in found if target.answers(number)), None)
    return Line(number, reason=reason_of(number)) if target is None else Line(number, target.recipe)


def _by_variant(number: Published, records: Iterable[RunRecord]) -> dict[str, list[tuple[int, Score]]]:
    out: dict[str, list[tuple[int, Score]]] = {}
    for record in records:
        if record["seed"] in (_seeds_of(number) or (record["seed"],)):
            for variant, score in scores_for(record, number):
                out.setdefault(variant, []).append((record["seed"], score))
    return out


def _seeds_of(number: Published) -> tuple[int, ...]:
    """The one seed a printed single run belongs to; empty where any seed will do."""
    found = _RUN_OF_PAPER.search(number.setting)
    return (PAPER_SEEDS[number.paper][int(found.group(1)) - 1],) if found else ()


def _line(number: Published, recipe: str, size: str, variant: str, measured: Sequence[tuple[int, Score]]) -> Line:
    score = measured[0][1]
    deviation = None
    unit = DEFINITIONS[number.paper, number.metric][1]
    if {unit, score.unit} <= {"percent", "fraction"}:
        measured = [(seed, own.in_unit(unit)) for seed, own in measured]
        score = measured[0][1]
    if len(measured) > 1:
        values = [own.value for _, own in measured]
        score = replace(score, value=statistics.fmean(values), interval=None)
        deviation = statistics.stdev(values)
    why = {number.metric: "measured on the self-written sample"} if size == "smoke" else {}
    (verdict,) = compare([score], {number.metric: number}, why)
    return Line(number, recipe, size, tuple(seed for seed, _ in measured), variant, verdict, deviation)


def _marked(line: Line, records: Sequence[RunRecord], notes: list[Note]) -> Line:
    """The line with the numbers of its notes, those of its own runs among them; new notes are added to the list."""
    if line.reason is not None and line.reason.kind == "undefined":
        return line
    own = notes_of(line.number)
    of_line = [r for r in records if r["size"] == line.size and r["seed"] in line.seeds and r.get("note")]
    if line.verdict is not None:
        own += [Note(f"{line.recipe}: {note}") for note in dict.fromkeys(str(r.get("note")) for r in of_line)]
    for note in own:
        if note not in notes:
            notes.append(note)
    return replace(line, marks=tuple(sorted(notes.index(note) + 1 for note in own)))


def _missing(
    targets: Iterable[Target],
    numbers: Sequence[Published],
    records: Sequence[RunRecord],
    size: str,
    results: Path,
    as_published: bool = False,
) -> Iterator[MissingRun]:
    for target in targets:
        own_size = _own_size(target, size)
        seeds: tuple[int, ...] = (target.seed,)
        single = _seeds_of_single_runs(target, numbers)
        if single or as_published:
            seeds = PAPER_SEEDS.get(target.paper, seeds)
        own = [r for r in records if r["recipe"] == target.recipe and _RANKS[r["size"]] >= _RANKS[own_size]]
        have = {record["seed"] for record in own if _measures_every_row(record, target, numbers)}
        if have and not single and not as_published:  # a run with another seed will do
            continue
        left = tuple(seed for seed in seeds if seed not in have)
        if left:
            command, after = _command(target, own_size, left, results), _commands_before(target, own_size, left)
            yield MissingRun(target, own_size, left, command, len(own) > len(have), after)


def _own_size(target: Target, size: str) -> str:
    return size if size in recipe_sizes(target.file) else "cpu"


def _seeds_of_single_runs(target: Target, numbers: Iterable[Published]) -> set[int]:
    return {seed for number in numbers if target.answers(number) for seed in _seeds_of(number)}


def _commands_before(target: Target, size: str, seeds: Sequence[int]) -> tuple[str, ...]:
    """Commands of the runs that the recipe's runs read and that are not here, in order."""
    asked = [load_recipe(target.file, size=size, seed=seed) for seed in seeds]
    return tuple(f"{_typed(run.file, run.size)} --seed {run.seed}" for run in runs_to_make_first(asked))


def _measures_every_row(record: RunRecord, target: Target, numbers: Iterable[Published]) -> bool:
    """Whether the run has a score in each row its recipe answers; records of older versions may lack test folds."""
    own = [n for n in numbers if target.answers(n) and record["seed"] in (_seeds_of(n) or (record["seed"],))]
    return {_row(number) for number in own if scores_for(record, number)} == set(map(_row, own))


def _command(target: Target, size: str, seeds: Sequence[int], results: Path) -> str:
    told = "" if tuple(seeds) == (target.seed,) else "".join(f" --seed {seed}" for seed in seeds)
    return f"{_typed(target.file, size)}{told} --record {quote(str(results))}"


def _typed(file: Path, size: str) -> str:
    if file.is_relative_to(recipes_root()):  # works everywhere, see find_recipe
        file = "recipes" / file.relative_to(recipes_root())
    elif file.is_relative_to(Path.cwd()):
        file = file.relative_to(Path.cwd())
    return f"empatheia train {quote(str(file))} --size {size}"
