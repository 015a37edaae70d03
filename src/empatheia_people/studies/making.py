"""From a design and replies to what a store takes in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from empatheia.errors import ConfigError
from empatheia_people.studies.design import Design
from empatheia_people.studies.items import Candidate, Material, StudyItem, read_material
from empatheia_people.studies.manifest import Manifest, compose


@dataclass(frozen=True, slots=True)
class Made:
    """A study before it is stored.

    Attributes:
        material: Items and systems.
        manifest: HITs.
        notes: What whoever runs it should know.
        summary: In a few words.
    """

    material: Material
    manifest: Manifest
    notes: tuple[str, ...]
    summary: str


def make_study(
    design: Design, places: Sequence[str] = (), *, data: str | Path | None = None, allow_missing: bool = False
) -> Made:
    """Items and HITs of a study.

    Args:
        design: Of the study.
        places: See :func:`~empatheia_people.studies.items.read_material`; none for live talks and collections.
        data: Folder of corpora.
        allow_missing: Leave out items that a system did not answer.

    Raises:
        ConfigError: No replies where the protocol needs some, or numbers that the items cannot give.
        DataError: A file cannot be used.
    """
    if design.protocol == "collect":
        return Made(Material((), ()), Manifest(()), (), f"a collection under {len(design.collect.labels)} labels")
    if design.protocol == "live":
        material = _topics(design)
    elif not places:
        raise ConfigError(f"protocol {design.protocol} needs replies: give --outputs RUN or --outputs FILE.")
    else:
        material = read_material(design, places, allow_missing=allow_missing, data=data)
    manifest = compose(design, material.items, material.systems)
    left = [f"{n:,} items are left out: {reason}" for reason, n in material.left_out.items()]
    left += _blank(material)
    summary = (
        f"{len(manifest.hits):,} HITs x {design.composition.raters} raters of {len(material.items):,} items and"
        f" {len(material.systems)} systems ({', '.join(material.systems)})"
    )
    return Made(material, manifest, (*material.notes, *left, *manifest.notes), summary)


def _blank(material: Material) -> list[str]:
    """How many replies of each system hold no text: people would rate nothing."""
    said = ((candidate.system, candidate.key) for item in material.items for candidate in item.candidates.values())
    counts = Counter(system for system, key in said if not key)
    return [f"{n:,} of {len(material.items):,} replies of {system} are blank" for system, n in counts.items()]


def _topics(design: Design) -> Material:
    systems = tuple(design.live.systems)
    if not systems:
        raise ConfigError("a live study needs systems: give --system NAME=MODEL, once or twice.")
    items = tuple(
        StudyItem(f"topic{n}", "live", (topic,), {name: Candidate(name, "") for name in systems})
        for n, topic in enumerate(design.live.topics, 1)
    )
    return Material(items, systems)
