"""From what a page sends to what is kept: answers are checked against their task, sides become systems."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from empatheia.reading import parse_json
from empatheia_people.studies.design import PAIRED, Criterion, Design
from empatheia_people.studies.items import StudyItem
from empatheia_people.studies.links import Refused

PAIR = -1
"""The card of an answer that is about both."""
RATIONALE = ".rationale"
"""After a criterion: text that was marked as its reason."""
MAX_SPANS = 50


@dataclass(frozen=True, slots=True)
class Screen:
    """A task as one worker has it before them.

    Attributes:
        id: Of the row.
        place: In its HIT, from 0.
        key: Item or check.
        item: What is shown; None for a check.
        cards: Systems behind each card, in the manifest's order.
        order: Card of the manifest at each place on the screen.
        is_bonus: Whether the reply of the corpus is among them.
        row: Of the item in the store; None for a check.
    """

    id: int
    place: int
    key: str
    item: StudyItem | None
    cards: tuple[tuple[str, ...], ...]
    order: tuple[int, ...]
    is_bonus: bool
    row: int | None = None

    @property
    def is_check(self) -> bool:
        """A check of attention."""
        return self.key.startswith("check:")

    @property
    def is_comparison(self) -> bool:
        """The comparison of two conversations held before."""
        return self.key.startswith("compare:")


@dataclass(frozen=True, slots=True)
class Asked:
    """One thing a task wants to know.

    Attributes:
        card: Card of the manifest, turn, or ``PAIR``.
        criterion: Name, with ``.rationale`` where text is marked as a reason.
        is_needed: Whether the task is unfinished without it.
    """

    card: int
    criterion: str
    is_needed: bool = True


def questions(design: Design, screen: Screen) -> list[Asked]:
    """Everything a task asks."""
    if screen.is_comparison:
        return [Asked(PAIR, "compare")]
    if design.protocol in PAIRED:
        return [Asked(PAIR, criterion.name) for criterion in design.criteria]
    if design.protocol == "turn_annotation" and not screen.is_check:
        turns = _turns(screen)
        asked = []
        for criterion in design.criteria:
            for turn in range(len(turns)):
                if criterion.turns in ("all", ("speaker", "listener")[turn % 2]):
                    asked.append(Asked(turn, criterion.name, criterion.kind == "choice"))
                    if criterion.rationale:
                        asked.append(Asked(turn, criterion.name + RATIONALE, False))
        return asked
    return [Asked(card, criterion.name) for card in range(len(screen.cards)) for criterion in design.criteria]


def _turns(screen: Screen) -> Sequence[str]:
    if screen.item is None:
        return ()
    return screen.item.candidates[screen.cards[0][0]].turns


def kept_answer(design: Design, screen: Screen, card: int, criterion: str, value: object) -> tuple[int, str]:
    """What is kept of an answer.

    Args:
        design: Of the study.
        screen: The task.
        card: Place on the screen; the turn where turns are annotated; -1 for a pair.
        criterion: Name of the question.
        value: As the page sends it.

    Returns:
        The card of the manifest (or turn, or ``PAIR``) and the answer; sides of a pair as places in the manifest.

    Raises:
        Refused: No such card or question, or an answer that is not among those offered.
    """
    is_shuffled = design.protocol != "turn_annotation" and card != PAIR
    if is_shuffled and not 0 <= card < len(screen.order):
        raise Refused(f"task {screen.place + 1} has no card {card}.", 404, "not_found")
    kept_card = screen.order[card] if is_shuffled else card
    if all((asked.card, asked.criterion) != (kept_card, criterion) for asked in questions(design, screen)):
        raise Refused(f"task {screen.place + 1} has no question {criterion[:60]!r} there.", 404, "not_found")
    found = design.criterion(criterion.removesuffix(RATIONALE))
    if criterion.endswith(RATIONALE) or (found is not None and found.kind == "spans"):
        return kept_card, _spans(value, _turns(screen)[card])
    answers = ("first", "second", "both", "neither") if found is None else design.answers_of(found)
    if not isinstance(value, str) or value not in answers:
        raise Refused(f"the answer {str(value)[:60]!r} is not accepted; accepted: {', '.join(answers)}.", 422, "answer")
    return kept_card, _side(screen, value) if kept_card == PAIR else value


def shown_answer(screen: Screen, card: int, value: str) -> tuple[int, str | list[list[int]]]:
    """Place on the screen and answer as the page knows them: the inverse of :func:`kept_answer`."""
    if card == PAIR:
        return card, _side(screen, value)
    if value.startswith("["):
        return card, parse_json(value)
    return (screen.order.index(card) if len(screen.order) > card else card), value


def _side(screen: Screen, value: str) -> str:
    """Left and right are changed where the screen changed them."""
    if screen.order == (1, 0) and value in ("first", "second"):
        return "second" if value == "first" else "first"
    return value


def _spans(value: object, text: str) -> str:
    """Marked parts of a turn: sorted, joined where they overlap."""
    bad = Refused("marked text is a list of [start, end] within the turn.", 422, "answer")
    if not isinstance(value, list) or len(value) > MAX_SPANS:
        raise bad
    spans: list[list[int]] = []
    for each in value:
        if not (isinstance(each, list) and len(each) == 2 and all(type(place) is int for place in each)):
            raise bad
        if not 0 <= each[0] < each[1] <= len(text):
            raise bad
        spans.append(each)
    joined: list[list[int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    return json.dumps(joined)


def right_answer(design: Design, screen: Screen) -> str:
    """Of a check of attention, as it is kept."""
    check = design.attention[int(screen.key.removeprefix("check:"))]
    return check.right


def ordinal(design: Design, criterion: Criterion) -> dict[str, float]:
    """Number of each answer."""
    return {answer: design.score_of(criterion, answer) for answer in design.answers_of(criterion)}
