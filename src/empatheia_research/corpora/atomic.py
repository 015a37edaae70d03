"""ATOMIC-2020 (Hwang et al. 2021) and ATOMIC (Sap et al. 2019): commonsense tuples *head, relation, tail*.

The official files ``train.tsv``, ``dev.tsv`` and ``test.tsv`` have three tab-separated fields, no header and no
quotes. Also read: the same with a leading ``split`` field and a header, and the evaluation sample of the official
repository, ``head @@ relation`` and tails joined by ``|``. Heads are events ("PersonX loses ___"), things or event
phrases; the split is by head. A tail ``none`` says that an annotator found nothing to write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import polars as pl

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.reading import Problem, numbered_lines, parse_json, report
from empatheia.registry import nearest
from empatheia.resources import file_sha256, find_corpus_file
from empatheia.taxonomy import RELATIONS
from empatheia_research.corpora.loading import is_sample, sample_root

__all__ = ["sample_root"]

NAME = "atomic"
FOLDER = "atomic"
SPLITS: Mapping[str, tuple[str, ...]] = {
    "train": ("train.tsv",),
    "valid": ("dev.tsv",),
    "test": ("test.tsv", "atomic2020_test_subset.tsv"),
    "v4": ("atomic_v4_dev_tst.tsv",),
}
"""Split to the files that hold it, the whole one first; ``v4`` is the older ATOMIC, six relations of ours."""
GET = (
    "atomic2020_data-feb2021.zip, linked from github.com/allenai/comet-atomic-2020, then put {train,dev,test}.tsv there"
)
ATTRIBUTION = "ATOMIC 2020 (Hwang et al. 2021) and ATOMIC (Sap et al. 2019), CC BY 4.0"
FILE_ROWS: Mapping[str, int] = {
    "train.tsv": 1_076_880,
    "dev.tsv": 102_024,
    "test.tsv": 152_209,
    "atomic2020_test_subset.tsv": 9_563,
    "atomic_v4_dev_tst.tsv": 118_073,
}
"""Rows of each known file; the first three as a public data card gives them."""
RELATION_TUPLES: Mapping[str, int] = {
    "xReact": 81_397,
    "xIntent": 72_677,
    "xNeed": 128_955,
    "xWant": 135_360,
    "xEffect": 115_124,
    "xAttr": 148_194,
    "HasProperty": 5_617,
    "CapableOf": 7_968,
    "Desires": 2_737,
    "Causes": 376,
    "xReason": 334,
}
"""Tuples of the three official files together, for the relations of Chen et al. (2022)."""
ALL_RELATIONS: tuple[str, ...] = (
    *("oEffect", "oReact", "oWant", "xAttr", "xEffect", "xIntent", "xNeed", "xReact", "xWant"),
    *("AtLocation", "CapableOf", "Desires", "HasProperty", "MadeUpOf", "NotDesires", "ObjectUse"),
    *("Causes", "HasSubEvent", "HinderedBy", "isAfter", "isBefore", "isFilledBy", "xReason"),
)
"""The 23 relations of ATOMIC-2020: social, physical, event-centred."""

_BY_FOLDED = {name.lower(): name for name in ALL_RELATIONS}
Persons = Literal["canonical", "keep"]
Nones = Literal["drop", "keep"]


@dataclass(frozen=True, slots=True)
class AtomicTuple:
    """One tuple, and how often the files say it."""

    head: str
    relation: str
    tail: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class AtomicTuples(Sequence[AtomicTuple]):
    """Distinct tuples, in file order.

    Attributes:
        split: ``train``, ``valid``, ``test``, ``v4``, ``all``, or the name of a file.
        paths: The files.
        sha256: Of each file's bytes, by file name.
        frame: Columns ``head``, ``relation``, ``tail`` (text) and ``count``.
        counts: Rows read, left out and merged, and tuples of each relation, by name.
        problems: Every row that was left out because it cannot be read, with file and line.
        notes: Gaps, and differences from the published counts.
    """

    split: str
    paths: tuple[Path, ...]
    sha256: Mapping[str, str]
    frame: pl.DataFrame
    counts: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_sample(self) -> bool:
        """Whether all of it is this package's self-written sample."""
        return all(is_sample(path) for path in self.paths)

    @property
    def source(self) -> str:
        """What an index made of it must name."""
        return "self-written sample of empatheia, MIT" if self.is_sample else ATTRIBUTION

    def __len__(self) -> int:
        return self.frame.height

    def __getitem__(self, index: int) -> AtomicTuple:
        return AtomicTuple(*self.frame.row(index))

    def __iter__(self) -> Iterator[AtomicTuple]:
        return (AtomicTuple(*row) for row in self.frame.iter_rows())


