"""Workers that are no people, with known opinions: they test filters, statistics and whole studies.

An honest worker draws answers from the shares that a table gives, or, where there is none, answers by how good a reply
is: the quality of its system, something of its own that all raters see, the rater's strictness, and chance. The others
show what bad workers look like.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from empatheia.errors import ConfigError
from empatheia.metrics.published import read_published
from empatheia.registry import nearest
from empatheia_people.studies.answers import questions, shown_answer
from empatheia_people.studies.design import GOLD, SIDES, Criterion, Design
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.items import StudyItem
from empatheia_people.studies.links import Refused
from empatheia_people.studies.manifest import Task

Shares = Mapping[tuple[str, str], Sequence[float]]
"""By test set and system: probability of each answer, in the order of the question's answers."""
_GOLD_SHARES = (0.75, 0.22, 0.03)
_GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it fall evenly between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What honest workers think.

    Attributes:
        shares: Of single replies; where neither they nor ``strengths`` have a system, all answers are equally likely.
        strengths: Quality of each system, in deviations of one rater's chance; in pairs the logarithm of its strength,
            0 for those that are not in it.
        ties: Probability of a tie in a pair.
        item_spread: How far dialogues differ: deviation of a shift that all ratings of one dialogue share, 0 = none.
        reply_spread: Deviation of how good replies of one system are; all raters see it, and so agree.
        strictness: Deviation of how strict raters are.
        truth: Probability that a rater of turns gives the answer that is right, else any.
        is_even: Each rater's answers about a system are spread evenly over its shares, not drawn by chance, so that a
            printed table comes back as exactly as a study's size allows.
    """

    shares: Shares
    strengths: Mapping[str, float]
    ties: float = 0.2
    item_spread: float = 0.0
    reply_spread: float = 0.0
    strictness: float = 0.0
    truth: float = 0.0
    is_even: bool = False


def plausible(design: Design, systems: Sequence[str], seed: int = 0, is_null: bool = False) -> Opinion:
    """What made-up people think of the systems of a study, so that a rehearsal looks like a study.

    Where the design stands beside a printed table that has the system, it is the table's shares; all others differ by
    a quality between -0.6 and 0.6 of a rater's chance, and a person's reply is better by 1.

    Args:
        design: Of the study.
        systems: Their names, without gold.
        seed: Which of them is good.
        is_null: All systems are the same: what differs in the report is chance, as in one of twenty tests at 0.05.
    """
    dice = random.Random(f"{seed}/quality")
    names = sorted({*systems, *design.live.systems} - {GOLD})
    steps = [0.0 if is_null or len(names) < 2 else 1.2 * i / (len(names) - 1) - 0.6 for i in range(len(names))]
    dice.shuffle(steps)
    shares = published_shares()[0] if any(table.paper == "meed2" for table in design.published) and not is_null else {}
    strengths = dict(zip(names, steps, strict=True))
    if design.composition.with_gold or design.composition.bonus is not None:
        strengths[GOLD] = 1.0
    return Opinion(shares, strengths, reply_spread=0.6, strictness=0.4, truth=0.7)


class Rater:
    """One simulated worker.

    Args:
        kind: ``honest``, ``random``, ``always_first``, ``okay``, ``bonus_only`` (looks at bonus tasks only).
        opinion: Of honest ones.
        seed: Of their dice.

    Raises:
        ConfigError: Unknown kind.
    """

    def __init__(self, kind: str, opinion: Opinion, seed: int) -> None:
        if kind not in KINDS:
            raise ConfigError(f"unknown kind of rater {kind!r}.{nearest(kind, list(KINDS))} Known: {', '.join(KINDS)}.")
        self.kind, self.opinion = kind, opinion
        self.dice = random.Random(f"{kind}/{seed}")
        self._dealt: Counter[tuple[str, str]] = Counter()
        self._start = self.dice.random()
        self._strictness = random.Random(f"{kind}/{seed}/strict").gauss(0, opinion.strictness)

    def answer(
        self,
        design: Design,
        item: StudyItem | None,
        task: Task,
        card: int,
        criterion: Criterion | None,
        answers: Sequence[str],
    ) -> str:
        """What they say of a card; -1 is a pair, no item a check of attention."""
        if self.kind == "random" or (self.kind == "bonus_only" and not task.is_bonus):
            return self.dice.choice(list(answers))
        if self.kind == "always_first":
            return answers[0]
        if self.kind == "okay":
            return answers[len(answers) // 2]
        if item is None:
            return design.attention[int(task.item.removeprefix("check:"))].right
        if card < 0:
            return self._preference(design, item, task, answers)
        if design.protocol == "turn_annotation":
            right = _seeded(design, item, card, criterion and criterion.name).choice(list(answers))
            return right if self.dice.random() < self.opinion.truth else self.dice.choice(list(answers))
        return self._rating(design, item, task, card, criterion, answers)

    def _preference(self, design: Design, item: StudyItem, task: Task, answers: Sequence[str]) -> str:
        ties = [answer for answer in answers if answer in ("both", "neither")]
        if ties and self.dice.random() < self.opinion.ties:
            return self.dice.choice(ties)
        one, other = (self._quality(design, item, card[0]) for card in task.cards)
        return "first" if self.dice.random() < 1 / (1 + math.exp(other - one)) else "second"

    def _quality(self, design: Design, item: StudyItem, system: str) -> float:
        """Of one reply, as every rater sees it."""
        own = _seeded(design, item, system).gauss(0, self.opinion.reply_spread) if self.opinion.reply_spread else 0.0
        return self.opinion.strengths.get(system, 0.0) + own

    def _on_a_scale(self, quality: float, design: Design, criterion: Criterion, answers: Sequence[str]) -> str:
        """The answer in whose part of the scale the reply falls; 0 is the middle."""
        felt = quality - self._strictness + self.dice.gauss(0, 1)
        ranked = sorted(answers, key=lambda answer: design.score_of(criterion, answer))
        place = math.floor((felt / 3.6 + 0.5) * len(ranked))
        return ranked[min(max(place, 0), len(ranked) - 1)]

    def _rating(
        self,
        design: Design,
        item: StudyItem,
        task: Task,
        card: int,
        criterion: Criterion | None,
        answers: Sequence[str],
    ) -> str:
        system = next((name for name in task.cards[card] if name != GOLD), GOLD)
        if (item.set, system) not in self.opinion.shares and system in self.opinion.strengths and criterion is not None:
            return self._on_a_scale(self._quality(design, item, system), design, criterion, answers)
        default = _GOLD_SHARES if system == GOLD and len(answers) == 3 else [1 / len(answers)] * len(answers)
        shares = list(self.opinion.shares.get((item.set, system), default))
        if self.opinion.item_spread:
            shift = random.Random(f"{design.seed}/{item.id}").gauss(0, self.opinion.item_spread)
            shares = [share * math.exp(shift * place) for place, share in enumerate(shares)]
        if self.opinion.is_even:
            self._dealt[item.set, system] += 1
            place = (self._start + self._dealt[item.set, system] * _GOLDEN) % 1 * sum(shares)
            return answers[min(sum(place >= end for end in accumulate(shares)), len(answers) - 1)]
        return self.dice.choices(list(answers), shares)[0]

    def minutes(self, design: Design) -> float:
        """How long a HIT takes them."""
        if self.kind in ("honest", "okay"):
            return self.dice.uniform(0.6, 1.4) * design.worker.minutes
        return self.dice.uniform(0.1, 0.3) * design.worker.minutes


KINDS = ("honest", "random", "always_first", "okay", "bonus_only")


def _seeded(design: Design, item: StudyItem, *words: object) -> random.Random:
    """Dice that fall the same way for every rater."""
    return random.Random(f"{design.seed}/{item.id}/{words}")


def crowd_of(raters: Mapping[str, int], opinion: Opinion, seed: int = 0) -> list[Rater]:
    """Raters of all kinds, in one order."""
    return [Rater(kind, opinion, 1000 * seed + i) for kind, n in raters.items() for i in range(n)]


def work_through(
    desk: Desk,
    rater: Rater,
    name: str,
    hits: int = 1,
    entered: Callable[[int], None] | None = None,
    passed: Callable[[float], None] | None = None,
) -> int:
    """A simulated worker at a real desk: comes in, answers every task, sends; says how many HITs.

    Args:
        desk: A :class:`~empatheia_people.studies.desk.Desk`.
        rater: Who they are.
        name: Under which name.
        hits: At most so many.
        entered: Called with the worker's number.
        passed: Called with the seconds that a HIT takes them, before it is sent.
    """
    design: Design = desk.design
    worker, _ = desk.sessions.session(desk.sessions.enter(name))
    if entered is not None:
        entered(worker)
    desk.sessions.consent(worker)
    if asked := design.onboarding.questions:
        desk.sessions.comprehension(worker, [question.right for question in asked])
    for done in range(hits):
        try:
            seat = desk.seats.take(worker)
        except Refused:
            return done
        for screen in desk.seats.screens(seat.hit, seat.seat):
            task = Task(screen.key, screen.cards, screen.is_bonus)
            for each in questions(design, screen):
                criterion = design.criterion(each.criterion)
                if not each.is_needed:
                    continue
                choices = SIDES if criterion is None else design.answers_of(criterion)
                value = rater.answer(design, screen.item, task, each.card, criterion, choices)
                is_marked = design.protocol == "turn_annotation"
                card, shown = (each.card, value) if is_marked else shown_answer(screen, each.card, value)
                client = f"{seat.assignment}-{screen.place}-{each.card}-{each.criterion}"[-64:]
                desk.ratings.rate(worker, seat.assignment, screen.place, card, each.criterion, shown, client)
        if passed is not None:
            passed(60 * rater.minutes(design))
        desk.submissions.submit(worker, seat.assignment)
    return hits


def published_shares() -> tuple[dict[tuple[str, str], tuple[float, float, float]], tuple[str, ...], tuple[str, ...]]:
    """MEED2's table 5: shares of good, okay and bad by test set and system; the systems; the test sets."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for number in read_published():
        if number.paper == "meed2" and number.table == "Table 5" and number.metric in ("Good", "Okay", "Bad"):
            found.setdefault((number.dataset.split()[0], number.row), {})[number.metric] = number.value
    shares = {key: (row["Good"], row["Okay"], row["Bad"]) for key, row in found.items()}
    systems = tuple(dict.fromkeys(system for _, system in shares))
    return shares, systems, tuple(dict.fromkeys(name for name, _ in shares))
