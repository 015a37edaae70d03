"""The numbers that papers printed, and ours beside them.

``published_results.csv`` is our transcription of the tables of six papers: one printed number a line, with
its table, setting, spread and any inconsistency found in the paper itself (column ``notes``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.score import Score, Signature
from empatheia.metrics.tolerances import Tolerance, tolerance
from empatheia.reading import CsvRows
from empatheia.registry import nearest

# The papers' keys, and their numbers in the file's column "seed"
PAPERS = MappingProxyType(
    {"kim2021": "000", "gao2021": "001", "imagine": "002", "rashkin2018": "003", "meed2": "004", "reccon": "005"}
)

AT_ROW_SIZE = "made small and short, to be compared with the other rows at size row"
"""Why a run of size ``row`` is not set beside a printed value."""
NO_DEFINITION = "the paper does not define it"
BY_PEOPLE = "rated by people, not computed"
FACT = "a fact about the data or the training, not a score"


def _for_all(paper: str, reason: str, *metrics: str) -> dict[tuple[str, str], str]:
    return {(paper, metric): reason for metric in metrics}


# (paper, printed metric) -> (our score, unit in print), or the reason why no score of ours is that number
DEFINITIONS: Mapping[tuple[str, str], tuple[str, str] | str] = MappingProxyType(
    {
        ("gao2021", "BLEU"): ("bleu_nltk_4", "percent"),
        ("gao2021", "Dist-1"): ("dist_corpus_1", "fraction"),
        ("gao2021", "Dist-2"): ("dist_corpus_2", "fraction"),
        ("gao2021", "P_BERT"): ("bertscore_p_rescaled", "fraction"),
        ("gao2021", "R_BERT"): ("bertscore_r_rescaled", "fraction"),
        ("gao2021", "F_BERT"): ("bertscore_f_rescaled", "fraction"),
        ("gao2021", "Accuracy"): ("accuracy", "percent"),
        ("gao2021", "Fleiss kappa"): ("fleiss_kappa", "kappa"),
        ("imagine", "PPL"): ("ppl_item", "perplexity"),
        ("imagine", "BLEU-2"): NO_DEFINITION,
        ("imagine", "Distinct-1"): ("dist_corpus_1", "percent"),
        ("imagine", "Distinct-2"): ("dist_corpus_2", "percent"),
        ("imagine", "ACC"): ("accuracy", "percent"),
        ("reccon", "EM_pos"): ("span_em_pos", "percent"),
        ("reccon", "F1_pos"): ("span_f1_pos_nested", "percent"),
        ("reccon", "F1_neg"): ("span_f1_neg", "percent"),
        ("reccon", "F1"): ("span_f1_nested", "percent"),
        ("reccon", "Pos. F1"): ("entailment_f1_positive", "percent"),
        ("reccon", "Neg. F1"): ("entailment_f1_negative", "percent"),
        ("reccon", "macro F1"): ("entailment_f1_macro", "percent"),
        ("rashkin2018", "PPL"): ("ppl_token", "perplexity"),
        ("rashkin2018", "AVG BLEU"): ("bleu_avg", "percent"),
        ("rashkin2018", "P@1,100"): ("p_at_1_100", "percent"),
        ("rashkin2018", "Acc"): ("accuracy", "fraction"),
        ("rashkin2018", "F1"): "copied from Felbo et al. (2017): other corpora, their own averages of F1",
        ("meed2", "PPL"): ("ppl_token", "perplexity"),
        ("meed2", "Distinct-1"): ("dist_corpus_1", "fraction"),
        ("meed2", "Distinct-2"): ("dist_corpus_2", "fraction"),
        ("meed2", "SES"): "the sentence encoder is not named in the paper (ours: sentence_similarity)",
        ("meed2", "weighted precision"): ("precision_weighted", "fraction"),
        ("meed2", "weighted recall"): ("recall_weighted", "fraction"),
        ("meed2", "weighted F1"): ("f1_weighted", "fraction"),
        ("meed2", "41-class emotion/intent classifier accuracy (%)"): ("accuracy", "percent"),
        ("meed2", "SVM turn segmentation accuracy (%)"): "features, data and code of the segmenter are not released",
        ("gao2021", "accuracy (%)"): "a check of 100 annotated dialogues by the authors",
        **_for_all("gao2021", BY_PEOPLE, "Fluency", "Relevance", "Empathy", "Win %", "Loss %", "Tie %"),
        **_for_all("imagine", BY_PEOPLE, "Fluency", "Relevance", "Empathy", "Win %", "Loss %", "Tie %"),
        **_for_all("rashkin2018", BY_PEOPLE, "Empathy", "Relevance", "Fluency", "A:B ratio"),
        **_for_all("meed2", BY_PEOPLE, "Good", "Okay", "Bad"),
        **_for_all("kim2021", FACT, "n_emotions", "cause_words_per_utterance", "n_utterances"),
        **_for_all("rashkin2018", FACT, "parameters (millions)", "added parameters", "GPUs", "train examples"),
        **_for_all("rashkin2018", FACT, "training time (days)", "training time (hours)", "label share (%)"),
        **_for_all("rashkin2018", FACT, "conversations", "participants", "average situation length (words)"),
        **_for_all("rashkin2018", FACT, "train conversations", "valid conversations", "test conversations"),
        **_for_all("rashkin2018", FACT, "average utterance length (words)", "average utterances per conversation"),
        **_for_all("rashkin2018", FACT, "median conversations per worker", "average conversations per worker"),
        **_for_all("rashkin2018", FACT, "raters in rating task", "raters in comparison task"),
        **_for_all("meed2", FACT, "dialogs", "turns", "tokens", "average turns per dialog", "average tokens per turn"),
        **_for_all("meed2", FACT, "average tokens per dialog", "parameters (millions)", "training epochs"),
        **_for_all("meed2", FACT, "training time (hours)", "training time (minutes)"),
        **_for_all("meed2", FACT, "answers collected", "answers kept"),
    }
)

# (paper, printed metric) -> signature entries (patterns) without which a score of that name is another number
REQUIRED: Mapping[tuple[str, str], Mapping[str, str]] = MappingProxyType(
    {
        **{("gao2021", f"{x}_BERT"): {"encoder": "roberta-large", "layer": "17", "idf": "no"} for x in "PRF"},
        ("rashkin2018", "P@1,100"): {"protocol": "blocks-shuffled"},
        ("rashkin2018", "AVG BLEU"): {"tok": "rashkin", "case": "mixed"},
        ("rashkin2018", "PPL"): {"tok": "rashkin-250006"},  # the authors' words of Reddit, not released
        ("meed2", "PPL"): {"tok": "hf-*"},  # RoBERTa's pieces
    }
)


TOLD_GOLD = frozenset({("meed2", "PPL")})
"""Numbers whose systems were told a gold label; ours that was told it, too, comes before ours that was not."""


@dataclass(frozen=True, slots=True)
class Published:
    """One printed number.

    Attributes:
        paper: Key of the paper, see ``PAPERS``.
        table: E.g. ``Table 2``.
        dataset: Test set, as the paper calls it.
        setting: What kind of evaluation, e.g. ``automatic; mean and std of 5 seeds``.
        row: System, as printed.
        metric: Metric, as printed.
        value: The number, in the unit of print.
        std: Printed spread, or None.
        higher_is_better: Direction, or None for plain facts.
        decimals: Decimals of the printed value.
        notes: Inconsistencies, definitions.
    """

    paper: str
    table: str
    dataset: str
    setting: str
    row: str
    metric: str
    value: float
    std: float | None
    higher_is_better: bool | None
    decimals: int
    notes: str = ""

    def __str__(self) -> str:
        spread = "" if self.std is None else f" ± {self.std:.{self.decimals}f}"
        return f"{self.value:.{self.decimals}f}{spread}"


@cache
def read_published(path: str | Path | None = None) -> tuple[Published, ...]:
    """All printed numbers, in file order.

    Args:
        path: Another file with the same columns; None for the one shipped with the package.

    Raises:
        DataError: A line has an unknown paper or no number.
    """
    source = files("empatheia.metrics").joinpath("published_results.csv") if path is None else Path(path)
    keys = {number: paper for paper, number in PAPERS.items()}
    out = []
    for line, row in enumerate(CsvRows(source.read_text(encoding="utf-8"), str(source)), start=2):
        try:
            paper, value = keys[row["seed"]], float(row["value"])
        except (KeyError, ValueError, TypeError) as error:
            raise DataError(f"published numbers, line {line}: {row} has no known paper or value.") from error
        better = {"true": True, "false": False}.get(row["higher_is_better"])
        decimals = len(row["value"].partition(".")[2])
        std = float(row["std"]) if row["std"] else None
        place = (row["paper_table"], row["dataset"], row["setting"], row["model"], row["metric"])
        out.append(Published(paper, *place, value, std, better, decimals, row["notes"] or ""))
    return tuple(out)


def published(paper: str, table: str, row: str, setting: str = "", dataset: str = "") -> dict[str, Published]:
    """The printed numbers of one row.

    Args:
        paper: ``gao2021``, ``imagine``, ``rashkin2018``, ``meed2``, ``kim2021`` or ``reccon``.
        table: ``Table 2``, or just ``2``.
        row: System as printed, e.g. ``Ours(Soft)``.
        setting: The setting, or whole words of it, e.g. ``run 1`` or ``candidates=ED+DD``.
        dataset: The test set, or whole words of its name, e.g. ``OS``, which does not match ``EDOS test``.

    Returns:
        Printed metric name to number, in printed order.

    Raises:
        ConfigError: Nothing matches, or a metric matches twice because a setting or dataset must be chosen.

    Example:
        >>> print(published("gao2021", "Table 2", "Ours(Soft)")["BLEU"])
        1.774 ± 0.063
    """
    table = f"Table {table}" if table.isdigit() else table
    numbers = _row_of(paper, table, row)
    chosen = _chosen(numbers, setting, dataset)
    if not chosen or len({number.metric for number in chosen}) < len(chosen):
        found = sorted({f"dataset {n.dataset!r}, setting {n.setting!r}" for n in chosen or numbers})
        trouble = "nothing matches" if not chosen else "a metric is printed more than once; choose by"
        raise ConfigError(
            f"{paper}, {table}, {row}: {trouble} setting={setting!r}, dataset={dataset!r}; known: {'; '.join(found)}."
        )
    return {number.metric: number for number in chosen}


def _chosen(numbers: list[Published], setting: str, dataset: str) -> list[Published]:
    """The numbers of a setting and a set: those with just these names, or else with their words."""
    chosen = [n for n in numbers if has_words(setting, n.setting) and has_words(dataset, n.dataset)]
    return [n for n in chosen if setting in ("", n.setting) and dataset in ("", n.dataset)] or chosen


def _row_of(paper: str, table: str, row: str) -> list[Published]:
    """All numbers of a row, in every setting and on every set; raises ConfigError where there is none."""
    numbers = [number for number in read_published() if number.paper == paper]
    _require(paper, list(PAPERS), "paper")
    _require(table, [number.table for number in numbers], f"table of {paper}")
    numbers = [number for number in numbers if number.table == table]
    _require(row, [number.row for number in numbers], f"row of {paper}, {table}")
    return [number for number in numbers if number.row == row]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Our number beside a printed one.

    Attributes:
        metric: Metric as printed.
        ours: Our value in the unit of print; NaN when there is none.
        interval: Our interval in the unit of print, or None.
        printed: The printed number.
        difference: ours - printed; NaN when they cannot be compared.
        verdict: ``better`` or ``missed`` (better or worse by more than the tolerance; ``other`` where neither direction
            is better), ``met`` (not farther than the tolerance), or ``not comparable: reason``.
        score: Name of our score, or an empty string.
        tolerance: Around the printed number (:mod:`empatheia.metrics.tolerances`); None where the two do not compare.
    """

    metric: str
    ours: float
    interval: tuple[float, float] | None
    printed: Published
    difference: float
    verdict: str
    score: str = ""
    tolerance: Tolerance | None = None

    @property
    def is_comparable(self) -> bool:
        """Whether ours is the number that was printed, measured on the same things."""
        return not self.verdict.startswith("not comparable")

    @property
    def is_reached(self) -> bool:
        """Whether ours is at least as good at the printed precision; without a direction: prints the same."""
        if not self.is_comparable:
            return False
        return _shortfall(self.difference, _is_upward(self.printed, None)) <= _rounding(self.printed)


