"""How long replies are, in words or characters: mean, deviation, quantiles. Neither long nor short is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np

from empatheia.errors import ConfigError
from empatheia.metrics.base import Metric
from empatheia.metrics.ngrams import Tokens, as_tokens

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class ReplyLength(Metric):
    """Mean length of a reply: 0 upwards, in words or characters; no direction.

    Parts: sample deviation, least and greatest length, quantiles (``q05`` to ``q95``), number of empty replies.

    Args:
        of: ``words`` or ``characters``. The characters of a token list are those of its words joined by blanks.
        tokenizer: Name of what made the tokens.

    Raises:
        ConfigError: ``of`` is neither.

    Example:
        >>> metric = ReplyLength("words")
        >>> metric.update(["oh no", "i am so sorry"])
        >>> metric.compute().value
        3.0
    """

    higher_is_better = None
    columns = ("length", "n_items")

    def __init__(self, of: Literal["words", "characters"] = "words", tokenizer: str = "space") -> None:
        super().__init__()
        if of not in ("words", "characters"):
            raise ConfigError(f"length of {of!r} is not measured; accepted: words, characters.")
        self.of, self.unit, self.name, self.tokenizer = of, of, f"length_{of}", tokenizer

    def update(self, responses: Sequence[str | Tokens]) -> None:
        """Adds replies; strings are split at white space, token lists are taken as they are.

        Raises:
            DataError: An item is neither a string nor a list of strings.
        """
        replies = as_tokens(self.name, responses)
        if self.of == "words":
            lengths = list(map(len, replies))
        else:
            texts = (x if isinstance(x, str) else " ".join(x) for x in responses)
            lengths = list(map(len, texts))
        self._append([[length, 1] for length in lengths])

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The mean."""
        return sums[..., 0] / sums[..., 1]

    def settings(self) -> Mapping[str, object]:
        """What is counted."""
        return {"of": self.of, "tok": self.tokenizer}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """The distribution."""
        lengths = self.statistics()[:, 0]
        spread = float(lengths.std(ddof=1)) if len(lengths) > 1 else float("nan")
        values = np.quantile(lengths, QUANTILES)
        quantiles = {f"q{int(100 * q):02d}": float(value) for q, value in zip(QUANTILES, values, strict=True)}
        empty = int(np.count_nonzero(lengths == 0))
        return {"sd": spread, "min": int(lengths.min()), "max": int(lengths.max()), **quantiles, "n_empty": empty}


length_words, length_characters = partial(ReplyLength, "words"), partial(ReplyLength, "characters")
