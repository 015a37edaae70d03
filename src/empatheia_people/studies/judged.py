"""A language model as a marked rater: its verdicts are kept apart and set beside people's, never among them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from sqlalchemy import select

from empatheia.errors import DataError
from empatheia.reading import numbered_lines, parse_json
from empatheia_people.judging.judge import Endpoint, Pair, judge
from empatheia_people.judging.prompts import CRITERIA
from empatheia_people.judging.verdicts import Agreement, HumanRating, Outcome, Verdict, agreement, verdict_of
from empatheia_people.studies.answers import PAIR
from empatheia_people.studies.design import GOLD, Design
from empatheia_people.studies.items import StudyItem
from empatheia_people.studies.sheets import Sheet
from empatheia_people.studies.store import Store
from empatheia_people.studies.tables import Event


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """The judge's verdict on two systems' replies to one item.

    Attributes:
        item: Identity of the item.
        a, b: The systems.
        criterion: Name of the question.
        outcome: ``win``, ``loss`` or ``tie``, seen from a.
        model: Who judged.
    """

    item: str
    a: str
    b: str
    criterion: str
    outcome: Outcome
    model: str


def criteria_of(design: Design) -> dict[str, str]:
    """The judge's criterion for each of the design's: the same name, else ``overall``."""
    return {c.name: c.name if c.name in CRITERIA else "overall" for c in design.criteria if c.kind == "choice"}


def ask_judge(
    design: Design,
    items: Iterable[StudyItem],
    systems: Sequence[str],
    endpoint: Endpoint,
    folder: Path,
    progress: Callable[[str], None] | None = None,
) -> list[JudgedPair]:
    """Asks about every two systems on every item, in both orders; what is in the folder is not asked again.

    Args:
        design: Of the study.
        items: All.
        systems: Without gold.
        endpoint: The judge.
        folder: One file of answers a pair of systems.
        progress: Told of every pair that is done.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(criteria_of(design).values()))
    chosen = list(items)
    found = []
    for number, (a, b) in enumerate(combinations(systems, 2)):
        pairs = [
            Pair(i.id, i.context, i.candidates[a].text, i.candidates[b].text)
            for i in chosen
            if a in i.candidates and b in i.candidates and i.context
        ]
        if not pairs:
            raise DataError(f"{a} and {b} share no item with a context; a judge has nothing to compare.")
        out = folder / f"pair{number}.jsonl"
        judge(pairs, (a, b), endpoint, out, criteria=names)
        found += read_verdicts(out, pairs, a, b, design, endpoint.model)
        if progress is not None:
            progress(f"{a} and {b}: {len(pairs):,} pairs")
    return found


def read_verdicts(
    path: Path, pairs: Iterable[Pair], a: str, b: str, design: Design, model: str = ""
) -> list[JudgedPair]:
    """Verdicts out of a file of ``empatheia judge``; identical replies are ties."""
    rows: dict[tuple[str, str], Mapping[str, Any]] = {}
    for number, line in numbered_lines(path):
        try:
            row = parse_json(line)
            rows[str(row["pair"]), str(row["order"])] = row["choices"] or {}
            model = model or str(row["model"])
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path}:{number}: not an answer of a judge; give a file of `empatheia judge`.") from None
    found = []
    for pair in pairs:
        for ours, theirs in criteria_of(design).items():
            if pair.is_identical:
                verdict = Verdict("tie", "identical")
            else:
                ab, ba = rows.get((pair.id, "ab"), {}), rows.get((pair.id, "ba"), {})
                if theirs not in ab or theirs not in ba:
                    continue
                verdict = verdict_of(ab[theirs], ba[theirs])
            found.append(JudgedPair(pair.id, a, b, ours, verdict.outcome, model))
    return found


def keep_verdicts(store: Store, verdicts: Sequence[JudgedPair]) -> None:
    """Puts verdicts into the store as events; those of the same model on the same thing are put once."""
    had = {(v.item, v.a, v.b, v.criterion, v.model) for v in kept_verdicts(store)}
    with store.change() as session:
        for v in verdicts:
            if (v.item, v.a, v.b, v.criterion, v.model) not in had:
                data = {"item": v.item, "a": v.a, "b": v.b, "criterion": v.criterion, "outcome": v.outcome}
                store.event(session, "judged", data=data | {"model": v.model})


def kept_verdicts(store: Store) -> list[JudgedPair]:
    """The verdicts in a store."""
    with store.read() as session:
        rows = session.scalars(select(Event).where(Event.kind == "judged").order_by(Event.id))
        return [JudgedPair(**row.data) for row in rows]


def judge_agreement(verdicts: Sequence[JudgedPair], sheets: Sequence[Sheet], design: Design) -> list[Agreement]:
    """How far the judge agrees with people, by criterion; empty where they share nothing.

    People's choices are those of pairs; where replies were rated one by one, each person prefers of two replies the one
    they rated higher.
    """
    judged: dict[str, dict[str, Verdict]] = defaultdict(dict)
    known = {(v.a, v.b) for v in verdicts}
    for v in verdicts:
        judged[v.criterion][f"{v.item}\n{v.a}\n{v.b}"] = Verdict(v.outcome, "agreed")
    people = [rating for sheet in sheets for rating in _choices(sheet, design, known)]
    shared = {r.pair for r in people if r.pair in judged.get(r.criterion, {})}
    return agreement(judged, people) if shared else []


_OUTCOMES: dict[str, Outcome] = {"first": "win", "second": "loss"}
_REVERSED: dict[Outcome, Outcome] = {"win": "loss", "loss": "win", "tie": "tie"}


def _choices(sheet: Sheet, design: Design, known: set[tuple[str, str]]) -> Iterable[HumanRating]:
    scores: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for answer in sheet.answers:
        criterion = design.criterion(answer.criterion)
        if criterion is None or criterion.kind == "spans":
            continue
        if answer.card == PAIR:
            a, b = answer.systems
            outcome = _OUTCOMES.get(answer.value, "tie")
            if (b, a) in known and (a, b) not in known:
                a, b, outcome = b, a, _REVERSED[outcome]
            yield HumanRating(f"{answer.item}\n{a}\n{b}", answer.criterion, str(sheet.worker), outcome)
            continue
        for system in answer.systems:
            if system != GOLD:
                scores[answer.item, answer.criterion][system] = design.score_of(criterion, answer.value)
    for (item, name), by_system in scores.items():
        for a, b in known:
            if a in by_system and b in by_system:
                difference = by_system[a] - by_system[b]
                outcome = "tie" if math.isclose(difference, 0) else "win" if difference > 0 else "loss"
                yield HumanRating(f"{item}\n{a}\n{b}", name, str(sheet.worker), outcome)
