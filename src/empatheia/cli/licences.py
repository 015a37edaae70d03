"""Licences of the packages that this one needs, those they need included."""

from __future__ import annotations

import re
from email.message import Message
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import cast

_UNKNOWN = "not told; see its home page"
_LONGEST = 60


def licences(package: str = "empatheia") -> list[dict[str, str]]:
    """Name, version, licence of each installed package that ``package`` needs, its own extras included, by name."""
    found: dict[str, Distribution | None] = {}
    waiting = [package]
    while waiting:
        name = _plain(waiting.pop())
        if name in found:
            continue
        try:
            one = found[name] = distribution(name)
        except PackageNotFoundError:  # an extra, or for another system
            found[name] = None
            continue
        own = name == _plain(package)
        needs = [need for need in one.requires or () if own or "extra ==" not in need]
        waiting += [match[0] for need in needs if (match := re.match(r"[\w.-]+", need))]
    return [
        {"name": name, "version": one.version, "licence": licence_of(one)}
        for name, one in sorted(found.items())
        if one is not None and name != _plain(package)
    ]


def licence_of(package: Distribution) -> str:
    """What a package says of its licence: an expression, else classifiers, else its own short words."""
    said = cast(Message, package.metadata)  # so it is; the annotation names less
    if expression := said.get("License-Expression"):
        return expression
    kinds = [line.rpartition(" :: ")[2] for line in said.get_all("Classifier") or () if line.startswith("License ::")]
    if kinds := [kind for kind in kinds if kind != "OSI Approved"]:
        return "; ".join(kinds)
    words = (said.get("License") or "").strip()
    return words if 0 < len(words) <= _LONGEST and "\n" not in words else _UNKNOWN


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
