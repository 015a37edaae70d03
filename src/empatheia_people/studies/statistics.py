"""From sheets to the numbers of a report: shares, means, tests, agreement, speed of workers."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from empatheia.metrics.agreement import FleissKappa, RawAgreement
from empatheia.metrics.intraclass import Form, IntraclassCorrelation
from empatheia.metrics.krippendorff import krippendorff_alpha
from empatheia.metrics.significance import holm, paired_permutation
from empatheia_people.studies.design import PAIRED, Criterion, Design
from empatheia_people.studies.effects import Effect, effect_of
from empatheia_people.studies.preferences import agreement_units
from empatheia_people.studies.rated import MeanRating, RatedShare
from empatheia_people.studies.sheets import Answer, Sheet

N_RESAMPLES = 1000
Cluster = Literal["dialogue", "worker"]


@dataclass(frozen=True, slots=True)
class ShareRow:
    """How often one system got each answer on one test set.

    Attributes:
        set: Test set.
        system: Its name.
        n: Ratings.
        items: Dialogues behind them.
        counts: By answer.
        percent: By answer.
        intervals: By answer, 95 %, percent; clusters drawn as a whole. None for fewer than two clusters.
    """

    set: str
    system: str
    n: int
    items: int
    counts: Mapping[str, int]
    percent: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float] | None]

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class MeanRow:
    """Mean rating of one system under one criterion.

    Attributes:
        set: Test set.
        system: Its name.
        criterion: Name of the question.
        n: Ratings.
        mean: In points of the scale.
        deviation: Sample standard deviation; NaN for one rating.
        error: Standard error of the mean as papers print it, s / sqrt(n); it takes ratings as independent.
        interval: 95 %, dialogues drawn as a whole.
        counts: By answer.
    """

    set: str
    system: str
    criterion: str
    n: int
    mean: float
    deviation: float
    error: float
    interval: tuple[float, float] | None
    counts: Mapping[str, int]

    def to_dict(self) -> dict[str, object]:
        """JSON-ready; what is undefined becomes None."""
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """Two systems on the dialogues both were rated on.

    Attributes:
        set: Test set.
        criterion: Name of the question, or the answer whose share is compared.
        a, b: The systems.
        difference: a - b, points or percent.
        p_value: Permutation of the systems, dialogue by dialogue.
        p_adjusted: Holm's, over all pairs of the set and criterion.
        items: Dialogues.
        effect: Its size, of the numbers of all answers.
    """

    set: str
    criterion: str
    a: str
    b: str
    difference: float
    p_value: float
    p_adjusted: float
    items: int
    effect: Effect

    def to_dict(self) -> dict[str, object]:
        """JSON-ready; what is undefined becomes None."""
        record: dict[str, object] = asdict(self)
        effect: dict[str, object] = asdict(self.effect)
        del record["effect"]
        record |= {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in effect.items()}
        return record


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """How far raters agree under one criterion.

    Attributes:
        criterion: Name of the question.
        units: Things that at least two people rated.
        raters: Fewest and most of them.
        percent: Of pairs of raters that agree; None without units.
        fleiss: Kappa over the units with the most frequent number of raters; NaN where undefined.
        fleiss_units: How many those are.
        alpha: Krippendorff's; NaN where undefined.
        level: Of alpha.
        icc: Intraclass correlation of one rating, of scales and boxes; NaN where undefined.
        icc_interval: 95 %, units drawn.
        icc_mean: Of the mean of a unit's ratings.
        icc_form: ``A`` where the same people rated all units, else ``1``; see
            :class:`~empatheia.metrics.intraclass.IntraclassCorrelation`.
    """

    criterion: str
    units: int
    raters: tuple[int, int]
    percent: float | None
    fleiss: float
    fleiss_units: int
    alpha: float
    level: str
    icc: float = math.nan
    icc_interval: tuple[float, float] | None = None
    icc_mean: float = math.nan
    icc_form: Literal["A", "1", ""] = ""

    def to_dict(self) -> dict[str, object]:
        """JSON-ready; what is undefined becomes None."""
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One worker.

    Attributes:
        worker: Number.
        sheets: Handed in.
        minutes: Median of a HIT.
        points: Mean of bonus points; None without bonus.
        agreement: Percent of the other raters' answers on the same things that are theirs; None without any.
        same: Percent of their most frequent answer.
    """

    worker: int
    sheets: int
    minutes: float
    points: float | None
    agreement: float | None
    same: float


