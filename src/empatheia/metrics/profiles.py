"""Which numbers a paper prints, and exactly which variant each of them is.

A profile is an ordered list of columns. A column names a metric of ``METRICS``, what cuts the words, and the unit in
print. Columns that no paper prints but that make the systems comparable (``ANCHORS``) come after those that it does.
``profiles.yaml`` holds them.
Sources: the papers' evaluation sections and the scripts in their repositories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from empatheia.errors import ConfigError
from empatheia.registry import nearest
from empatheia.settings import read_yaml

Words = Literal["space", "nltk", "nltk-cased", "family", "rashkin"]

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "space": "tokens as the file has them, at white space",
        "nltk": "lower-case NLTK words, sentences first",
        "nltk-cased": "the same, case kept (CEM's evaluation)",
        "family": "lower-case, contractions expanded, NLTK words (how the MoEL family prepares its data)",
        "rashkin": "the cased spacing rules of the EmpatheticDialogues code",
    }
)
"""What may cut the words of a column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a profile.

    Attributes:
        name: As the paper prints it.
        metric: A key of ``METRICS``, or a name that is none of them yet (see ``missing``).
        unit: Unit in print; empty = the metric's own.
        words: A key of ``WORDS``.
        part: A number behind the metric, e.g. ``brevity_penalty``; empty = its value.
        settings: Further arguments of the metric.
        is_printed: Whether the paper prints it; the others are for comparison.
        note: Which variant it is and where that is from.
        missing: Why no file of replies can give it, and what can; empty where one can.
    """

    name: str
    metric: str
    unit: str = ""
    words: Words = "space"
    part: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_printed: bool = True
    note: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """The numbers of one paper.

    Attributes:
        name: Key of ``PROFILES``.
        title: Paper and what was read for it.
        columns: In the order of print.
    """

    name: str
    title: str
    columns: tuple[Column, ...]


def profile_of(name: str) -> Profile:
    """The profile of that name.

    Raises:
        ConfigError: There is none.
    """
    if name not in PROFILES:
        hint = nearest(name, list(PROFILES))
        raise ConfigError(f"unknown profile {name!r}.{hint} Known: {', '.join(PROFILES)}.")
    return PROFILES[name]


NLL = (
    "needs the likelihood of every gold reply, which texts do not hold: `empatheia evaluate RUN` measures it for a"
    " model trained here, `empatheia.metrics.perplexity` takes yours"
)
TOKENS = "needs an encoder: name its folder with `--bertscore`; `empatheia.metrics.bertscore` takes the vectors of any"
ENCODER = "needs the vectors of an encoder: `empatheia.metrics.bertscore` and `.similarity` take those of any"
RATERS = "needs its own model of empathy: `empatheia analyze --with mechanisms` on the replies, then mean of the levels"


def _anchor(name: str, metric: str, part: str = "", note: str = "") -> Column:
    return Column(name, metric, part=part, is_printed=False, note=note)


ANCHORS: tuple[Column, ...] = (
    _anchor("corpus BLEU-2", "bleu_corpus_2"),
    _anchor("corpus BLEU-4", "bleu_corpus_4"),
    _anchor("BP", "bleu_corpus_4", "brevity_penalty"),
    _anchor("D-1", "dist_corpus_1"),
    _anchor("D-2", "dist_corpus_2"),
    _anchor("length", "dist_corpus_1", "mean_length", "mean number of tokens a reply"),
    _anchor("distinct replies", "dist_corpus_1", "distinct_replies", "number of different replies"),
)
"""What can be compared between the released outputs of all systems: tokens at white space, no casing, percent."""


_SENTENCES = {"NLL": NLL, "TOKENS": TOKENS, "ENCODER": ENCODER, "RATERS": RATERS}


def _column(fields: Mapping[str, Any]) -> Column:
    missing = fields.get("missing", "")
    return Column(**{**fields, "missing": _SENTENCES.get(missing, missing)})


def _read() -> Iterator[Profile]:
    for name, told in read_yaml(Path(__file__).with_suffix(".yaml")).items():
        yield Profile(name, told["title"], (*map(_column, told["columns"]), *(ANCHORS if "anchors" in told else ())))


*_PROFILES, DEFAULT = _read()
"""``DEFAULT``: what is measured when no profile is named."""
PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _PROFILES})
"""Name to profile."""
