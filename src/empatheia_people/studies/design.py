"""Study files: one YAML says what is asked, of whom, how often, for how much, and what is done with the answers.

``read_design("recipes/studies/meed2.yaml", ["worker.cap=20"])`` validates every key; an unknown one names the nearest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from empatheia.errors import ConfigError
from empatheia.registry import nearest
from empatheia.settings import PlainName, Strict, apply_override, explain_invalid, read_yaml
from empatheia.taxonomy import EMOTIONS
from empatheia_research.recipes.recipe import find_recipe

Protocol = Literal["drag", "likert", "ab", "pairwise_dialogue", "turn_annotation", "live", "collect"]
PAIRED = ("ab", "pairwise_dialogue")
BOXES = ("good", "okay", "bad")
SCALE = ("1", "2", "3", "4", "5")
SIDES = ("first", "second", "both", "neither")
GOLD = "gold"
"""Name under which the reply of the corpus stands among the systems."""


def is_web_address(text: str) -> bool:
    """Whether a text is an address that a browser asks a server for, and nothing that it runs.

    >>> is_web_address("https://app.example.org/?cc={code}"), is_web_address("javascript:alert(1)//http://x")
    (True, False)
    """
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"[\s\\\x00-\x1f\x7f]", text)


class Criterion(Strict):
    """One question about what is shown."""

    name: PlainName
    question: str = Field("", max_length=2000)
    answers: tuple[str, ...] = Field((), description="None = those of the protocol; for boxes the best one first.")
    words: dict[str, str] = Field({}, description="What stands beside an answer, e.g. `1: not at all`.")
    kind: Literal["choice", "spans"] = Field("choice", description="`spans`: text of the turn is marked.")
    rationale: bool = Field(False, description="Text of the turn is marked, too (turn annotation).")
    turns: Literal["speaker", "listener", "all"] = Field("all", description="Whose turns (turn annotation).")

    @model_validator(mode="after")
    def _answers_differ(self) -> Self:
        if len(set(self.answers)) != len(self.answers) or len(self.answers) == 1:
            raise ValueError(f"answers are {list(self.answers)}; accepted: two or more different ones")
        if unknown := [word for word in self.words if self.answers and word not in self.answers]:
            raise ValueError(f"words for {unknown[0]!r}, which is not an answer; answers: {', '.join(self.answers)}")
        return self


class Bonus(Strict):
    """Tasks in which the reply of the corpus is among the candidates; who puts it right gets a point."""

    set: str = Field("", description="Test set they are drawn from; empty = any.")
    per_hit: int = Field(3, ge=1)
    right: tuple[str, ...] = Field(("good", "okay"), min_length=1, description="Answers that win the point.")
    needed: int = Field(3, ge=1, description="Points for which the bonus is paid.")
    first_try: bool = Field(False, description="Points count as they stood at the first validation.")
    must_validate: bool = Field(False, description="`Next` waits until the bonus was validated.")


class Composition(Strict):
    """Which items become tasks, and which tasks a HIT."""

    hits: int | None = Field(None, ge=1, description="At most so many; None = as many as the items allow.")
    items_per_hit: int = Field(10, ge=1, le=1000)
    raters: int = Field(4, ge=1, le=1000, description="Different workers a HIT.")
    cards: Literal["all", "one", "pair"] = Field("all", description="Candidates on one screen.")
    cards_per_item: int | None = Field(
        None, ge=2, description="With `all`: a balanced choice of so many systems an item; None = all of them."
    )
    per_system: int | None = Field(None, ge=1, description="With `one`: items of each system.")
    per_pair: int | None = Field(None, ge=1, description="With `pair`: items of each pair of systems.")
    against: str | None = Field(None, description="With `pair`: only pairs with this system.")
    distinct_contexts: bool = Field(False, description="With `pair`: no context is in two pairs.")
    with_gold: bool = Field(False, description="The reply of the corpus is a system like the others.")
    strata: dict[str, int] = Field({}, description="Test set: at least so many of its items in every HIT.")
    default_set: str = Field("", description="Test set of items whose files name none; empty = their corpus.")
    bonus: Bonus | None = None
    blank: Literal["show", "leave_out"] = Field("show", description="Empty replies: `(no reply)`, or no such item.")
    normalise: bool = Field(False, description="Case and spacing of all candidates are made alike.")


class WorkerRules(Strict):
    """Who may take part, how often and for how long."""

    entry: Literal["open", "crowd", "invited"] = Field("open", description="`crowd`: the platform names workers.")
    id_field: str = Field("worker", description="Query parameter with the worker, e.g. `PROLIFIC_PID`, `workerId`.")
    assignment_field: str = Field("assignment", description="Query parameter, e.g. `SESSION_ID`, `assignmentId`.")
    cap: int = Field(50, ge=1, description="HITs a worker.")
    minutes: float = Field(15, gt=0, description="Announced for a HIT.")
    lease_minutes: float | None = Field(
        None, gt=0, description="Silence after which a seat is free; None = 3 x minutes."
    )
    completion_code: str = Field("", description="The platform's one code; empty = a code of its own for every HIT.")
    screen_out_code: str = Field("", description="For who fails the questions before the tasks; empty = they get none.")
    attention_code: str = Field(
        "", description="In place of completion_code for who fails a check of attention; empty = the same."
    )
    completion_url: str = Field("", description="Where the last page leads, with `{code}` in it; empty = nowhere.")
    requirements: str = Field("", description="Shown; the crowd platform has to hold them.")
    excluded_from: tuple[str, ...] = Field((), description="Stores of studies whose workers may not take part.")

    @field_validator("completion_url")
    @classmethod
    def _leads_to_the_web(cls, address: str) -> str:
        if address and not is_web_address(address):
            raise ValueError(f"{address[:80]!r} is no address of the web; accepted: https://... or http://...")
        return address

    @property
    def lease_seconds(self) -> float:
        """After so many seconds without a sign a seat goes to somebody else."""
        return 60 * (self.lease_minutes or 3 * self.minutes)


class Payment(Strict):
    """What a HIT pays."""

    currency: str = "USD"
    base: float = Field(0, ge=0)
    bonus: float = Field(0, ge=0)
    fee: float = Field(0, ge=0, description="Share that the platform adds.")


class Question(Strict):
    """A question with one right answer; which one it is never leaves the server."""

    question: str = Field(max_length=2000)
    answers: tuple[str, ...] = Field(min_length=2)
    right: int = Field(ge=0)

    @model_validator(mode="after")
    def _right_is_there(self) -> Self:
        if self.right >= len(self.answers):
            raise ValueError(f"right is {self.right}; accepted: 0 to {len(self.answers) - 1}, the place of an answer")
        return self


class Check(Strict):
    """A task in every HIT whose answer is told in its text."""

    text: str = Field(max_length=2000)
    card: str = Field("This is a check of attention.", max_length=2000)
    right: str


class WarmUpCard(Strict):
    """A reply of the warm-up and where it belongs."""

    text: str
    right: tuple[str, ...] = Field(min_length=1)


class WarmUp(Strict):
    """A task to try out; it is not kept."""

    context: tuple[str, ...] = Field(min_length=1)
    cards: tuple[WarmUpCard, ...] = Field(min_length=1)


class Onboarding(Strict):
    """What comes before the first task."""

    warm_up: WarmUp | None = None
    questions: tuple[Question, ...] = ()
    attempts: int = Field(2, ge=1)


class Texts(Strict):
    """What people read; empty lines part paragraphs."""

    welcome: str = ""
    instructions: str = ""
    consent: str = Field("", description="Empty = no consent is asked, only for tests at home.")
    thanks: str = "Thank you."
    contact: str = ""


class FilterRule(Strict):
    """One filter of the report; see :mod:`empatheia_people.studies.filters`."""

    name: Literal["same_answer", "hurried", "points", "attention", "dwell"]
    share: float = Field(0.9, gt=0, le=1, description="`same_answer`: of answers in one box.")
    tasks: int = Field(10, ge=1, description="`same_answer`: of at least so many tasks.")
    minutes: float = Field(5, ge=0, description="`hurried`: less than so many, and")
    points: int = Field(2, ge=0, description="`hurried`: fewer points; `points`: at least so many.")
    seconds: float = Field(2, ge=0, description="`dwell`: median time on a task.")


class Collect(Strict):
    """Two-person dialogues (Rashkin et al. 2019, sections 2 and 3)."""

    labels: tuple[str, ...] = Field(EMOTIONS, min_length=3)
    offered: int = Field(3, ge=2)
    free_pairs: int = Field(0, ge=0, description="First so many pairs: offers at random, not the least chosen.")
    situation_words: tuple[int, int] = (3, 100)
    min_turns: int = Field(4, ge=1)
    max_turns: int = Field(8, ge=1)
    characters: int = Field(1000, ge=1, description="Of a message.")
    cap: int = Field(100, ge=1, description="Conversations a worker, once `cap_after` are there.")
    cap_after: int = Field(10_000, ge=0)
    waiting_minutes: float = Field(5, gt=0)
    turn_minutes: float = Field(3, gt=0)
    silent_seconds: float = Field(90, gt=0, description="Without a sign somebody counts as gone.")
    partner: str | None = Field(None, description="A system that answers in place of the second person.")
    keep_incomplete: bool = False
    care: bool = Field(True, description="Who writes of danger is shown where help is; the conversation is marked.")
    split: tuple[float, float, float] = Field((0.8, 0.1, 0.1), description="train, valid, test; by author.")

    @model_validator(mode="after")
    def _turns_in_order(self) -> Self:
        if self.min_turns > self.max_turns:
            raise ValueError(f"min_turns {self.min_turns} is above max_turns {self.max_turns}")
        if self.offered > len(self.labels):
            raise ValueError(f"{self.offered} labels are offered, there are {len(self.labels)}")
        if abs(sum(self.split) - 1) > 1e-6 or min(self.split) < 0:
            raise ValueError(f"split is {list(self.split)}; accepted: three shares that sum to 1")
        return self


class Live(Strict):
    """A person talks with systems, without knowing which, and rates each conversation."""

    systems: dict[str, str] = Field({}, description="Name: model folder, listener file, run or endpoint settings.")
    min_turns: int = Field(3, ge=1, description="Messages of the person before the questions can be answered.")
    max_turns: int = Field(8, ge=1)
    characters: int = Field(1000, ge=1)
    topics: tuple[str, ...] = Field(("Tell about something that moved you lately.",), min_length=1)
    compare: str = Field("", description="Question that compares both conversations; empty = none.")


class Table(Strict):
    """The printed table that the report stands beside."""

    paper: str
    table: str


class Design(Strict):
    """Everything that determines a study."""

    name: PlainName
    protocol: Protocol
    title: str = "A study"
    language: str = "en"
    seed: int = Field(1024, ge=0, lt=1 << 32)
    note: str = Field("", description="What a reader of the numbers must know.")
    criteria: tuple[Criterion, ...] = ()
    systems: tuple[str, ...] = Field((), description="None = all that the files hold.")
    composition: Composition = Field(default_factory=lambda: Composition.model_validate({}))
    worker: WorkerRules = Field(default_factory=lambda: WorkerRules.model_validate({}))
    payment: Payment = Field(default_factory=lambda: Payment.model_validate({}))
    onboarding: Onboarding = Field(default_factory=lambda: Onboarding.model_validate({}))
    attention: tuple[Check, ...] = ()
    filters: tuple[FilterRule, ...] = ()
    texts: Texts = Field(default_factory=lambda: Texts.model_validate({}))
    collect: Collect = Field(default_factory=lambda: Collect.model_validate({}))
    live: Live = Field(default_factory=lambda: Live.model_validate({}))
    published: tuple[Table, ...] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not self.criteria and self.protocol not in ("collect",):
            raise ValueError(f"criteria is empty; protocol {self.protocol!r} needs at least one question")
        names = [criterion.name for criterion in self.criteria]
        if len(set(names)) < len(names):
            raise ValueError(f"criteria {names} have a name twice")
        if self.protocol == "drag" and len(self.criteria) != 1:
            raise ValueError(f"drag has one criterion, its boxes; found {len(names)}")
        for criterion in self.criteria:
            answers = self.answers_of(criterion)
            if self.protocol in PAIRED and (extra := set(answers) - set(SIDES)):
                raise ValueError(
                    f"{criterion.name}: answers of a pair are {', '.join(SIDES)}; found {sorted(extra)[0]!r}"
                )
        if self.attention and self.protocol in ("turn_annotation", "live", "collect"):
            raise ValueError(f"attention: protocol {self.protocol!r} has no checks of attention; leave it out")
        self._check_bonus()
        return self

    def _check_bonus(self) -> None:
        bonus = self.composition.bonus
        if bonus is None:
            return
        if self.protocol != "drag":
            raise ValueError(f"composition.bonus belongs to protocol drag, not {self.protocol}")
        boxes = self.answers_of(self.criteria[0])
        if unknown := [answer for answer in bonus.right if answer not in boxes]:
            hint = nearest(unknown[0], list(boxes))
            raise ValueError(f"composition.bonus.right: no box {unknown[0]!r}.{hint} Boxes: {', '.join(boxes)}")
        if bonus.per_hit > self.composition.items_per_hit or bonus.needed > bonus.per_hit:
            raise ValueError(
                f"composition.bonus: {bonus.per_hit} bonus tasks and {bonus.needed} needed points do not fit"
                f" {self.composition.items_per_hit} items a HIT"
            )

    def answers_of(self, criterion: Criterion) -> tuple[str, ...]:
        """What can be answered to a question."""
        if criterion.answers or criterion.kind == "spans":
            return criterion.answers
        defaults = {"drag": BOXES, "ab": SIDES, "pairwise_dialogue": SIDES[:2]}
        return defaults.get(self.protocol, SCALE)

    def criterion(self, name: str) -> Criterion | None:
        """The question of that name."""
        return next((each for each in self.criteria if each.name == name), None)

    def score_of(self, criterion: Criterion, answer: str) -> float:
        """An ordinal answer as a number: boxes count from the last one, which is 1; scales as they are."""
        answers = self.answers_of(criterion)
        if self.protocol == "drag":
            return float(len(answers) - answers.index(answer))
        return float(answer) if answer.lstrip("-").isdigit() else float(answers.index(answer) + 1)

    @property
    def hourly_rate(self) -> float:
        """What a worker gets in an hour at the announced pace, without bonus."""
        return self.payment.base * 60 / self.worker.minutes

    @property
    def hourly_rate_with_bonus(self) -> float:
        """The same with every bonus won."""
        return (self.payment.base + self.payment.bonus) * 60 / self.worker.minutes

    def dump(self) -> str:
        """The resolved design as YAML."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110)


def read_design(path: str | Path, overrides: list[str] | tuple[str, ...] = ()) -> Design:
    """Reads, overrides and validates a study file.

    Args:
        path: The YAML file, or the name of one that comes with the installation, e.g. ``studies/meed2``.
        overrides: Texts such as ``worker.cap=20``.

    Raises:
        ConfigError: Anything wrong, with the key, what was found, and the nearest accepted key.
    """
    place = find_recipe(path)
    tree = read_yaml(place)
    for override in overrides:
        tree = apply_override(tree, override)
    return validate_design(tree, str(place))


def validate_design(tree: Mapping[str, object], origin: str) -> Design:
    """A :class:`Design` from a plain tree; ``origin`` names the file in errors (see :func:`read_design`)."""
    try:
        return Design.model_validate(tree)
    except ValidationError as problem:
        first = problem.errors()[0]
        if first["type"] == "value_error":  # of ours: it says what was found
            where = ".".join(str(part) for part in first["loc"])
            said = first["msg"].removeprefix("Value error, ")
            raise ConfigError(f"{origin}: {f'{where}: ' if where else ''}{said}.") from None
        raise ConfigError(f"{origin}: {explain_invalid(problem, tree, Design)}") from None
