"""Scores of anybody's replies: a file that was read, the columns of a profile, and out come numbers with signatures.

No model is loaded; whoever wants BERTScore brings the encoder. What a file cannot tell is listed with the reason, never
left out in silence. Systems that answered the same items are compared by paired tests.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, cast

from empatheia.errors import ConfigError, DataError, EmpatheiaError
from empatheia.metrics import METRICS
from empatheia.metrics.bertscore import ROBERTA_LARGE_BASELINE, TokenVectors
from empatheia.metrics.profiles import DEFAULT, ENCODER, TOKENS, WORDS, Column, Words, profile_of
from empatheia.metrics.score import Score, Signature
from empatheia.metrics.significance import Comparison, adjusted, paired_bootstrap, paired_permutation
from empatheia.registry import Registry, nearest
from empatheia.replies.alignment import paired
from empatheia.replies.replies import ReplyFile, SystemReply
from empatheia.taxonomy import EMOTIONS, LABELS_41

N_RESAMPLES = 1000

# part: unit and decimals of a number behind a metric
_PARTS: Mapping[str, tuple[str, int]] = {
    "brevity_penalty": ("fraction", 3),
    "mean_length": ("tokens", 2),
    "distinct_replies": ("replies", 0),
}
_DECIMALS = {"percent": 2, "fraction": 4, "perplexity": 2, "words": 2, "characters": 2}
_VECTORS = ("bertscore", "similarity")  # modules whose metrics take vectors for texts
_ARGUMENTS = {"responses": "reply", "hypotheses": "reply", "references": "reference", "contexts": "context"}
_FIELDS = ("reply", "reference", "context", "predicted", "emotion")
_LABELS = {"predicted", "emotion"}
_NO_REFERENCES = "needs references: give --ref, or a reference in every row"


class TokenEncoder(Protocol):
    """What gives BERTScore its vectors, one layer of a sentence encoder."""

    name: str
    layer: int

    def encode(self, texts: Sequence[str], /) -> list[TokenVectors]:
        """The pieces of each text."""
        ...


TOKEN_ENCODERS = Registry("token_encoders", {})
"""Encoders for BERTScore: under ``bertscore`` a class whose ``load(folder, layer)`` opens one."""


class Likeness:
    """An encoder for BERTScore that reads every text once, and the baseline that rescales its scores.

    Args:
        encoder: Of the vectors.
        baseline: ``P``, ``R`` and ``F`` of random pairs, see :func:`empatheia.metrics.bertscore.read_baseline`; None =
            that of the package for roberta-large's layer 17, and for others none.
    """

    def __init__(self, encoder: TokenEncoder, baseline: Mapping[str, float] | None = None) -> None:
        self.encoder = encoder
        is_known = encoder.layer == 17 and encoder.name.rpartition("/")[2] == "roberta-large"
        self.baseline = ROBERTA_LARGE_BASELINE if baseline is None and is_known else baseline
        self._known: dict[str, TokenVectors] = {}

    def vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Of each text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, self.encoder.encode(new), strict=True))
        return [self._known[text] for text in texts]

    def settings(self, metric: str) -> dict[str, object]:
        """What the metric is made with."""
        rescaled = {"baseline": self.baseline} if metric.endswith("_rescaled") else {}
        return {"encoder": self.encoder.name, "layer": self.encoder.layer, **rescaled}


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of one system, measured.

    Attributes:
        column: What was asked.
        score: The score; where the column is a part of it, ``value`` and ``unit`` are the part's.
        value: In the unit of print; NaN where the score is undefined.
        unit: Unit of print.
        interval: (low, high) in that unit, or None.
    """

    column: Column
    score: Score
    value: float
    unit: str
    interval: tuple[float, float] | None

    @property
    def decimals(self) -> int:
        """How many to show."""
        return _PARTS[self.column.part][1] if self.column.part in _PARTS else _DECIMALS.get(self.unit, 3)

    def show(self, value: float | None = None) -> str:
        """A number of this column as text; ``-`` where it is undefined."""
        number = self.value if value is None else value
        return "-" if math.isnan(number) else f"{number:,.{self.decimals}f}"

    def to_dict(self) -> dict[str, object]:
        """JSON-ready: the column's number, and the whole score behind it under ``score``."""
        return {
            "column": self.column.name,
            "metric": self.column.metric,
            "part": self.column.part or None,
            "value": None if math.isnan(self.value) else self.value,
            "unit": self.unit,
            "interval": None if self.interval is None else list(self.interval),
            "printed": self.column.is_printed,
            "note": self.column.note,
            "words": self.column.words,
            "signature": self.score.signature,
            "score": self.score.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class SystemScores:
    """All columns of one system.

    Attributes:
        system: Its name in the file.
        n: Items.
        cells: What could be measured, in the order of the columns.
        missing: Column and the reason why it could not.
        blank_replies: Lines of the items with an empty reply.
        blank_references: Lines of the items with an empty reference.
    """

    system: str
    n: int
    cells: tuple[Cell, ...]
    missing: tuple[tuple[Column, str], ...]
    blank_replies: tuple[int, ...] = ()
    blank_references: tuple[int, ...] = ()

    def cell(self, name: str) -> Cell:
        """The cell of a column.

        Raises:
            ConfigError: There is none.
        """
        for cell in self.cells:
            if cell.column.name == name:
                return cell
        raise ConfigError(f"no column {name!r}; measured: {', '.join(cell.column.name for cell in self.cells)}.")

    def to_dict(self) -> dict[str, object]:
        """JSON-ready data."""
        return {
            "system": self.system,
            "n": self.n,
            "blank_replies": {"count": len(self.blank_replies), "lines": list(self.blank_replies)},
            "blank_references": {"count": len(self.blank_references), "lines": list(self.blank_references)},
            "scores": [cell.to_dict() for cell in self.cells],
            "missing": [{"column": c.name, "metric": c.metric, "reason": reason} for c, reason in self.missing],
        }


@dataclass(frozen=True, slots=True)
class SystemTests:
    """A system against the baseline, on the items that both answered.

    Attributes:
        system: Its name.
        baseline: The other's.
        n: Items of both.
        n_left_out: Items of only one of them.
        tests: By column, in the unit of print: difference (system minus baseline) with the interval of the paired
            bootstrap where the score has one, and the p-value of the paired permutation test, Holm's over all systems
            beside it.
        untested: By column, why there is no test.
    """

    system: str
    baseline: str
    n: int
    n_left_out: int
    tests: Mapping[str, Comparison]
    untested: Mapping[str, str]

    def to_dict(self) -> dict[str, object]:
        """JSON-ready data."""
        tests = [{"column": name, **test.to_dict()} for name, test in self.tests.items()]
        return {
            "system": self.system,
            "baseline": self.baseline,
            "n": self.n,
            "n_left_out": self.n_left_out,
            "tests": tests,
            "untested": dict(self.untested),
        }


def columns_of(profile: str | None = None, metrics: Sequence[str] = (), words: str = "space") -> tuple[Column, ...]:
    """What to measure: a profile's columns, the metrics named, or the default ones.

    Args:
        profile: A name of ``PROFILES``, or None.
        metrics: Keys of ``METRICS``; they come after the profile's columns.
        words: What cuts the words of the metrics named and of the default columns; a profile fixes its own.

    Raises:
        ConfigError: An unknown profile, metric or way to cut words; or a profile with words of its own and others.
    """
    if words not in WORDS:
        raise ConfigError(f"unknown words {words!r}; accepted: {', '.join(WORDS)}.")
    if profile is not None and words != "space":
        raise ConfigError(f"the profile {profile} fixes how words are cut; leave out {words!r}, or the profile.")
    for name in metrics:
        METRICS.target(name)
    cut = cast(Words, words)  # one of them, as was seen
    named = tuple(Column(name, name, words=cut) for name in metrics)
    if profile is not None:
        return (*profile_of(profile).columns, *named)
    return named or tuple(_cut_by(column, cut) for column in DEFAULT.columns)


def score_file(
    file: ReplyFile,
    columns: Sequence[Column],
    systems: Sequence[str] = (),
    n_resamples: int = N_RESAMPLES,
    likeness: Likeness | None = None,
) -> tuple[SystemScores, ...]:
    """Scores of the systems of a file.

    Args:
        file: From ``read_replies`` or ``read_texts``.
        columns: From ``columns_of``.
        systems: Which systems; empty = all.
        n_resamples: Bootstrap replicates for the intervals; 0 for none.
        likeness: Encoder for BERTScore; None = it is not measured.

    Raises:
        ConfigError: The file has no such system.
    """
    out = []
    for name in systems or file.systems:
        replies = file.of(name)
        cells, missing = score_replies(replies, columns, n_resamples, likeness)
        blanks = file.blank_lines(name), file.blank_reference_lines(name)
        out.append(SystemScores(replies[0].system, len(replies), cells, missing, *blanks))
    return tuple(out)


def score_replies(
    replies: Sequence[SystemReply],
    columns: Sequence[Column],
    n_resamples: int = N_RESAMPLES,
    likeness: Likeness | None = None,
) -> tuple[tuple[Cell, ...], tuple[tuple[Column, str], ...]]:
    """Scores of one system's replies.

    Returns:
        What was measured, and each column that was not with the reason.
    """
    bench = _Bench(replies, n_resamples, likeness)
    cells, missing = [], []
    for column in columns:
        reason = bench.obstacle(column)
        if not reason:
            try:
                cells.append(bench.cell(column))
                continue
            except EmpatheiaError as error:
                reason = str(error)
        missing.append((column, reason))
    return tuple(cells), tuple(missing)


def compare_systems(
    systems: Mapping[str, Sequence[SystemReply]],
    baseline: str,
    columns: Sequence[Column],
    n_resamples: int = N_RESAMPLES,
    likeness: Likeness | None = None,
) -> tuple[SystemTests, ...]:
    """Paired tests of every other system against one.

    Args:
        systems: Replies by name. Items are brought together by :func:`empatheia.replies.alignment.paired`.
        baseline: Which of them the others are compared with.
        columns: From ``columns_of``; what cannot be measured, or is only a part of a score, has no test.
        n_resamples: Permutations, and bootstrap replicates.
        likeness: Encoder for BERTScore.

    Raises:
        ConfigError: There is no such system, or no other.
        DataError: A system shares no item with the baseline.
    """
    if baseline not in systems:
        raise ConfigError(
            f"no system {baseline!r} to compare with.{nearest(baseline, list(systems))} {_there(systems)}"
        )
    if len(systems) < 2:
        raise ConfigError(f"nothing to compare {baseline!r} with. {_there(systems)}")
    found: dict[str, dict[str, Comparison]] = {}  # by column, then system: a column's tests are one family
    others: dict[str, tuple[int, int, dict[str, str]]] = {}
    for name, replies in systems.items():
        if name == baseline:
            continue
        ours, theirs = paired(replies, systems[baseline])
        untested: dict[str, str] = {}
        others[name] = len(ours), len(replies) + len(systems[baseline]) - 2 * len(ours), untested
        benches = [_Bench(each, 0, likeness) for each in (ours, theirs)]
        for column in columns:
            reason = next(filter(None, (bench.obstacle(column) for bench in benches)), "")
            try:
                if not (reason or column.part):
                    found.setdefault(column.name, {})[name] = _tested(column, benches, n_resamples)
            except EmpatheiaError as error:
                reason = str(error)
            if reason:
                untested[column.name] = reason
    corrected = {column: adjusted(tests) for column, tests in found.items()}
    return tuple(
        SystemTests(name, baseline, n, n_left, {c: t[name] for c, t in corrected.items() if name in t}, untested)
        for name, (n, n_left, untested) in others.items()
    )


def _there(systems: Mapping[str, object]) -> str:
    return f"There are: {', '.join(systems)}."


def _tested(column: Column, benches: Sequence[_Bench], n_resamples: int) -> Comparison:
    """The paired test of one column, in its unit."""
    ours, theirs = (bench.metric(column) for bench in benches)
    test = paired_permutation(ours, theirs, n_resamples)
    interval = paired_bootstrap(ours, theirs, n_resamples).interval if ours.can_bootstrap else None
    one = replace(ours.compute(), value=1.0)
    factor = one.in_unit(column.unit).value if column.unit else 1.0
    scaled = None if interval is None else (interval[0] * factor, interval[1] * factor)
    return replace(test, difference=test.difference * factor, interval=scaled)


class _Bench:
    """Measures columns on one system's replies; texts are cut once a way, and equal metrics are computed once."""

    def __init__(self, replies: Sequence[SystemReply], n_resamples: int, likeness: Likeness | None = None) -> None:
        self.replies, self.n_resamples, self.likeness = replies, n_resamples, likeness
        self._cut: dict[str, tuple[list[Any], list[Any]]] = {}
        self._scores: dict[str, Score] = {}

    def obstacle(self, column: Column) -> str:
        """Why the column cannot be had; empty if it can be tried."""
        metric = column.metric
        if self.likeness is not None and metric.startswith("bertscore"):
            return self._unlike(metric, self.likeness)
        if column.missing:
            return column.missing
        if metric not in METRICS:
            return f"no metric {metric!r} in this version"
        if metric == "accuracy_batch_mean":
            return (
                "needs the batches that were averaged, which a file does not hold; over single items it is `accuracy`"
            )
        place = METRICS.target(metric).partition(":")[0]
        if place.rpartition(".")[2] in _VECTORS:
            return TOKENS if metric.startswith("bertscore") else ENCODER
        fields = fields_of(metric)
        if not fields:
            wanted = ", ".join(_arguments_of(metric)) or "other inputs"
            return f"needs {wanted}, which a file of replies does not hold: `{place}` takes them from Python"
        if "reference" in fields and any(reply.reference is None for reply in self.replies):
            return _NO_REFERENCES
        if "context" in fields and not any(reply.context for reply in self.replies):
            return "needs contexts: give --context, or a context in the rows"
        return self._no_emotions() if _LABELS & set(fields) else ""

    def _unlike(self, metric: str, likeness: Likeness) -> str:
        """Why BERTScore cannot be had of an encoder; empty if it can."""
        if any(reply.reference is None for reply in self.replies):
            return _NO_REFERENCES
        if metric.endswith("_rescaled") and likeness.baseline is None:
            return (
                f"needs a baseline of layer {likeness.encoder.layer} of {likeness.encoder.name}: give"
                f" --bertscore-baseline, or take {metric.removesuffix('_rescaled')}"
            )
        return ""

    def cell(self, column: Column) -> Cell:
        """The measured column."""
        score = self._score(column)
        if column.part:
            if column.part not in score.parts:
                raise ConfigError(f"{score.name} has no part {column.part!r}; it has {', '.join(score.parts)}.")
            unit = _PARTS.get(column.part, (score.unit, 0))[0]
            return Cell(column, score, float(score.parts[column.part]), unit, None)
        if column.unit and column.unit != score.unit:
            score = score.in_unit(column.unit)
        return Cell(column, score, score.value, score.unit, score.interval)

    def _score(self, column: Column) -> Score:
        key = repr((column.metric, column.words, sorted(column.settings.items())))
        if key not in self._scores:
            self._scores[key] = self.metric(column).compute(n_resamples=self.n_resamples)
        return self._scores[key]

    def metric(self, column: Column) -> Any:
        """What has seen all replies."""
        factory = METRICS.get(column.metric)
        if self.likeness is not None and column.metric.startswith("bertscore"):
            replies, references = self._texts("space")
            metric = factory(**self.likeness.settings(column.metric))
            metric.update(self.likeness.vectors(replies), self.likeness.vectors(references), references)
            return metric
        accepted = inspect.signature(factory).parameters
        arguments = dict(column.settings)
        words = column.words if "tokenizer" in accepted else "space"  # the others cut plain text themselves
        if words != "space":
            arguments["tokenizer"] = words
        fields = fields_of(column.metric)
        if _LABELS & set(fields) and "labels" in accepted:
            arguments["labels"] = self._labels()
        metric = factory(**arguments)
        metric.update(*(self._field(field, words, getattr(metric, "top_k", 1)) for field in fields))
        return metric

    def _field(self, field: str, words: str, n_guesses: int) -> list[Any]:
        """A field of all replies as metrics take it: texts cut, and of several guesses the first, or all in order."""
        if field == "emotion":
            return [reply.emotion for reply in self.replies]
        if field == "predicted" and n_guesses == 1:
            return [reply.predicted[0] for reply in self.replies]
        if field == "predicted":
            for reply in self.replies:
                if (n := len(reply.predicted)) < n_guesses:
                    raise DataError(f"needs {n_guesses} guesses an item; the item at line {reply.line} has {n}")
            return [reply.predicted for reply in self.replies]
        if field == "context":
            cut = _cutter(words)
            return [[cut(turn) for turn in reply.context] for reply in self.replies]
        return self._texts(words)[field == "reference"]

    def _texts(self, words: str) -> tuple[list[Any], list[Any]]:
        if words not in self._cut:
            cut = _cutter(words)
            has_references = all(reply.reference is not None for reply in self.replies)
            references = [cut(reply.reference or "") for reply in self.replies] if has_references else []
            self._cut[words] = [cut(reply.reply) for reply in self.replies], references
        return self._cut[words]

    def _no_emotions(self) -> str:
        if all(reply.emotion is None for reply in self.replies):
            return "needs gold emotions, which the file does not hold (fields emotion and predicted)"
        if not any(reply.predicted for reply in self.replies):
            return "needs predicted emotions, which the file does not hold (field predicted)"
        for reply in self.replies:
            if reply.emotion is None or not reply.predicted:
                which = "gold" if reply.emotion is None else "predicted"
                return f"the item at line {reply.line} has no {which} emotion"
        return ""

    def _labels(self) -> Sequence[str]:
        found = {label for reply in self.replies for label in (reply.emotion, *reply.predicted[:1]) if label}
        if found <= set(EMOTIONS):
            return EMOTIONS
        return LABELS_41 if found <= set(LABELS_41) else sorted({*found, *EMOTIONS})


def shared_signature(cells: Sequence[Cell]) -> Signature:
    """The entries that the signatures of all cells have in common."""
    parsed = [Signature.parse(cell.score.signature).values for cell in cells]
    if not parsed:
        return Signature({})
    return Signature({k: v for k, v in parsed[0].items() if all(other.get(k) == v for other in parsed[1:])})


def own_signature(cell: Cell, shared: Signature) -> Signature:
    """A cell's signature without what all share."""
    values = Signature.parse(cell.score.signature).values
    return Signature({key: value for key, value in values.items() if key not in shared.values})


def fields_of(metric: str) -> tuple[str, ...]:
    """Fields of a file of replies that a metric's ``update`` takes, in order; empty where no file holds what it needs.

    They are the metric's ``reads``, or follow from the names of its arguments: ``responses`` or ``hypotheses``,
    ``references``, ``contexts``.

    Raises:
        ConfigError: Its ``reads`` names a field that there is not.
    """
    reads: Sequence[str] | None = getattr(_class_of(metric), "reads", None)
    if reads is None:
        found = [_ARGUMENTS.get(name, "") for name in _arguments_of(metric)]
        return tuple(found) if all(found) else ()
    if unknown := [field for field in reads if field not in _FIELDS]:
        raise ConfigError(f"{metric}: reads has {unknown[0]!r}; accepted: {', '.join(_FIELDS)}.")
    return tuple(reads)


def _class_of(metric: str) -> Any:
    factory = METRICS.get(metric)
    return factory.func if isinstance(factory, partial) else factory


def _arguments_of(metric: str) -> tuple[str, ...]:
    """Names of what a metric's ``update`` must be given."""
    parameters = list(inspect.signature(_class_of(metric).update).parameters.values())[1:]
    return tuple(p.name for p in parameters if p.default is inspect.Parameter.empty)


def _cut_by(column: Column, words: Words) -> Column:
    """A default column on other words; sacreBLEU cuts for itself."""
    if words == "space" or column.metric == "bleu_sacre" or _LABELS & set(fields_of(column.metric)):
        return column
    return Column(column.name, column.metric, words=words, part=column.part, note=column.note, missing=column.missing)


def _cutter(words: str) -> Callable[[str], Any]:
    if words == "space":
        return str
    from empatheia.text.words import tokenize_words

    if words == "nltk-cased":
        return lambda text: [_as_written(text[w.start : w.end], w.text) for w in tokenize_words(text, "recec")]
    style: Any = {"nltk": "recec"}.get(words, words)
    return lambda text: [word.text for word in tokenize_words(text, style)]


def _as_written(written: str, word: str) -> str:
    """The characters of the text, save where the tokeniser writes others, such as `` for a quotation mark."""
    return written if written.lower() == word else word
