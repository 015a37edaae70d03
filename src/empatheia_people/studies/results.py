"""All numbers of a study in one record: what was filtered, rated, compared, and how far people agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from empatheia.metrics.published import Published, read_published
from empatheia_people.judging.verdicts import Agreement
from empatheia_people.studies.design import GOLD, PAIRED, Design
from empatheia_people.studies.filters import Removed, apply, filter_of
from empatheia_people.studies.items import StudyItem
from empatheia_people.studies.judged import judge_agreement, kept_verdicts
from empatheia_people.studies.preferences import PairResult, Strength, pair_results, strengths
from empatheia_people.studies.sheets import Sheet, read_sheets
from empatheia_people.studies.statistics import (
    AgreementRow,
    DifferenceRow,
    MeanRow,
    ShareRow,
    WorkerRow,
    agreement_rows,
    answers_of,
    difference_rows,
    label_counts,
    mean_rows,
    share_rows,
    worker_rows,
)
from empatheia_people.studies.store import Store


@dataclass(frozen=True, slots=True)
class Results:
    """What a study found.

    Attributes:
        design: Of the study.
        sheets: Handed in, and of these kept by the filters.
        answers: Tasks on them, handed in and kept.
        workers: Of them.
        removed: By each filter.
        shares: Of boxes and other answers (single replies), filtered.
        shares_unfiltered: The same of all sheets.
        means: On scales.
        differences: Between systems.
        pairs: Comparisons.
        strengths: By criterion.
        agreement: Among people.
        crowd: One row a worker, of all sheets.
        labels: Of replies rated best, by system: per answer and per reply.
        printed: Numbers that papers print for this protocol.
        judge: Agreement of people with a language model.
    """

    design: Design
    sheets: tuple[int, int]
    answers: tuple[int, int]
    workers: tuple[int, int]
    removed: tuple[Removed, ...]
    shares: tuple[ShareRow, ...] = ()
    shares_unfiltered: tuple[ShareRow, ...] = ()
    means: tuple[MeanRow, ...] = ()
    differences: tuple[DifferenceRow, ...] = ()
    pairs: tuple[PairResult, ...] = ()
    strengths: Mapping[str, tuple[Strength, ...]] = field(default_factory=dict)
    agreement: tuple[AgreementRow, ...] = ()
    crowd: tuple[WorkerRow, ...] = ()
    labels: Mapping[str, tuple[Counter[str], Counter[str]]] = field(default_factory=dict)
    printed: tuple[Published, ...] = ()
    judge: tuple[Agreement, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "study": self.design.name,
            "protocol": self.design.protocol,
            "sheets": {"all": self.sheets[0], "kept": self.sheets[1]},
            "answers": {"all": self.answers[0], "kept": self.answers[1]},
            "workers": {"all": self.workers[0], "kept": self.workers[1]},
            "filters": [each.to_dict() for each in self.removed],
            "shares": [row.to_dict() for row in self.shares],
            "shares_unfiltered": [row.to_dict() for row in self.shares_unfiltered],
            "means": [row.to_dict() for row in self.means],
            "differences": [row.to_dict() for row in self.differences],
            "pairs": [row.to_dict() for row in self.pairs],
            "strengths": {name: [asdict(row) for row in rows] for name, rows in self.strengths.items()},
            "agreement": [row.to_dict() for row in self.agreement],
            "workers_each": [asdict(row) for row in self.crowd],
            "labels": {name: {"answers": dict(a), "replies": dict(r)} for name, (a, r) in self.labels.items()},
            "judge": [each.to_dict() for each in self.judge],
        }


def study_results(store: Store, n_resamples: int = 1000) -> Results:
    """The results of a store's study as it stands."""
    design = store.design()
    results = results_of(design, read_sheets(store, design), list(store.items().values()), n_resamples)
    verdicts = kept_verdicts(store)
    if not verdicts:
        return results
    kept, _ = apply(read_sheets(store, design), [filter_of(rule) for rule in design.filters])
    return replace(results, judge=tuple(judge_agreement(verdicts, kept, design)))


def results_of(design: Design, sheets: Sequence[Sheet], items: Sequence[StudyItem], n_resamples: int = 1000) -> Results:
    """The results of sheets, wherever they come from; those handed in beyond the seats do not count.

    Args:
        design: Of the study.
        sheets: All.
        items: For the labels of replies.
        n_resamples: Of bootstraps; 0 for no intervals.
    """
    counted = [sheet for sheet in sheets if not sheet.is_extra]
    kept, removed = apply(counted, [filter_of(rule) for rule in design.filters])
    rated = _rated(design, kept, counted if removed else None, n_resamples)
    pairs = pair_results(answers_of(kept), max(n_resamples, 2))
    names = list(dict.fromkeys(pair.criterion for pair in pairs))
    ranked = {name: tuple(strengths(answers_of(kept), name)) for name in names}
    return Results(
        design,
        (len(counted), len(kept)),
        (sum(s.n_tasks for s in counted), sum(s.n_tasks for s in kept)),
        (len({s.worker for s in counted}), len({s.worker for s in kept})),
        tuple(removed),
        tuple(rated.shares),
        tuple(rated.unfiltered),
        tuple(rated.means),
        tuple(rated.differences),
        tuple(pairs),
        {name: rows for name, rows in ranked.items() if rows},
        tuple(agreement_rows(kept, design)),
        tuple(worker_rows(counted)),
        _labels(design, kept, items),
        _printed(design),
    )


@dataclass(slots=True)
class _Rated:
    """What the questions about single candidates found; the fields are those of :class:`Results`."""

    shares: list[ShareRow] = field(default_factory=list)
    unfiltered: list[ShareRow] = field(default_factory=list)
    means: list[MeanRow] = field(default_factory=list)
    differences: list[DifferenceRow] = field(default_factory=list)


def _rated(design: Design, kept: Sequence[Sheet], unfiltered: Sequence[Sheet] | None, n_resamples: int) -> _Rated:
    """Shares, means and differences; ``unfiltered`` are all sheets, None if these are the ones kept."""
    rated = _Rated()
    if design.protocol in PAIRED:
        return rated
    for criterion in design.criteria:
        if criterion.kind == "spans":
            continue
        answers = design.answers_of(criterion)
        if design.protocol in ("drag", "turn_annotation"):
            rated.shares += share_rows(kept, criterion.name, answers, n_resamples=n_resamples)
            if unfiltered is not None:
                rated.unfiltered += share_rows(unfiltered, criterion.name, answers, n_resamples=0)
        else:
            rated.means += mean_rows(kept, design, criterion, n_resamples)
        if design.protocol != "turn_annotation" and n_resamples:
            rated.differences += difference_rows(kept, design, criterion)
    return rated


def _labels(
    design: Design, kept: Sequence[Sheet], items: Sequence[StudyItem]
) -> dict[str, tuple[Counter[str], Counter[str]]]:
    if design.protocol != "drag":
        return {}
    labels = {(i.id, name): c.label for i in items for name, c in i.candidates.items() if c.label and name != GOLD}
    criterion = design.criteria[0]
    best = design.answers_of(criterion)[0]
    systems = dict.fromkeys(name for _, name in labels)
    return {name: label_counts(kept, criterion.name, best, labels, name) for name in systems}


def _printed(design: Design) -> tuple[Published, ...]:
    wanted = {(t.paper, f"Table {t.table}" if t.table.isdigit() else t.table) for t in design.published}
    return tuple(
        number for number in read_published() if (number.paper, number.table) in wanted and "human" in number.setting
    )
