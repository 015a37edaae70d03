"""The counts of a run, out of the manifests of its shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from empatheia_people.curation.sources import Found

MOST_LISTED = 1000
"""Unreadable files named in a record."""


def unreadable(manifests: Sequence[dict[str, Any]], found: Found) -> tuple[int, list[list[str]]]:
    """How many files could not be read, and the first of them with reasons, by place."""
    listed = [list(pair) for pair in found.problems] + [list(pair) for one in manifests for pair in one["problems"]]
    n = len(found.problems) + sum(one["counts"].get("unreadable", 0) for one in manifests)
    return n, sorted(listed)[:MOST_LISTED]


def summary(made: dict[str, list[dict[str, Any]]], found: Found) -> dict[str, Any]:
    """Counts over all shards."""
    total: dict[str, Any] = {
        "files": len(found.sources) + len(found.problems),
    }
    total["unreadable"], total["problems"] = unreadable(made["dialogues"], found)
    for name in ("counts", "dropped", "changed", "notes"):
        out: dict[str, int] = {}
        for one in made["dialogues"]:
            for key, n in one[name].items():
                out[key] = out.get(key, 0) + n
        total[{"counts": "dialogues"}.get(name, name)] = dict(sorted(out.items()))
    total["n_split"] = sum(one["n_split"] for one in made["dialogues"])
    lines: dict[tuple[str, str], int] = {}
    for one in made["dialogues"]:
        for step, text, n in one["lines"]:
            lines[step, text] = lines.get((step, text), 0) + n
    ranked = sorted(lines.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))
    total["lines"] = [[step, text, n] for (step, text), n in ranked]
    total["unique"] = made["unique"][0]["counts"] if made["unique"] else {}
    total["labelled"] = next(
        ({k: one[k] for k in ("classifier", "measure", "engine") if k in one} for one in made["labelled"]), {}
    )
    total["rank"] = {name: value for name, value in made["rank"][0].items() if name in ("threshold", "top", "of")}
    total["corpus"], total["labels"] = _added(made["corpus"], "counts"), _added(made["corpus"], "labels")
    digest = sum(int(one["digest"], 16) for one in made["corpus"]) % (1 << 256)
    total["digest"] = f"{digest:064x}"
    return total


def _added(manifests: Sequence[dict[str, Any]], name: str) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    for one in manifests:
        for part, own in one[name].items():
            mine = out.setdefault(part, {})
            for key, n in own.items():
                mine[key] = mine.get(key, 0) + n
    return {part: dict(sorted(own.items())) for part, own in sorted(out.items())}