def canonical_relation(name: str, known: Sequence[str] = ALL_RELATIONS) -> str:
    """The relation's own spelling; case does not matter (Chen et al. 2022, figure 6, writes ``XReact``).

    Raises:
        ConfigError: It is none of ``known``.

    >>> canonical_relation("HasProPerty")
    'HasProperty'
    """
    found = _BY_FOLDED.get(name.strip().lower())
    if found in known:
        return str(found)
    raise ConfigError(f"unknown relation {name!r}.{nearest(name, list(known))} Accepted: {', '.join(known)}.")


def load(
    split: str = "all",
    root: str | Path | None = None,
    strict: bool = False,
    *,
    relations: Sequence[str] | None = RELATIONS,
    persons: Persons = "canonical",
    none: Nones = "drop",
) -> AtomicTuples:
    """Tuples from ``<root>/atomic``, whole or as much as is there.

    Args:
        split: ``train``, ``valid`` (``dev``), ``test``, ``v4``, or ``all``: the three official files, and the partial
            ones where an official one is not there.
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.
        strict: Raise at the first row that cannot be read.
        relations: See :func:`read`.
        persons: See :func:`read`.
        none: See :func:`read`.

    Raises:
        MissingResourceError: No file is there.
        DataError: The split is unknown, or see :func:`read`.
    """
    name = {"dev": "valid", "validation": "valid"}.get(split, split)
    if name != "all" and name not in SPLITS:
        raise DataError(f"unknown split {split!r}; accepted: {', '.join(SPLITS)}, all.")
    if name != "all":
        found, absent = [find_corpus_file(FOLDER, SPLITS[name], root, GET)], []
    else:
        found, absent = _all_files(root)
    read_in = read(found, name, strict, relations=relations, persons=persons, none=none)
    official = [file for file in absent if file != SPLITS["v4"][0]]
    if official and not read_in.is_sample:
        gap = (
            f"not here: {', '.join(official)}; the whole of ATOMIC-2020 has {sum(list(FILE_ROWS.values())[:3]):,} rows"
        )
        return _with_notes(read_in, (gap,))
    return read_in


def _all_files(root: str | Path | None) -> tuple[list[Path], list[str]]:
    """The files that are here, and the names of those that are not; the partial one only where it adds something."""
    found: list[Path] = []
    absent: list[str] = []
    for names in SPLITS.values():
        try:
            found.append(find_corpus_file(FOLDER, names, root, GET))
        except MissingResourceError:
            absent.append(names[0])
    if not found:
        find_corpus_file(FOLDER, [file for files in SPLITS.values() for file in files], root, GET)
    if not {"train.tsv", "dev.tsv"} & set(absent) and "test.tsv" in map(_file_name, found):
        found = [path for path in found if _file_name(path) != SPLITS["v4"][0]]
    return found, absent


def _check_option(option: str, value: str, accepted: Sequence[str]) -> None:
    if value not in accepted:
        raise ConfigError(f"atomic: {option} is {value!r}; accepted: {', '.join(accepted)}.")


def _is_kept(relation: str, tail: str, kept: frozenset[str] | None, none: Nones, counts: Counter[str]) -> bool:
    """Whether a row is wanted; counts rows of other relations and tails that are ``none``."""
    if kept is not None and relation not in kept:
        counts["rows of other relations"] += 1
        return False
    if tail.lower() != "none":
        return True
    counts["none tails"] += 1
    return none != "drop"


def _in_order(by_relation: Mapping[str, int]) -> dict[str, int]:
    return {name: by_relation[name] for name in ALL_RELATIONS if name in by_relation}


def _row_notes(path: Path, n_rows: int) -> list[str]:
    """Whether an official file has as many rows as it should; raises DataError where it has none."""
    if not n_rows:
        raise DataError(f"{path}: no tuple in it; accepted: head<TAB>relation<TAB>tail. Get the file again: {GET}")
    expected = FILE_ROWS.get(_file_name(path))
    if expected is None or n_rows == expected or is_sample(path):
        return []
    return [f"{path.name} has {n_rows:,} rows; {expected:,} are expected"]