def compare(
    scores: Iterable[Score] | Mapping[str, Score],
    row: Mapping[str, Published],
    not_comparable: Mapping[str, str] = MappingProxyType({}),
) -> list[Verdict]:
    """Sets our scores beside a published row.

    Args:
        scores: Ours. An iterable is matched by score name through ``DEFINITIONS``; a mapping from printed
            metric names to scores is taken at its word.
        row: What :func:`published` returned.
        not_comparable: Printed metric to the reason why ours is a different number all the same, e.g.
            ``{"PPL": "other vocabulary"}``.

    Returns:
        One verdict for each printed metric, in printed order.

    Example:
        >>> ours = Score("accuracy", 42.9, "percent", 5259, True)
        >>> row = published("gao2021", "Table 2", "Ours(Soft)")
        >>> [v.verdict for v in compare([ours], row) if v.metric == "Accuracy"]
        ['met']
    """
    by_metric: dict[str, Score] | None = None
    by_name: dict[str, Score] = {}
    if isinstance(scores, Mapping):
        by_metric = {str(metric): score for metric, score in scores.items()}
    else:
        by_name = {score.name: score for score in scores}
    out = []
    for metric, printed in row.items():
        definition = DEFINITIONS.get((printed.paper, metric), "no score of this package measures it")
        reason = not_comparable.get(metric, "")
        score: Score | None = None
        if by_metric is not None:
            score = by_metric.get(metric)
            reason = reason or ("" if score else "not measured")
        elif isinstance(definition, str):
            reason = reason or definition
        else:
            told = by_name.get(f"gold label: {definition[0]}") if (printed.paper, metric) in TOLD_GOLD else None
            score = told or by_name.get(definition[0])
            reason = reason or (other_settings(score, printed) if score else f"{definition[0]} was not measured")
        unit = definition[1] if isinstance(definition, tuple) else None
        out.append(_verdict(metric, score, printed, unit, reason))
    return out


