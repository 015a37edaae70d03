"""What is done with one shard: files to clean dialogues, labels, the final corpus.

Each is a function of plain values, so that a worker anywhere can run it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from empatheia.errors import EmpatheiaError, MissingDependencyError
from empatheia.reading import read_array
from empatheia_people.curation import global_steps
from empatheia_people.curation.cleaning import CleaningCounts
from empatheia_people.curation.dialogues import dialogues_of
from empatheia_people.curation.labelling import DECIMALS, emotionality, load_labeller, mean_emotionality, measure_of
from empatheia_people.curation.records import Script, ScriptDialogue
from empatheia_people.curation.segmenter import PairModel, load_segmenter, turns_of
from empatheia_people.curation.settings import CurationSettings, LabelSettings
from empatheia_people.curation.shards import RowWriter, finish, pyarrow, rows_of, whole_file
from empatheia_people.curation.sources import Source, by_film, reason_of

if TYPE_CHECKING:
    from pyarrow import Schema

LABELLED_AT_ONCE = 2048
"""Utterances handed to a classifier in one go."""
MOST_LISTED = 200
"""Unreadable files named in a shard's manifest."""


@dataclass(frozen=True, slots=True)
class Task:
    """One shard's work.

    Attributes:
        stage: Name of it.
        number: Of the shard.
        key: Of inputs, settings and code; see ``shards``.
        settings: Of the run.
        out: File to make; the corpus stage makes others beside it.
        inputs: Files it is made from.
        sources: What to read, in the first stage.
        facts: What a global step found.
        weight: How much work it is, in bytes.
    """

    stage: str
    number: int
    key: str
    settings: CurationSettings
    out: str
    inputs: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    weight: int = 1


def run_task(task: Task) -> dict[str, object]:
    """Does it and returns its manifest.

    Raises:
        EmpatheiaError: It cannot be done.
        OSError: Nothing can be written.
    """
    return {"dialogues": make_dialogues, "labelled": label_dialogues, "corpus": write_corpus}[task.stage](task)


# -- files to dialogues --------------------------------------------------------------------------------------


def dialogue_schema() -> Schema:
    """Columns of a shard of dialogues."""
    arrow = pyarrow()
    return arrow.schema(
        [
            ("key", arrow.string()),
            ("movie", arrow.string()),
            ("turns", arrow.list_(arrow.string())),
            ("starts", arrow.list_(arrow.int64())),
            ("ends", arrow.list_(arrow.int64())),
            ("n_tokens", arrow.int32()),
            ("text_hash", arrow.uint64()),
            ("ending_hash", arrow.uint64()),
            ("order_hash", arrow.uint64()),
        ]
    )


def make_dialogues(task: Task) -> dict[str, object]:
    """Selection, reading, turns, the 5-second rule and the local cleaning of a shard's files, one at a time."""
    settings, path = task.settings, Path(task.out)
    most = settings.read.most_mb << 20
    groups, problems = by_film(task.sources, most)
    counts: Counter[str] = Counter(files=len(task.sources), films=len(groups), rivals=0)
    counts["rivals"] = len(task.sources) - len(problems) - len(groups)
    notes: Counter[str] = Counter()
    work = _Films(settings, load_segmenter(settings.segment.segmenter), counts)
    with whole_file(path) as part, RowWriter(part, dialogue_schema()) as writer:
        for group in groups:
            for source in group:
                try:
                    for script in source.scripts(most, settings.read.recase):
                        notes.update(dict(script.notes))
                        for one in work.dialogues(script):
                            writer.add(_row(one))
                    break
                except MissingDependencyError:
                    raise
                except Exception as error:  # a file may hold anything: it is listed, the others go on
                    known = isinstance(error, EmpatheiaError | OSError)
                    problems.append((source.place, reason_of(error) if known else f"{type(error).__name__}: {error}"))
    counts["unreadable"] = len(problems)
    record = {
        "counts": dict(counts),
        "dropped": dict(work.cleaning.dropped),
        "changed": dict(work.cleaning.changed),
        "n_split": work.cleaning.n_split,
        "lines": work.cleaning.top_lines(),
        "notes": dict(notes),
        "problems": sorted(problems)[:MOST_LISTED],
    }
    return finish(path, task.key, record)