def answers_of(sheets: Iterable[Sheet]) -> list[Answer]:
    """All answers of sheets."""
    return [answer for sheet in sheets for answer in sheet.answers]


def _single(sheets: Iterable[Sheet], criterion: str) -> Iterable[tuple[Sheet, Answer, str]]:
    """Answers about one card, once for every system behind it; equal replies share their votes."""
    for sheet in sheets:
        for answer in sheet.answers:
            if not answer.is_pair and answer.criterion == criterion:
                for system in answer.systems:
                    yield sheet, answer, system


def share_rows(
    sheets: Sequence[Sheet],
    criterion: str,
    answers: Sequence[str],
    cluster: Cluster = "dialogue",
    n_resamples: int = N_RESAMPLES,
) -> list[ShareRow]:
    """Shares of each answer by test set and system, raw votes, as MEED2's table 5.

    Args:
        sheets: Those that count.
        criterion: Name of the question.
        answers: All it has.
        cluster: What the bootstrap draws as a whole.
        n_resamples: Of the bootstrap.
    """
    place = {answer: i for i, answer in enumerate(answers)}
    tables: dict[tuple[str, str], dict[Any, np.ndarray]] = defaultdict(dict)
    items: dict[tuple[str, str], set[str]] = defaultdict(set)
    for sheet, answer, system in _single(sheets, criterion):
        if answer.value in place:
            of = answer.item if cluster == "dialogue" else sheet.worker
            row = tables[answer.set, system].setdefault(of, np.zeros(len(answers)))
            row[place[answer.value]] += 1
            items[answer.set, system].add(answer.item)
    out = []
    for (name, system), rows in sorted(tables.items()):
        table = np.array(list(rows.values()))
        totals = table.sum(axis=0)
        intervals: dict[str, tuple[float, float] | None] = {}
        for answer in answers:
            metric = RatedShare(answer, answers, cluster)
            metric.update(table.tolist())
            intervals[answer] = metric.interval(n_resamples) if n_resamples else None
        counts = {answer: int(totals[i]) for answer, i in place.items()}
        percent = {answer: 100 * counts[answer] / sum(counts.values()) for answer in answers}
        out.append(ShareRow(name, system, int(totals.sum()), len(items[name, system]), counts, percent, intervals))
    return out


def mean_rows(
    sheets: Sequence[Sheet], design: Design, criterion: Criterion, n_resamples: int = N_RESAMPLES
) -> list[MeanRow]:
    """Mean ratings by test set and system."""
    values: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for _, answer, system in _single(sheets, criterion.name):
        values[answer.set, system][answer.item].append(design.score_of(criterion, answer.value))
        counts[answer.set, system][answer.value] += 1
    out = []
    for (name, system), by_item in sorted(values.items()):
        flat = np.array([value for each in by_item.values() for value in each])
        metric = MeanRating(criterion.name)
        metric.update(list(by_item.values()))
        deviation = float(flat.std(ddof=1)) if len(flat) > 1 else math.nan
        found = {answer: counts[name, system][answer] for answer in design.answers_of(criterion)}
        out.append(
            MeanRow(
                name,
                system,
                criterion.name,
                len(flat),
                float(flat.mean()),
                deviation,
                deviation / math.sqrt(len(flat)),
                metric.interval(n_resamples) if n_resamples else None,
                found,
            )
        )
    return out