def read(
    paths: str | Path | Sequence[str | Path],
    split: str = "",
    strict: bool = False,
    *,
    relations: Sequence[str] | None = RELATIONS,
    persons: Persons = "canonical",
    none: Nones = "drop",
) -> AtomicTuples:
    """Tuples from files the user names.

    White space is trimmed and tuples that are equal then are one with a ``count``.

    Args:
        paths: A file, a folder with ``train.tsv`` and so on, or a list of files; plain or gzip.
        split: A name for the record; empty = the files' names.
        strict: Raise at the first row that cannot be read.
        relations: Keep these; None = all 23.
        persons: ``canonical`` writes "person x", "Person X" and the like as ``PersonX``; ``keep`` leaves them.
        none: ``drop`` leaves out tails that are ``none``, ``keep`` keeps them.

    Raises:
        MissingResourceError: A file is not there.
        DataError: A file holds no tuple, or ``strict`` and a row cannot be read.
        ConfigError: An option or a relation is unknown.
    """
    _check_option("persons", persons, ("canonical", "keep"))
    _check_option("none", none, ("drop", "keep"))
    kept = None if relations is None else frozenset(canonical_relation(name) for name in relations)
    files = _files(paths)
    counts: Counter[str] = Counter()
    problems: list[Problem] = []
    notes: list[str] = []
    columns: tuple[list[str], list[str], list[str]] = ([], [], [])
    for path in files:
        before = counts["rows"]
        for row in _rows(path, problems, counts):
            if _is_kept(row[1], row[2], kept, none, counts):
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
        notes += _row_notes(path, counts["rows"] - before)
    frame = pl.DataFrame(dict(zip(("head", "relation", "tail"), columns, strict=True)), schema_overrides=_TEXTS)
    if persons == "canonical":
        frame = frame.with_columns(_canonical_persons("head"), _canonical_persons("tail"))
    frame = frame.group_by("head", "relation", "tail", maintain_order=True).agg(pl.len().cast(pl.UInt32).alias("count"))
    counts["duplicate rows"] = len(columns[0]) - frame.height
    counts["tuples"], counts["heads"] = frame.height, frame["head"].n_unique()
    by_relation = dict(frame["relation"].value_counts().iter_rows())
    counts.update(_in_order(by_relation))
    if not all(is_sample(path) for path in files):
        notes += _gaps(by_relation, kept)
    problems += [Problem(", ".join(path.name for path in files), 0, note) for note in notes]
    report(problems, strict)
    return AtomicTuples(
        split or "+".join(_file_name(path) for path in files),
        tuple(files),
        {path.name: file_sha256(path) for path in files},
        frame,
        dict(counts),
        tuple(problems),
        tuple(notes),
    )


_TEXTS = {"head": pl.String, "relation": pl.String, "tail": pl.String}


def _with_notes(tuples: AtomicTuples, notes: tuple[str, ...]) -> AtomicTuples:
    return AtomicTuples(
        tuples.split,
        tuples.paths,
        tuples.sha256,
        tuples.frame,
        tuples.counts,
        tuples.problems,
        (*notes, *tuples.notes),
    )


def _file_name(path: Path) -> str:
    return path.name.removesuffix(".gz")


