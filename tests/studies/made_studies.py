"""Made-up items, designs and stores."""

from __future__ import annotations

from empatheia_people.studies.design import Design, read_design, validate_design
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.items import Candidate, Material, StudyItem
from empatheia_people.studies.manifest import compose
from empatheia_people.studies.store import Store
from empatheia_research.shipped import recipes_root

RECIPES = recipes_root() / "studies"


def made_items(n: int, systems=("A", "B"), name: str = "ED") -> list[StudyItem]:
    return [
        StudyItem(
            f"{name}/{i}",
            name,
            (f"I lost key number {i}.",),
            {s: Candidate(s, f"{s} says {i}", label="sad") for s in systems},
            "sad",
            f"gold {name} {i}",
        )
        for i in range(n)
    ]


def meed2(*overrides: str) -> Design:
    return read_design(RECIPES / "meed2.yaml", list(overrides))


def simple(protocol: str, **more) -> Design:
    tree = {"name": "simple", "protocol": protocol, "criteria": [{"name": "quality"}], **more}
    return validate_design(tree, "test")


def fill(store: Store, design: Design, items: list[StudyItem], systems=("A", "B")) -> Desk:
    store.create(design, Material(tuple(items), tuple(systems)), compose(design, items, systems))
    return Desk(store)


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now
