"""A whole study answered by invented raters, without a store."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from empatheia.errors import ConfigError
from empatheia_people.studies.design import GOLD, PAIRED, Design
from empatheia_people.studies.items import StudyItem
from empatheia_people.studies.manifest import Hit, Manifest
from empatheia_people.studies.sheets import Answer, Sheet
from empatheia_people.studies.simulation import Opinion, Rater, crowd_of


def simulated_sheets(
    design: Design,
    items: Iterable[StudyItem],
    manifest: Manifest,
    opinion: Opinion,
    raters: Mapping[str, int],
    seed: int = 0,
) -> list[Sheet]:
    """A whole study without a store: every seat of every HIT taken by a rater who has not seen it.

    Args:
        design: Of the study.
        items: All.
        manifest: Of the study.
        opinion: Of honest raters.
        raters: How many of each kind; each does at most ``worker.cap`` HITs.
        seed: Of all dice.

    Raises:
        ConfigError: Too few raters for the seats.
    """
    by_id = {item.id: item for item in items}
    crowd = crowd_of(raters, opinion, seed)
    n_seats = len(manifest.hits) * design.composition.raters
    if len(crowd) * design.worker.cap < n_seats or len(crowd) < design.composition.raters:
        raise ConfigError(f"{len(crowd)} raters of at most {design.worker.cap} HITs cannot take {n_seats:,} seats.")
    load = [0] * len(crowd)
    dice = random.Random(seed)
    sheets = []
    for hit in manifest.hits:
        free = sorted(range(len(crowd)), key=lambda i: (load[i], dice.random()))[: design.composition.raters]
        for i in free:
            load[i] += 1
            sheets.append(_sheet(design, by_id, hit, crowd[i], i + 1, len(sheets) + 1))
    return sheets


def _sheet(
    design: Design, items: Mapping[str, StudyItem], hit: Hit, rater: Rater, worker: int, assignment: int
) -> Sheet:
    answers: list[Answer] = []
    points = 0
    shown = [task for task in hit.tasks if not task.is_check]
    bonus = design.composition.bonus
    for task in shown:
        item = items[task.item]
        for criterion in design.criteria:
            choices = design.answers_of(criterion)
            if design.protocol in PAIRED:
                value = rater.answer(design, item, task, -1, criterion, choices)
                systems = (task.cards[0][0], task.cards[1][0])
                answers.append(Answer(item.id, item.set, systems, criterion.name, value, True, -1))
                continue
            for card, systems in enumerate(task.cards):
                value = rater.answer(design, item, task, card, criterion, choices)
                answers.append(Answer(item.id, item.set, systems, criterion.name, value, False, card))
                points += bool(bonus and task.is_bonus and GOLD in systems and value in bonus.right)
    is_attentive = None if len(shown) == len(hit.tasks) else rater.kind == "honest"
    return Sheet(
        assignment,
        worker,
        hit.number,
        rater.minutes(design),
        points if bonus else None,
        is_attentive,
        None,
        tuple(answers),
        len(shown),
    )