def difference_rows(
    sheets: Sequence[Sheet], design: Design, criterion: Criterion, n_resamples: int = 2000
) -> list[DifferenceRow]:
    """Every two systems on the dialogues both were rated on; of boxes the share of the first box, else means."""
    answers = design.answers_of(criterion)
    scores = [design.score_of(criterion, answer) for answer in answers]
    is_share = design.protocol == "drag"
    counted = [100.0 * (answer == answers[0]) for answer in answers] if is_share else scores
    what = answers[0] if is_share else criterion.name
    out = []
    for name, by_system in _counts(sheets, criterion, answers).items():
        found = {}
        for a, b in combinations(sorted(by_system), 2):
            shared = sorted(set(by_system[a]) & set(by_system[b]))
            if len(shared) < 2:
                continue
            one, other = (np.array([by_system[system][item] for item in shared]) for system in (a, b))
            metrics = [_share(answers, t) if is_share else _mean(criterion.name, scores, t) for t in (one, other)]
            found[a, b] = (
                paired_permutation(*metrics, n_resamples=n_resamples),
                len(shared),
                effect_of(scores, one, other, counted),
            )
        adjusted = holm({"\n".join(pair): test.p_value for pair, (test, _, _) in found.items()})
        out += [
            DifferenceRow(name, what, a, b, test.difference, test.p_value, adjusted[f"{a}\n{b}"], n, effect)
            for (a, b), (test, n, effect) in found.items()
        ]
    return out


def _counts(
    sheets: Sequence[Sheet], criterion: Criterion, answers: Sequence[str]
) -> dict[str, dict[str, dict[str, np.ndarray]]]:
    """How often each answer was given, by test set, system and item. Shape: (n_answers,)."""
    found: dict[str, dict[str, dict[str, np.ndarray]]] = defaultdict(lambda: defaultdict(dict))
    for _, answer, system in _single(sheets, criterion.name):
        row = found[answer.set][system].setdefault(answer.item, np.zeros(len(answers)))
        row[answers.index(answer.value)] += 1
    return dict(sorted(found.items()))


def _share(answers: Sequence[str], counts: np.ndarray) -> RatedShare:
    metric = RatedShare(answers[0], answers)
    metric.update(counts.tolist())
    return metric


def _mean(name: str, scores: Sequence[float], counts: np.ndarray) -> MeanRating:
    metric = MeanRating(name)
    metric.update([np.repeat(scores, row.astype(int)).tolist() for row in counts])
    return metric


def agreement_rows(sheets: Sequence[Sheet], design: Design) -> list[AgreementRow]:
    """Agreement of the raters under each criterion whose answers are chosen, not marked."""
    units = agreement_units(answers_of(sheets))
    out = []
    for criterion in design.criteria:
        if criterion.kind == "spans" or criterion.name not in units:
            continue
        answers = design.answers_of(criterion)
        shared = [unit for unit in units[criterion.name] if len(unit) >= 2]
        is_ordinal = design.protocol not in (*PAIRED, "turn_annotation")
        level = "ordinal" if is_ordinal else "nominal"
        number = {
            answer: design.score_of(criterion, answer) if is_ordinal else float(i) for i, answer in enumerate(answers)
        }
        alpha = krippendorff_alpha([[number[value] for value in unit] for unit in shared], level)
        sizes = Counter(map(len, shared))
        fleiss, n_units = _most_common_kappa(shared, answers)
        percent = _raw_agreement(shared)
        spread = (min(sizes), max(sizes)) if sizes else (0, 0)
        row = AgreementRow(criterion.name, len(shared), spread, percent, fleiss, n_units, alpha, level)
        if is_ordinal:
            answered = _by_question(sheets, criterion.name)
            row = _with_icc(row, [{worker: number[value] for worker, value in unit} for unit in answered])
        out.append(row)
    return out