class _Films:
    """Makes dialogues of scripts and counts.

    Args:
        settings: Of the run.
        model: Finds the turns.
        counts: Added to.
    """

    def __init__(self, settings: CurationSettings, model: PairModel, counts: Counter[str]) -> None:
        self.settings, self.model, self.counts = settings, model, counts
        self.cleaner = settings.clean.cleaner()
        self.cleaning = CleaningCounts()

    def dialogues(self, script: Script) -> Iterator[ScriptDialogue]:
        """Clean ones."""
        counts, segment, rule = self.counts, self.settings.segment, self.settings.dialogues
        marks, pause = segment.use_marks, segment.longest_pause_ms
        turns = turns_of(script, self.model, segment.threshold, marks, pause, rule.chat_gap_ms)
        counts["read"] += 1
        counts["sentences"] += len(script.sentences)
        counts["sentences_without_time"] += sum(one.start is None or one.end is None for one in script.sentences)
        counts["turns"] += len(turns)
        for raw in dialogues_of(script, turns, rule.max_gap_ms, rule.chat_gap_ms, rule.backwards_ms, rule.max_turns):
            counts["dialogues"] += 1
            counts["raw_tokens"] += sum(len(turn.text.split()) for turn in raw.turns)
            for clean in self.cleaner.dialogue(raw, self.cleaning):
                counts["clean_dialogues"] += 1
                counts["clean_turns"] += len(clean.turns)
                counts["clean_tokens"] += sum(len(turn.text.split()) for turn in clean.turns)
                yield clean


def _row(one: ScriptDialogue) -> dict[str, Any]:
    texts = [turn.text for turn in one.turns]
    return {
        "key": one.key,
        "movie": one.movie,
        "turns": texts,
        "starts": [turn.start for turn in one.turns],
        "ends": [turn.end for turn in one.turns],
        "n_tokens": sum(len(text.split()) for text in texts),
        "text_hash": global_steps.hash64("\n".join(texts)),
        "ending_hash": global_steps.hash64(global_steps.ending_of(texts[-1])),
        "order_hash": global_steps.hash64(one.key),
    }


# -- labels --------------------------------------------------------------------------------------------------


def labelled_schema() -> Schema:
    """Columns of a shard of labelled dialogues."""
    arrow = pyarrow()
    return arrow.schema(
        [
            ("key", arrow.string()),
            ("movie", arrow.string()),
            ("turns", arrow.list_(arrow.string())),
            ("starts", arrow.list_(arrow.int64())),
            ("ends", arrow.list_(arrow.int64())),
            ("n_tokens", arrow.int32()),
            ("labels", arrow.list_(arrow.string())),
            ("label_probabilities", arrow.list_(arrow.float64())),
            ("emotionalities", arrow.list_(arrow.float64())),
            ("emotionality", arrow.float64()),
        ]
    )


def label_dialogues(task: Task) -> dict[str, object]:
    """Keeps the dialogues that the global steps kept, and labels their utterances if there is a classifier."""
    settings, path = task.settings, Path(task.out)
    dialogues, mask = map(Path, task.inputs)
    keep = read_array(mask)
    place = settings.label.classifier
    labeller = None if place is None else load_labeller(place, settings.label.exact, settings.label.engine)
    counts: Counter[str] = Counter()
    with whole_file(path) as part, RowWriter(part, labelled_schema()) as writer:
        for stretch in _stretches(row for row, kept in zip(rows_of(dialogues), keep, strict=True) if kept):
            for row in _labelled(stretch, labeller, settings.label):
                counts["dialogues"] += 1
                counts["turns"] += len(row["turns"])
                counts["tokens"] += row["n_tokens"]
                writer.add(row)
    record: dict[str, object] = {"counts": dict(counts)}
    if labeller is not None:
        record |= {"classifier": labeller.name, "labels": labeller.labels, "engine": settings.label.engine}
        record |= {"measure": measure_of(labeller.labels)}
    return finish(path, task.key, record)


