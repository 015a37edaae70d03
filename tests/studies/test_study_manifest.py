"""Who sees what: strata, bonus tasks, balance, and requests that items cannot meet."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from made_studies import RECIPES, made_items, meed2, simple

from empatheia.errors import ConfigError
from empatheia_people.studies.design import GOLD, read_design
from empatheia_people.studies.items import Candidate, StudyItem
from empatheia_people.studies.manifest import compose

SYSTEMS = ("pre", "os", "edos", "ed")


@pytest.fixture(scope="module")
def six_thousand():
    return [item for name in ("OS", "EDOS", "ED") for item in made_items(2000, SYSTEMS, name)]


def test_meed2_composition(six_thousand):
    manifest = compose(meed2(), six_thousand, SYSTEMS)
    sets = {item.id: item.set for item in six_thousand}
    assert len(manifest.hits) == 600 and all(len(hit.tasks) == 10 for hit in manifest.hits)
    n_ed = Counter(sum(sets[task.item] == "ED" for task in hit.tasks) for hit in manifest.hits)
    assert n_ed == {3: 400, 4: 200}
    assert len({task.item for hit in manifest.hits for task in hit.tasks}) == 6000
    five = [task for hit in manifest.hits for task in hit.tasks if len(task.cards) == 5]
    assert len(five) == 1800 and all(task.is_bonus and sets[task.item] == "ED" for task in five)
    assert all(sum(task.is_bonus for task in hit.tasks) == 3 for hit in manifest.hits)
    assert "24,000 answers" in manifest.notes[0]
    orders = [order for hit in manifest.hits for seat in hit.orders for order in seat]
    assert len(orders) == 24_000
    gold_places = Counter(order.index(4) for order in orders if len(order) == 5)
    assert all(1300 < n < 1580 for n in gold_places.values())  # 7,200 / 5


def test_a_seed_gives_the_same_bytes():
    items = made_items(40)
    one, other = (compose(meed2(), items, ("A", "B")).lines() for _ in range(2))
    assert one == other and one != compose(meed2("seed=7"), items, ("A", "B")).lines()


def test_too_few_items_of_a_set_are_told(six_thousand):
    few = [item for item in six_thousand if item.set != "ED"] + made_items(1799, SYSTEMS, "ED")
    with pytest.raises(ConfigError, match="4 of ED in each of 579 HITs are 2,316 items, there are 1,799"):
        compose(meed2("composition.strata.ED=4"), few, SYSTEMS)
    with pytest.raises(ConfigError, match=r"7 tasks are fewer than one HIT has \(10\)"):
        compose(meed2(), made_items(7), ("A", "B"))
    bare = [StudyItem(str(i), "ED", ("x",), {"A": Candidate("A", f"a{i}")}) for i in range(10)]
    with pytest.raises(ConfigError, match="HIT 1 has 0 items of ED with a reply of the corpus"):
        compose(meed2(), bare, ("A",))


def test_identical_candidates_share_a_card():
    item = StudyItem("1", "ED", ("x",), {"A": Candidate("A", "Oh no."), "B": Candidate("B", "Oh  no.")}, "", "Oh no.")
    design = meed2(
        "composition.items_per_hit=1", "composition.bonus={per_hit: 1, needed: 1}", "composition.strata.ED=1"
    )
    (hit,) = compose(design, [item], ("A", "B")).hits
    assert hit.tasks[0].cards == (("A", "B", GOLD),)


def test_likert_draws_each_system_as_often():
    design = read_design(RECIPES / "rashkin_ratings.yaml", ["composition.per_system=30", "composition.items_per_hit=9"])
    items = [
        StudyItem(i.id, i.set, i.context, {**i.candidates, GOLD: Candidate(GOLD, i.reference or "")}, "", i.reference)
        for i in made_items(40)
    ]
    manifest = compose(design, items, ("A", "B"))
    shown = Counter(task.cards[0][0] for hit in manifest.hits for task in hit.tasks if not task.is_check)
    assert sum(shown.values()) == 90 and all(29 <= n <= 31 for n in shown.values())
    for hit in manifest.hits:
        assert len({task.item for task in hit.tasks if not task.is_check}) == 9  # a worker sees an item once


def test_pairs_differ_change_sides_and_share_no_context():
    names = ("A", "B", "C")
    same = StudyItem("same", "ED", ("x",), {n: Candidate(n, "Same!" if n != "C" else "other") for n in names})
    design = read_design(RECIPES / "gao_ab.yaml", ["composition.per_pair=10", "composition.items_per_hit=5"])
    manifest = compose(design, [same, *made_items(40, names)], names)
    tasks = [task for hit in manifest.hits for task in hit.tasks]
    assert Counter(tuple(card[0] for card in task.cards) for task in tasks) == dict.fromkeys(combinations(names, 2), 10)
    assert len({task.item for task in tasks}) == 30 and "same" not in {
        t.item for t in tasks if t.cards == (("A",), ("B",))
    }
    firsts = Counter(order[0] for hit in manifest.hits for seat in hit.orders for order in seat)
    assert abs(firsts[0] - firsts[1]) <= 30  # three raters: two one way, one the other
    with pytest.raises(ConfigError, match="A and B: 30 items are asked for"):
        compose(
            design.model_copy(update={"composition": design.composition.model_copy(update={"per_pair": 30})}),
            made_items(20, names),
            names,
        )
    against = design.composition.model_copy(update={"against": "D"})
    with pytest.raises(ConfigError, match="no system 'D'"):
        compose(design.model_copy(update={"composition": against}), made_items(40, names), names)


def test_many_systems_are_balanced_over_items():
    names = tuple("ABCDEFG")
    design = simple("drag", composition={"cards_per_item": 3, "items_per_hit": 7, "raters": 2})
    manifest = compose(design, made_items(70, names), names)
    tasks = [task for hit in manifest.hits for task in hit.tasks]
    shown = Counter(card[0] for task in tasks for card in task.cards)
    pairs = Counter(pair for task in tasks for pair in combinations(sorted(card[0] for card in task.cards), 2))
    assert set(shown.values()) == {30} and max(pairs.values()) - min(pairs.values()) <= 2 and len(pairs) == 21


def test_checks_of_attention_are_in_every_hit():
    check = {"text": "Please choose bad.", "right": "bad"}
    design = simple("drag", attention=[check], composition={"items_per_hit": 5})
    for hit in compose(design, made_items(20), ("A", "B")).hits:
        assert sum(task.is_check for task in hit.tasks) == 1 and len(hit.tasks) == 6


def test_live_talks_meet_every_system():
    design = read_design(RECIPES / "live.yaml", ["live.systems={one: x, two: y}", "composition.hits=6"])
    from empatheia_people.studies.making import make_study

    hits = make_study(design).manifest.hits
    assert len(hits) == 6 and all(len(hit.tasks) == 3 and hit.tasks[2].item.startswith("compare:") for hit in hits)
    assert len({hit.tasks[0].cards for hit in hits}) == 2  # the order changes
