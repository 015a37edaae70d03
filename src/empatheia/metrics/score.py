"""A number that says what it is: ``Score`` and its ``Signature`` (after sacrebleu, Post 2018, section 4)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypedDict

import numpy as np

from empatheia.errors import ConfigError, DataError


def package_version(package: str = "empatheia") -> str:
    """Version of an installed package, ``source`` when it runs from a source tree."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "source"


@dataclass(frozen=True)
class Signature:
    """How a number was made, as ``key:value`` pairs.

    ``str`` sorts the keys and joins the pairs with ``|``, so two equal strings mean comparable numbers.

    Example:
        >>> str(Signature({"tok": "space", "case": "lc"}))
        'case:lc|tok:space'
    """

    values: Mapping[str, str]

    def __post_init__(self) -> None:
        for key, value in self.values.items():
            if any(mark in f"{key}{value}" for mark in "|\n") or ":" in key:
                raise ConfigError(f"signature entry {key!r}: {value!r} contains '|', ':' or a line break.")

    def including(self, **values: object) -> Signature:
        """A copy with more entries; the value None adds nothing."""
        return Signature({**self.values, **{k: str(v) for k, v in values.items() if v is not None}})

    def __str__(self) -> str:
        return "|".join(f"{key}:{self.values[key]}" for key in sorted(self.values))

    @staticmethod
    def parse(text: str) -> Signature:
        """Reads back what ``str`` wrote."""
        pairs = [pair.partition(":") for pair in text.split("|")] if text else []
        return Signature({key: value for key, _, value in pairs})


def hashes_of(references: Iterable[object]) -> np.ndarray:
    """A 64-bit hash of each reference; their sum modulo 2**64 does not depend on the order. Shape: (n,)."""
    hashes = []
    for reference in references:
        tokens = reference if isinstance(reference, Sequence) and not isinstance(reference, str) else (reference,)
        text = "\x1f".join(map(str, tokens))
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        hashes.append(int.from_bytes(digest, "big"))
    return np.array(hashes, dtype=np.uint64)


def references_hash(references: Iterable[object]) -> str:
    """Fingerprint of a test set's references (strings, token lists or labels); their order does not matter.

    Numbers whose fingerprints differ were not measured on the same test set.

    Returns:
        12 hexadecimal digits.

    Example:
        >>> references_hash(["a b", "c"]) == references_hash(["c", "a b"])
        True
        >>> references_hash(["a b", "c"]) == references_hash(["a b", "d"])
        False
    """
    return f"{int(hashes_of(references).sum()):016x}"[:12]


class ScoreRecord(TypedDict):
    """A :class:`Score` as JSON keeps it.

    Attributes:
        value: None = undefined (NaN); ``inf`` and ``-inf`` for what has no end.
        interval: (low, high), written as ``value`` is; None without one.
        parts: Numbers behind the value, written as it is, and tables of them.

    The others are as in :class:`Score`.
    """

    name: str
    value: float | str | None
    unit: str
    n: int
    higher_is_better: bool | None
    interval: list[float | str | None] | None
    signature: str
    parts: dict[str, object]


@dataclass(frozen=True, slots=True)
class Score:
    """One measured number.

    Attributes:
        name: Which definition, e.g. ``bleu_nltk_4``; a key of ``METRICS`` where one exists.
        value: The number; NaN when it is undefined, and then ``parts["note"]`` says why.
        unit: ``percent`` (0..100), ``fraction`` (0..1), ``perplexity``, ``bits``, ``kappa``, ``level``, ``words``,
            ``characters``, ``labels``.
        n: How many items (replies, dialogues, batches) it rests on.
        higher_is_better: Direction; None for what has none, such as length.
        interval: (low, high) in the same unit, or None when it was not asked for or cannot be had.
        signature: What else must be equal for two values to be comparable (see ``Signature``).
        parts: Numbers behind the value, e.g. precisions and brevity penalty; ``note`` is a sentence.
    """

    name: str
    value: float
    unit: str
    n: int
    higher_is_better: bool | None
    interval: tuple[float, float] | None = None
    signature: str = ""
    parts: Mapping[str, Any] = field(default_factory=dict)

    def in_unit(self, unit: str) -> Score:
        """The same score as ``percent`` or as ``fraction``; parts stay as they are.

        Raises:
            ConfigError: The two units do not measure the same thing.
        """
        factor = {("percent", "fraction"): 0.01, ("fraction", "percent"): 100.0}.get((self.unit, unit))
        if unit == self.unit:
            return self
        if factor is None:
            raise ConfigError(f"{self.name} is in {self.unit} and cannot be expressed in {unit}.")
        interval = None if self.interval is None else (self.interval[0] * factor, self.interval[1] * factor)
        return replace(self, value=self.value * factor, unit=unit, interval=interval)

    def to_dict(self) -> ScoreRecord:
        """JSON-ready data: NaN becomes None, infinity the string ``inf``."""
        return {
            "name": self.name,
            "value": _encode(self.value),
            "unit": self.unit,
            "n": self.n,
            "higher_is_better": self.higher_is_better,
            "interval": None if self.interval is None else [_encode(x) for x in self.interval],
            "signature": self.signature,
            "parts": {key: _encode(value) for key, value in self.parts.items()},
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Score:
        """Reads back what :meth:`to_dict` wrote.

        Raises:
            DataError: A field is missing, or ``n`` is no count.
        """
        missing = {"name", "value", "unit", "n", "higher_is_better"} - set(data)
        if missing:
            found = ", ".join(data) or "nothing"
            raise DataError(f"not a score: missing {', '.join(sorted(missing))}; found {found}.")
        n, interval = data["n"], data.get("interval")
        if not (isinstance(n, int) or (isinstance(n, float) and math.isfinite(n))):
            raise DataError(f"not a score: n of {data['name']!r:.80} is {n!r:.40}; a count is accepted.")
        return Score(
            name=data["name"],
            value=_decode(data["value"]),
            unit=data["unit"],
            n=int(n),
            higher_is_better=None if data["higher_is_better"] is None else bool(data["higher_is_better"]),
            interval=None if interval is None else (_decode(interval[0]), _decode(interval[1])),
            signature=data.get("signature", ""),
            parts={key: _decode(value) for key, value in data.get("parts", {}).items()},
        )

    def __str__(self) -> str:
        unit = {"percent": " %", "bits": " bits"}.get(self.unit, "")
        text = f"{self.name} = {self.value:.4g}{unit} (n = {self.n}"
        if self.interval is not None:
            text += f", interval {self.interval[0]:.4g} to {self.interval[1]:.4g}"
        return text + ")"


def _encode(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _decode(value: Any) -> Any:
    if value is None:
        return math.nan
    return float(value) if value in ("inf", "-inf") else value
