"""SenticNet 6 (Cambria et al. 2020) as the PyPI package ``senticnet`` holds it: each concept with five related ones.

A free graph of related concepts (MIT) that comes by ``pip``: a stand-in where ConceptNet's file is not at hand.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from empatheia.errors import DataError, MissingResourceError
from empatheia_research.corpora.conceptnet import Assertion

NAME = "senticnet"
N_FIELDS = 13
"""Four sentics, two moods, polarity and its value, five related concepts."""


def read_related() -> Iterator[Assertion]:
    """``head RelatedTo tail`` of weight 1 in the package's order; ``_`` stands for blanks.

    Raises:
        MissingResourceError: The package is not installed.
        DataError: Its table has another form than that of SenticNet 6.
    """
    try:
        table: Any = importlib.import_module("senticnet.senticnet6").senticnet
    except ImportError:
        raise MissingResourceError(
            "SenticNet is not installed; get it with: pip install 'empatheia[concepts]' (52 MB)."
        ) from None
    for head, fields in table.items():
        if len(fields) != N_FIELDS:
            raise DataError(f"SenticNet: concept {head!r} has {len(fields)} fields; accepted: {N_FIELDS}.")
        for tail in fields[-5:]:
            yield Assertion("RelatedTo", head, tail, 1.0)