def _with_icc(row: AgreementRow, units: Sequence[Mapping[int, float]]) -> AgreementRow:
    """Intraclass correlations of who gave which number: two-way where the same people rated everything."""
    people = sorted({worker for unit in units for worker in unit})
    is_crossed = len(people) > 1 and all(len(unit) == len(people) for unit in units)
    table = [[unit[worker] for worker in people] if is_crossed else list(unit.values()) for unit in units]
    forms: tuple[Form, Form] = ("A,1", "A,k") if is_crossed else ("1", "k")
    one, mean = (IntraclassCorrelation(form, len(people)) for form in forms)
    for metric in (one, mean):
        metric.update(table)
    if one.n_items < 2:
        return row
    interval = one.interval(N_RESAMPLES)
    form = "A" if is_crossed else "1"
    return replace(row, icc=one.compute().value, icc_interval=interval, icc_mean=mean.compute().value, icc_form=form)


def _most_common_kappa(shared: Sequence[Sequence[str]], answers: Sequence[str]) -> tuple[float, int]:
    """Fleiss' kappa of the units with the most common number of raters, and how many units these are."""
    sizes = Counter(map(len, shared))
    if not sizes:
        return math.nan, 0
    size = max(sizes, key=lambda n: (sizes[n], n))
    same = [unit for unit in shared if len(unit) == size]
    metric = FleissKappa(len(answers))
    metric.update([[unit.count(answer) for answer in answers] for unit in same])
    return metric.compute().value, len(same)


def _raw_agreement(shared: Sequence[Sequence[str]]) -> float | None:
    """Percent of the pairs of ratings that are equal; None without any."""
    if not shared:
        return None
    metric = RawAgreement()
    metric.update(shared)
    return metric.compute().value


def worker_rows(sheets: Sequence[Sheet]) -> list[WorkerRow]:
    """Every worker's speed, points and agreement with the others, by number."""
    same: Counter[int] = Counter()
    compared: Counter[int] = Counter()
    values: dict[int, Counter[str]] = defaultdict(Counter)
    for given in _by_question(sheets):
        for worker, value in given:
            values[worker][value] += 1
            others = [other for name, other in given if name != worker]
            same[worker] += sum(other == value for other in others)
            compared[worker] += len(others)
    mine: dict[int, list[Sheet]] = defaultdict(list)
    for sheet in sheets:
        mine[sheet.worker].append(sheet)
    return [
        WorkerRow(
            worker,
            len(own),
            float(np.median([sheet.minutes for sheet in own])),
            float(np.mean(points)) if (points := [s.points for s in own if s.points is not None]) else None,
            100 * same[worker] / compared[worker] if compared[worker] else None,
            100 * max(values[worker].values()) / sum(values[worker].values()) if values[worker] else math.nan,
        )
        for worker, own in sorted(mine.items())
    ]


def _by_question(sheets: Sequence[Sheet], criterion: str | None = None) -> list[list[tuple[int, str]]]:
    """Workers and their answers to each question: one criterion (None = each) of one card of one item."""
    said: dict[tuple[Any, ...], list[tuple[int, str]]] = defaultdict(list)
    for sheet in sheets:
        for answer in sheet.answers:
            if criterion not in (None, answer.criterion):
                continue
            said[answer.item, answer.systems, answer.card, answer.criterion].append((sheet.worker, answer.value))
    return list(said.values())


def label_counts(
    sheets: Sequence[Sheet], criterion: str, best: str, labels: Mapping[tuple[str, str], str], system: str
) -> tuple[Counter[str], Counter[str]]:
    """Labels of a system's replies that were rated best (MEED2's figure 5).

    Args:
        sheets: Those that count.
        criterion: Name of the question.
        best: The answer that counts.
        labels: Label by item and system.
        system: Whose replies.

    Returns:
        Per answer (a reply rated best by three people counts three times) and per reply.
    """
    answers: Counter[str] = Counter()
    replies: dict[str, str] = {}
    for _, answer, name in _single(sheets, criterion):
        label = labels.get((answer.item, name))
        if name == system and answer.value == best and label:
            answers[label] += 1
            replies[answer.item] = label
    return answers, Counter(replies.values())
