"""A published table beside our runs: every printed number with ours, the difference, a verdict, and what is missing.

Numbers come from run records (``results/``, or run folders) and from nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from empatheia.errors import DataError
from empatheia.metrics.published import Published
from empatheia.metrics.records import RunRecord, record_key, whole_records
from empatheia.reading import files_below
from empatheia_research.recipes.needs import runs_to_make_first
from empatheia_research.recipes.recipe import load_recipe, recipe_sizes
from empatheia_research.reports.claims import Compared, claims_of, compared
from empatheia_research.reports.lines import PAPER_SEEDS, Line, grouped, lines_of_row, row_of, scores_for, seeds_of
from empatheia_research.reports.targets import (
    Note,
    Reason,
    Target,
    answering,
    is_automatic,
    notes_of,
    reason_of,
    tables,
)
from empatheia_research.shipped import recipes_root

_RANKS = {"smoke": 0, "cpu": 1, "full": 2}


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
        lines: Every automatic number, row by row; within a row run by run. Runs of size ``row`` are not among them.
        other: Numbers that no program computes (ratings, facts about data), with the reason.
        missing: Runs to make first: one of every recipe of the table, at the size asked for.
        as_published: Runs to make besides, to compare at the published size and number of seeds.
        notes: What may explain differences; the first is note 1.
        runs: The records used.
        left_out: Smoke runs of the table's recipes that are not shown, in words.
        row_lines: Numbers that runs of size ``row`` measured; none is compared with print, but with each other.
        claims: Differences between rows that the paper claims, printed and ours, by size.
        size: That was asked for.
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
    row_lines: tuple[Line, ...] = ()
    claims: tuple[Compared, ...] = ()
    size: str = "cpu"

    @property
    def is_smoke(self) -> bool:
        """Whether smoke runs are shown."""
        return any(line.size == "smoke" for line in self.lines)

    @property
    def n_rows(self) -> int:
        """Rows with an automatic number."""
        return len({row_of(line.number) for line in self.lines})

    @property
    def n_rows_with_recipe(self) -> int:
        """Rows a recipe answers."""
        return len({row_of(line.number) for line in self.lines if line.recipe})

    @property
    def n_rows_with_reason(self) -> int:
        """Rows that no recipe answers, with a reason."""
        answered = {row_of(line.number) for line in self.lines if line.recipe}
        return len({row_of(line.number) for line in self.lines if line.reason is not None} - answered)

    @property
    def n_rows_with_neither(self) -> int:
        """Rows with a number that has neither recipe nor reason."""
        return len({row_of(line.number) for line in self.lines if not line.recipe and line.reason is None})

    @property
    def n_rows_with_run(self) -> int:
        """Rows with at least one run, those of size ``row`` left out."""
        return len({row_of(line.number) for line in self.lines if line.verdict is not None})

    @property
    def n_rows_at_row_size(self) -> int:
        """Rows with a run of size ``row``."""
        return len({row_of(line.number) for line in self.row_lines})

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "table": self.key,
            "printed_as": self.table,
            "rows": self.n_rows,
            "rows_with_recipe": self.n_rows_with_recipe,
            "rows_with_reason": self.n_rows_with_reason,
            "rows_with_run": self.n_rows_with_run,
            "rows_at_row_size": self.n_rows_at_row_size,
            "lines": [line.to_dict() for line in self.lines],
            "at_row_size": [line.to_dict() for line in self.row_lines],
            "claims": [claim.to_dict() for claim in self.claims],
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
        key: See :func:`~empatheia_research.reports.targets.tables`.
        targets: From :func:`~empatheia_research.reports.targets.read_targets`.
        records: From :func:`read_runs`. Runs of size ``smoke`` are left out, unless that size is asked for; then they
            are shown as not comparable.
        size: Of the runs that are called missing; a larger run stands for a smaller one. ``cpu`` where a recipe has
            no ``row``.
        results: Where the commands keep records.
    """
    numbers = tables()[key]
    shown = [record for record in records if record["size"] != "smoke" or size == "smoke"]
    rows = list(grouped(numbers, row_of).values())
    apart = grouped(shown, lambda record: record["size"] == "row")
    notes: list[Note] = []
    lines, asked = _beside_runs(rows, targets, apart.get(False, ()), notes)
    at_row_size, _ = _beside_runs(rows, targets, apart.get(True, ()), notes)
    row_lines = [line for line in at_row_size if line.verdict is not None and not math.isnan(line.verdict.ours)]
    runs = {(line.recipe, line.size) for line in (*lines, *row_lines) if line.verdict is not None}
    used = [record for record in shown if (record["recipe"], record["size"]) in runs]
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
        tuple(row_lines),
        tuple(compared(claims_of(key), targets, records)),
        size,
    )