def other_settings(score: Score, printed: Published) -> str:
    """How the score's signature differs from what the printed number needs; empty if it does not."""
    entries = Signature.parse(score.signature).values
    needed = REQUIRED.get((printed.paper, printed.metric), {})
    other = [
        f"{key}:{entries.get(key, 'unknown')}, not {value}"
        for key, value in needed.items()
        if not fnmatchcase(entries.get(key, ""), value)
    ]
    return f"measured with {'; '.join(other)}" if other else ""


def _verdict(metric: str, score: Score | None, printed: Published, unit: str | None, reason: str) -> Verdict:
    if score is None:
        return Verdict(metric, math.nan, None, printed, math.nan, f"not comparable: {reason}")
    if unit and {unit, score.unit} <= {"percent", "fraction"}:
        score = score.in_unit(unit)
    if math.isnan(score.value):
        reason = reason or f"ours is undefined ({score.parts.get('note', 'no value')})"
    if reason:
        return Verdict(metric, score.value, score.interval, printed, math.nan, f"not comparable: {reason}", score.name)
    difference = score.value - printed.value
    upward = _is_upward(printed, score)
    shortfall, rounding = _shortfall(difference, upward), _rounding(printed)
    allowed = tolerance(score.name, unit, printed.value, printed.std)
    if abs(difference) <= allowed.value + rounding:
        verdict = "met"
    elif shortfall <= rounding:
        verdict = "better"
    else:
        verdict = "other" if upward is None else "missed"
    return Verdict(metric, score.value, score.interval, printed, difference, verdict, score.name, allowed)