def _stretches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Rows with together about ``LABELLED_AT_ONCE`` utterances."""
    stretch: list[dict[str, Any]] = []
    n = 0
    for row in rows:
        stretch.append(row)
        n += len(row["turns"])
        if n >= LABELLED_AT_ONCE:
            yield stretch
            stretch, n = [], 0
    if stretch:
        yield stretch


def _labelled(rows: Sequence[dict[str, Any]], labeller: Any, label: LabelSettings) -> Iterator[dict[str, Any]]:
    places: dict[str, int] = {}
    for row in rows:
        for text in row["turns"]:
            places.setdefault(text, len(places))
    plain = {"labels": None, "label_probabilities": None, "emotionalities": None, "emotionality": None}
    if labeller is None:
        yield from ({**row, **plain} for row in rows)
        return
    found = np.round(np.asarray(labeller.probabilities(list(places), label.batch_size), np.float64), DECIMALS)
    values = np.round(emotionality(found, labeller.labels), DECIMALS)
    best = found.argmax(axis=1)  # of equal ones the first
    for row in rows:
        own = [places[text] for text in row["turns"]]
        yield {
            **row,
            "labels": [labeller.labels[best[i]] for i in own],
            "label_probabilities": [float(found[i, best[i]]) for i in own],
            "emotionalities": [float(values[i]) for i in own],
            "emotionality": mean_emotionality([values[i] for i in own], label.weights),
        }


# -- the corpus ----------------------------------------------------------------------------------------------

EMOTIONAL, REST, ALL = "edos", "os", "all"
"""The most emotional dialogues, the others, and all of them where nothing was ranked."""


def write_corpus(task: Task) -> dict[str, object]:
    """Parts and splits of a shard, each a file ``PART/SPLIT/shard-NNNNN.parquet``; only those that have rows."""
    path, settings = Path(task.out), task.settings
    threshold, tied = task.facts.get("threshold"), frozenset(task.facts.get("tied", ()))
    counts: dict[str, Counter[str]] = {}
    labels: dict[str, Counter[str]] = {}
    digest = 0
    with _Places(path) as places:
        for row in rows_of(Path(task.inputs[0])):
            part = ALL if threshold is None else EMOTIONAL if _is_emotional(row, threshold, tied) else REST
            name = row["movie" if settings.split.by == "movie" else "key"]
            split = global_steps.split_of(name, settings.split.shares)
            places.add(part, split, row)
            own = counts.setdefault(part, Counter())
            own.update({"dialogues": 1, "turns": len(row["turns"]), "tokens": row["n_tokens"], split: 1})
            if row["labels"]:
                labels.setdefault(part, Counter())[row["labels"][-1]] += 1
            digest = (digest + _hash_of(part, split, row)) % (1 << 256)
    record = {"counts": _plain(counts), "labels": _plain(labels), "digest": f"{digest:064x}"}
    return finish(path, task.key, record, places.made)


def _is_emotional(row: dict[str, Any], threshold: float, tied: frozenset[str]) -> bool:
    return row["emotionality"] > threshold or (row["emotionality"] == threshold and row["key"] in tied)


def _hash_of(part: str, split: str, row: dict[str, Any]) -> int:
    """Of a row; the sum over all rows tells a corpus from others, whatever the order and the shards."""
    text = repr((part, split, row["key"], row["turns"], row["starts"], row["ends"], row["labels"], row["emotionality"]))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest(), "big")


def _plain(counts: dict[str, Counter[str]]) -> dict[str, dict[str, int]]:
    return {name: dict(sorted(own.items())) for name, own in sorted(counts.items())}


class _Places:
    """Files of a shard of the corpus, opened when their first row comes; all are whole at the end, or none is there.

    Args:
        path: Of the shard; the files lie in folders beside it.
    """

    def __init__(self, path: Path) -> None:
        self.made: list[Path] = []
        self._path = path
        self._stack = ExitStack()
        self._writers: dict[tuple[str, str], RowWriter] = {}

    def add(self, part: str, split: str, row: dict[str, Any]) -> None:
        """One row."""
        if (part, split) not in self._writers:
            place = self._path.parent / part / split / self._path.name
            temporary = self._stack.enter_context(whole_file(place))
            self._writers[part, split] = self._stack.enter_context(RowWriter(temporary, labelled_schema()))
            self.made.append(place)
        self._writers[part, split].add(row)

    def __enter__(self) -> _Places:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)
        if error[0] is None:
            self.made.sort()
            for old in self._path.parent.glob(f"*/*/{self._path.name}"):  # of a run with other settings
                if old not in self.made:
                    old.unlink()