def _beside_runs(
    rows: Iterable[Sequence[Published]], targets: Sequence[Target], records: Iterable[RunRecord], notes: list[Note]
) -> tuple[list[Line], dict[str, Target]]:
    """The lines of all rows, and the recipes that answer a number; notes that the lines name are added to the list."""
    by_recipe = grouped(records, lambda record: record["recipe"])
    lines: list[Line] = []
    asked: dict[str, Target] = {}
    for row in rows:
        automatic = list(filter(is_automatic, row))
        found = {target.recipe: target for number in automatic for target in answering(number, targets)}
        asked |= found
        own = lines_of_row(automatic, list(found.values()), by_recipe)
        lines += [_marked(line, by_recipe.get(line.recipe, ()), notes) for line in own]
    return lines, asked


def _not_computed(rows: Iterable[Sequence[Published]]) -> Iterator[tuple[Published, Reason]]:
    """Numbers that no program computes, row by row, each with the reason."""
    for row in rows:
        for number in row:
            if not is_automatic(number):
                yield number, reason_of(number) or Reason("undefined", "No reason is known.")


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
        own = [r for r in records if r["recipe"] == target.recipe and _stands_for(r["size"], own_size)]
        have = {record["seed"] for record in own if _measures_every_row(record, target, numbers)}
        if have and not single and not as_published:  # a run with another seed will do
            continue
        left = tuple(seed for seed in seeds if seed not in have)
        if left:
            command, after = _command(target, own_size, left, results), _commands_before(target, own_size, left)
            yield MissingRun(target, own_size, left, command, len(own) > len(have), after)


def _stands_for(size: str, wanted: str) -> bool:
    """Whether a run of one size makes one of another needless; one of size ``row`` stands for itself alone."""
    return size == wanted if "row" in (size, wanted) else _RANKS[size] >= _RANKS[wanted]


def _own_size(target: Target, size: str) -> str:
    return size if size in recipe_sizes(target.file) else "cpu"


def _seeds_of_single_runs(target: Target, numbers: Iterable[Published]) -> set[int]:
    return {seed for number in numbers if target.answers(number) for seed in seeds_of(number)}


def _commands_before(target: Target, size: str, seeds: Sequence[int]) -> tuple[str, ...]:
    """Commands of the runs that the recipe's runs read and that are not here, in order."""
    asked = [load_recipe(target.file, size=size, seed=seed) for seed in seeds]
    return tuple(f"{_typed(run.file, run.size)} --seed {run.seed}" for run in runs_to_make_first(asked))


def _measures_every_row(record: RunRecord, target: Target, numbers: Iterable[Published]) -> bool:
    """Whether the run has a score in each row its recipe answers; records of older versions may lack test folds."""
    own = [n for n in numbers if target.answers(n) and record["seed"] in (seeds_of(n) or (record["seed"],))]
    return {row_of(number) for number in own if scores_for(record, number)} == set(map(row_of, own))


def _command(target: Target, size: str, seeds: Sequence[int], results: Path) -> str:
    told = "" if tuple(seeds) == (target.seed,) else "".join(f" --seed {seed}" for seed in seeds)
    return f"{_typed(target.file, size)}{told} --record {quote(str(results))}"


def _typed(file: Path, size: str) -> str:
    if file.is_relative_to(recipes_root()):  # works everywhere, see find_recipe
        file = "recipes" / file.relative_to(recipes_root())
    elif file.is_relative_to(Path.cwd()):
        file = file.relative_to(Path.cwd())
    return f"empatheia train {quote(str(file))} --size {size}"