def _is_upward(printed: Published, score: Score | None) -> bool | None:
    """Whether higher is better, by the printed table or else by our score; None = neither says."""
    if printed.higher_is_better is not None or score is None:
        return printed.higher_is_better
    return score.higher_is_better


def _shortfall(difference: float, upward: bool | None) -> float:
    """How much worse ours is; without a direction how far away."""
    return abs(difference) if upward is None else -difference if upward else difference


def _rounding(printed: Published) -> float:
    """Half of the last printed digit."""
    return 0.5 * 10**-printed.decimals + 1e-12


HEADER = ("metric", "ours", "interval", "published", "difference", "tolerance", "verdict")


def to_text(verdicts: Iterable[Verdict]) -> str:
    """A plain table with aligned columns."""
    lines = [HEADER, *map(_cells, verdicts)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def _cells(verdict: Verdict) -> tuple[str, ...]:
    decimals = verdict.printed.decimals

    def show(value: float, sign: str = "") -> str:
        return "-" if math.isnan(value) else f"{value:{sign}.{decimals}f}"

    interval = verdict.interval
    between = "-" if interval is None else f"{show(interval[0])} to {show(interval[1])}"
    return (
        verdict.metric,
        show(verdict.ours),
        between,
        str(verdict.printed),
        show(verdict.difference, "+"),
        shown_tolerance(verdict),
        verdict.verdict,
    )


def shown_tolerance(verdict: Verdict) -> str:
    """``± 0.6``, with one digit more than the printed number where that would hide it; ``-`` without one."""
    if verdict.tolerance is None:
        return "-"
    value, decimals = verdict.tolerance.value, verdict.printed.decimals
    return f"± {value:.{decimals + (value < 10**-decimals)}f}"


def has_words(wanted: str, text: str) -> bool:
    """Whether ``wanted`` is empty or occurs as whole words; ``+`` joins words, so ``ED`` is not in ``ED+DD``."""
    return not wanted or re.search(rf"(?<![\w+]){re.escape(wanted)}(?![\w+])", text) is not None


def _require(name: str, known: list[str], kind: str) -> None:
    if name not in known:
        names = list(dict.fromkeys(known))
        raise ConfigError(f"unknown {kind}: {name!r}.{nearest(name, names)} Known: {', '.join(names)}.")