def _files(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that are meant.

    Raises:
        MissingResourceError: One is not there, or a folder holds none.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    found = []
    for place in (Path(path).expanduser() for path in given):
        if place.is_dir():
            names = ("train.tsv", "dev.tsv", "test.tsv")
            inside = [place / f"{name}{end}" for name in names for end in ("", ".gz")]
            inside = [path for path in inside if path.is_file()] or sorted(
                [*place.glob("*.tsv"), *place.glob("*.tsv.gz")]
            )
            if not inside:
                raise MissingResourceError(f"no .tsv file in {place}. Get it: {GET}.")
            found += inside
        elif place.is_file():
            found.append(place)
        else:
            raise MissingResourceError(f"no file {place}. Get it: {GET}.")
    return found


def _rows(path: Path, problems: list[Problem], counts: Counter[str]) -> Iterator[tuple[str, str, str]]:
    """Trimmed fields of each tuple; counts rows and notes what cannot be read."""
    n_fields = 0
    for number, line in numbered_lines(path):
        fields = line.split("\t")
        if not n_fields:
            if fields == ["split", "head", "relation", "tail"]:
                n_fields = 4
                continue
            n_fields = 2 if len(fields) == 2 and " @@ " in fields[0] else 3
        if not line.strip():
            continue
        counts["rows"] += 1
        if len(fields) != n_fields:
            problems.append(Problem(str(path), number, f"{len(fields)} tab-separated fields, expected {n_fields}"))
            continue
        if n_fields == 2:
            head, _, relation = fields[0].rpartition(" @@ ")
            tails = _unquoted(fields[1]).split("|")
        else:
            head, relation, tail = fields[-3:]
            tails = [tail]
        name = _BY_FOLDED.get(relation.strip().lower())
        if name is None:
            problems.append(Problem(str(path), number, f"unknown relation {relation.strip()!r}"))
            continue
        head = " ".join(_unquoted(head).split())
        for tail in tails:
            text = " ".join(tail.split())
            if not head or not text:
                counts["empty heads or tails"] += 1
                continue
            yield head, name, text


def _unquoted(field: str) -> str:
    """A field without the CSV quotes that the evaluation sample has in four rows."""
    if len(field) > 1 and field[0] == field[-1] == '"':
        return field[1:-1].replace('""', '"')
    return field


def _canonical_persons(column: str) -> pl.Expr:
    """``person x`` and the like as ``PersonX``."""
    expression = pl.col(column)
    for letter in "XYZ":
        expression = expression.str.replace_all(rf"(?i)\bperson\s?{letter}\b", f"Person{letter}")
    return expression


def _gaps(found: Mapping[str, int], kept: frozenset[str] | None) -> Iterator[str]:
    """Relations of which there is next to nothing."""
    wanted = [name for name in RELATIONS if kept is None or name in kept]
    if absent := [name for name in wanted if not found.get(name)]:
        yield f"no tuple of {', '.join(absent)}"
    if few := [name for name in wanted if 0 < found.get(name, 0) < RELATION_TUPLES[name] / 10]:
        listed = ", ".join(f"{name} {found[name]:,} of {RELATION_TUPLES[name]:,}" for name in few)
        yield f"less than a tenth of ATOMIC-2020's tuples of {listed}"


@dataclass(frozen=True, slots=True)
class Generation:
    """What the released COMET-BART wrote for one prompt of the official evaluation sample.

    Attributes:
        head: As in the file.
        relation: One of the 23.
        tails: Gold, repeats kept.
        generations: Beam search, best first, blanks trimmed.
        greedy: Greedy search.
    """

    head: str
    relation: str
    tails: tuple[str, ...]
    generations: tuple[str, ...]
    greedy: str


def read_generations(
    path: str | Path | None = None, relations: Sequence[str] | None = RELATIONS
) -> tuple[Generation, ...]:
    """The released outputs (``BART-atomic_2020.json``, JSON lines in spite of its name), of some relations.

    Args:
        path: The file; None = ``atomic/comet_bart_atomic2020_generations.jsonl`` in the data folder.
        relations: Keep these; None = all.

    Raises:
        MissingResourceError: The file is not there.
        DataError: A line is not an object with head, relation, tails, generations and greedy.
    """
    if path is None:
        get = "system_eval/BART/BART-atomic_2020.json of github.com/allenai/comet-atomic-2020"
        path = find_corpus_file(FOLDER, "comet_bart_atomic2020_generations.jsonl", None, get)
    path = Path(path).expanduser()
    if not path.is_file():
        raise MissingResourceError(f"no file {path}. Check the path.")
    kept = None if relations is None else frozenset(canonical_relation(name) for name in relations)
    out = []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
            relation = _BY_FOLDED[row["relation"].strip().lower()]
            tails, beams = (tuple(str(text).strip() for text in row[name]) for name in ("tails", "generations"))
            made = Generation(row["head"].strip(), relation, tails, beams, str(row["greedy"]).strip())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            fields = "head, relation, tails, generations, greedy"
            raise DataError(f"{path}:{number}: {type(error).__name__} {error}; each line has {fields}.") from None
        if kept is None or relation in kept:
            out.append(made)
    return tuple(out)
