"""Which tasks make a HIT, and in which order each worker sees what: a pure function of items, design and seed.

The same items, design and seed give the same bytes; the manifest is kept with the study and can be published.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from empatheia.errors import ConfigError
from empatheia_people.studies.design import GOLD, PAIRED, Design
from empatheia_people.studies.items import StudyItem, same_text

COMPARE = "compare:"
"""Before the item of a task that compares two conversations held before."""


@dataclass(frozen=True, slots=True)
class Task:
    """One screen.

    Attributes:
        item: Identity of the item; ``check:n`` for a check of attention.
        cards: Systems behind each card; those with the same text share one.
        is_bonus: Whether the reply of the corpus is among the cards.
    """

    item: str
    cards: tuple[tuple[str, ...], ...]
    is_bonus: bool = False

    @property
    def is_check(self) -> bool:
        """Whether its answer is told in its text."""
        return self.item.startswith("check:")


@dataclass(frozen=True, slots=True)
class Hit:
    """What one worker does in one sitting.

    Attributes:
        number: From 1.
        tasks: In the order in which they are shown.
        orders: For each seat the order of the cards of every task.
    """

    number: int
    tasks: tuple[Task, ...]
    orders: tuple[tuple[tuple[int, ...], ...], ...]

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        tasks = [
            {"item": task.item, "cards": [list(card) for card in task.cards], "bonus": task.is_bonus}
            for task in self.tasks
        ]
        return {"hit": self.number, "tasks": tasks, "orders": [[list(o) for o in seat] for seat in self.orders]}


@dataclass(frozen=True, slots=True)
class Manifest:
    """All HITs of a study.

    Attributes:
        hits: By number.
        notes: What whoever runs the study should know.
    """

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()

    def lines(self) -> str:
        """JSON lines, one a HIT."""
        return "".join(json.dumps(hit.to_dict(), ensure_ascii=False, sort_keys=True) + "\n" for hit in self.hits)


def compose(design: Design, items: Sequence[StudyItem], systems: Sequence[str]) -> Manifest:
    """The HITs of a study.

    Args:
        design: Of the study.
        items: What can be shown.
        systems: Names, without gold.

    Raises:
        ConfigError: The items cannot give what the design asks for, with the numbers.
    """
    rng = random.Random(_number(design.seed, "compose"))
    if design.protocol == "live":
        return _live(design, items, rng)
    names = [*systems, GOLD] if design.composition.with_gold else list(systems)
    if design.composition.cards == "one":
        screens, notes = _single(design, items, names, rng)
    elif design.composition.cards == "pair" or design.protocol in PAIRED:
        screens, notes = _pairs(design, items, names, rng)
    else:
        screens, notes = _whole(design, items, names, rng)
    by_id = {item.id: item for item in items}
    groups, more = _grouped(design, screens, by_id, rng)
    hits = [_hit(design, number, tasks, by_id, rng) for number, tasks in enumerate(groups, 1)]
    return Manifest(tuple(hits), (*notes, *more))


def _live(design: Design, items: Sequence[StudyItem], rng: random.Random) -> Manifest:
    """A HIT is one topic and a conversation with every system, in an order drawn for each HIT, then the comparison."""
    hits = []
    for number in range(1, (design.composition.hits or len(items)) + 1):
        item = items[(number - 1) % len(items)]
        names = rng.sample(list(item.candidates), len(item.candidates))
        tasks = [Task(item.id, ((name,),)) for name in names]
        if design.live.compare and len(names) == 2:
            tasks.append(Task(f"{COMPARE}{item.id}", tuple((name,) for name in names)))
        orders = tuple(tuple(tuple(range(len(t.cards))) for t in tasks) for _ in range(design.composition.raters))
        hits.append(Hit(number, tuple(tasks), orders))
    return Manifest(tuple(hits), (f"{len(hits):,} HITs of {len(hits[0].tasks)} tasks",))


def _number(seed: int, *words: object) -> int:
    text = json.dumps([seed, *map(str, words)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _whole(
    design: Design, items: Sequence[StudyItem], names: Sequence[str], rng: random.Random
) -> tuple[list[Task], list[str]]:
    """All systems of an item on one screen, or a balanced choice of them."""
    wanted = design.composition.cards_per_item
    if design.protocol == "turn_annotation":
        return [_task(item, [name]) for item in items for name in item.candidates], []
    if wanted is None or wanted >= len(names):
        return [_task(item, list(item.candidates)) for item in items], []
    used: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    screens = []
    for item in rng.sample(list(items), len(items)):
        chosen: list[str] = []
        while len(chosen) < wanted:  # the least shown one, and among those the one least seen beside the chosen
            left = [name for name in names if name not in chosen]
            rng.shuffle(left)
            chosen.append(min(left, key=lambda n: (used[n], sum(together[_pair(n, c)] for c in chosen))))
        for name in chosen:
            used[name] += 1
        for one, other in combinations(chosen, 2):
            together[_pair(one, other)] += 1
        screens.append(_task(item, chosen))
    return screens, [f"each system is on {min(used.values()):,} to {max(used.values()):,} screens"]


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _single(
    design: Design, items: Sequence[StudyItem], names: Sequence[str], rng: random.Random
) -> tuple[list[Task], list[str]]:
    """One reply a screen, its system drawn at random, as often as the others."""
    wanted = design.composition.per_system or len(items)
    if wanted > len(items):
        raise ConfigError(
            f"composition.per_system is {wanted:,}, but there are {len(items):,} items, and a system answers each once;"
            " give more items, or lower it."
        )
    screens = []
    for name in names:
        chosen = rng.sample(list(items), wanted)
        screens += [_task(item, [name]) for item in chosen]
    rng.shuffle(screens)
    return screens, [f"{wanted:,} items of each of {len(names)} systems"]


def _pairs(
    design: Design, items: Sequence[StudyItem], names: Sequence[str], rng: random.Random
) -> tuple[list[Task], list[str]]:
    """Two replies a screen; only where they differ."""
    setup = design.composition
    pairs = _compared(names, setup.against)
    taken: set[str] = set()
    screens, n_same = [], 0
    for one, other in pairs:
        fitting = [item for item in items if _differ(item, one, other)]
        n_same += len(items) - len(fitting)
        fitting = [item for item in fitting if item.id not in taken]
        wanted = setup.per_pair or (len(fitting) // (len(pairs) if setup.distinct_contexts else 1))
        if len(fitting) < max(wanted, 1):
            free = "that no other pair has" if setup.distinct_contexts else "whose replies differ"
            raise ConfigError(
                f"{one} and {other}: {max(wanted, 1):,} items are asked for, {len(fitting):,} {free}; there are"
                f" {len(items):,} items and {len(pairs)} pairs. Give more items, or lower composition.per_pair."
            )
        chosen = rng.sample(fitting, wanted)
        if setup.distinct_contexts:
            taken |= {item.id for item in chosen}
        screens += [_task(item, [one, other], join=False) for item in chosen]
    rng.shuffle(screens)
    notes = [f"{len(pairs)} pairs of systems"]
    if n_same:
        notes.append(f"{n_same:,} pairs of replies are the same and not shown")
    return screens, notes


def _compared(names: Sequence[str], against: str | None) -> list[tuple[str, str]]:
    """All pairs of systems, or those of one system with each other one."""
    pairs = list(combinations(names, 2))
    if against is None:
        return pairs
    if against not in names:
        raise ConfigError(f"composition.against: no system {against!r}; there are {', '.join(names)}.")
    return [pair for pair in pairs if against in pair]


def _differ(item: StudyItem, one: str, other: str) -> bool:
    """Whether both systems answered the item, and not the same."""
    replies = item.candidates
    return one in replies and other in replies and not same_text(replies[one], replies[other])


def _task(item: StudyItem, names: Sequence[str], join: bool = True) -> Task:
    """The screen; candidates that look the same share a card."""
    cards: dict[str, list[str]] = {}
    for name in names:
        candidate = item.candidates[name]
        cards.setdefault(candidate.key if join else name, []).append(name)
    return Task(item.id, tuple(tuple(card) for card in cards.values()))


def _grouped(
    design: Design, screens: Sequence[Task], items: Mapping[str, StudyItem], rng: random.Random
) -> tuple[list[list[Task]], list[str]]:
    """Screens by HIT, with the strata in each, and no item twice in one."""
    setup = design.composition
    size = setup.items_per_hit
    n_hits = min(setup.hits or len(screens), len(screens) // size)
    if not n_hits:
        raise ConfigError(
            f"{len(screens):,} tasks are fewer than one HIT has ({size}); give more items, or"
            f" --set composition.items_per_hit={len(screens)}."
        )
    by_set: dict[str, list[Task]] = defaultdict(list)
    for screen in screens:
        by_set[items[screen.item].set].append(screen)
    _check_strata(setup.strata, by_set, n_hits)
    groups: list[list[Task]] = [[] for _ in range(n_hits)]
    rest: list[Task] = []
    for name, tasks in by_set.items():
        rng.shuffle(tasks)
        if name in setup.strata:
            rest += _spread(tasks, groups, size)
        else:
            rest += tasks
    rng.shuffle(rest)
    unused = _fill(groups, rest, size)
    if short := [group for group in groups if len(group) < size]:
        raise ConfigError(
            f"{len(short):,} HITs stay short: too few different items for {size} in each; lower"
            " composition.items_per_hit or composition.per_system."
        )
    for group in groups:
        rng.shuffle(group)
    notes = [f"{n_hits:,} HITs x {size} tasks x {setup.raters} workers = {n_hits * size * setup.raters:,} answers"]
    if setup.hits is not None and n_hits < setup.hits:
        notes.append(f"the design has {setup.hits:,} HITs; the items make {n_hits:,}")
    if unused:
        notes.append(f"{unused:,} tasks are left over")
    return groups, notes


def _check_strata(strata: Mapping[str, int], by_set: Mapping[str, Sequence[Task]], n_hits: int) -> None:
    for name, least in strata.items():
        found = len(by_set.get(name, ()))
        if found < least * n_hits:
            raise ConfigError(
                f"composition.strata: {least} of {name} in each of {n_hits:,} HITs are {least * n_hits:,} items, there"
                f" are {found:,}; sets: {', '.join(f'{s} {len(t):,}' for s, t in by_set.items())}. Name a file's set as"
                f" --outputs {name}=PLACE, or lower composition.hits."
            )


def _spread(tasks: Sequence[Task], groups: list[list[Task]], size: int) -> list[Task]:
    """Deals tasks out evenly, the first groups one more; what no group has room for comes back."""
    rest = []
    for place, task in enumerate(tasks):
        group = groups[place % len(groups)]
        if len(group) < size and all(task.item != other.item for other in group):
            group.append(task)
        else:
            rest.append(task)
    return rest


def _fill(groups: list[list[Task]], rest: Sequence[Task], size: int) -> int:
    """Deals tasks out in turn to groups with room that have not their item yet; says how many found none.

    Tasks of one item come one after the other, and so to different groups.
    """
    by_item: dict[str, list[Task]] = defaultdict(list)
    for task in rest:
        by_item[task.item].append(task)
    turn = deque((group, {task.item for task in group}) for group in groups if len(group) < size)
    unused = 0
    for task in (task for tasks in by_item.values() for task in tasks):
        for _ in range(len(turn)):
            group, seen = turn[0]
            if task.item in seen:
                turn.rotate(-1)
                continue
            group.append(task)
            seen.add(task.item)
            turn.popleft()
            if len(group) < size:
                turn.append((group, seen))
            break
        else:
            unused += 1
    return unused


def _hit(design: Design, number: int, tasks: Sequence[Task], items: Mapping[str, StudyItem], rng: random.Random) -> Hit:
    chosen = list(tasks)
    if (bonus := design.composition.bonus) is not None:
        fitting = [
            place
            for place, task in enumerate(chosen)
            if bonus.set in ("", items[task.item].set) and items[task.item].reference
        ]
        if len(fitting) < bonus.per_hit:
            raise ConfigError(
                f"HIT {number} has {len(fitting)} items{f' of {bonus.set}' if bonus.set else ''} with a reply of the"
                f" corpus; composition.bonus asks for {bonus.per_hit}. Set composition.strata to at least that, or"
                " --set composition.bonus=null."
            )
        for place in rng.sample(fitting, bonus.per_hit):
            chosen[place] = _with_gold_card(chosen[place], items[chosen[place].item])
    for place in range(len(design.attention)):
        chosen.insert(rng.randrange(len(chosen) + 1), Task(f"check:{place}", ((),)))
    orders = tuple(
        tuple(_order(design, task, number, seat, place) for place, task in enumerate(chosen))
        for seat in range(design.composition.raters)
    )
    return Hit(number, tuple(chosen), orders)


def _with_gold_card(task: Task, item: StudyItem) -> Task:
    """The reply of the corpus as a further card, or on that of a system that says the same."""
    same = " ".join((item.reference or "").split())
    cards = [list(card) for card in task.cards]
    for card in cards:
        if item.candidates[card[0]].key == same:
            card.append(GOLD)
            break
    else:
        cards.append([GOLD])
    return Task(task.item, tuple(tuple(card) for card in cards), True)


def _order(design: Design, task: Task, hit: int, seat: int, place: int) -> tuple[int, ...]:
    """The order of a task's cards for a seat; pairs change sides from one seat to the next."""
    order = list(range(len(task.cards)))
    if len(order) == 2 and (design.composition.cards == "pair" or design.protocol in PAIRED):
        first = _number(design.seed, "side", hit, place) + seat
        return (0, 1) if first % 2 == 0 else (1, 0)
    if design.protocol != "turn_annotation":
        random.Random(_number(design.seed, "order", hit, seat, place)).shuffle(order)
    return tuple(order)
