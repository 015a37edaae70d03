"""Does a reply take up what it should be about: share of target words in it, by form or by meaning.

Kim et al. (2021) report Coverage without code or formula; here hits = target words one of whose forms is among the
reply's words, over the number of target words. Targets are words of the context (the causes of the emotion), the same
list for every system compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric, check_same_length
from empatheia.metrics.ngrams import Tokens, as_tokens
from empatheia.metrics.word_forms import base_form
from empatheia.text.stems import stem

_FORMS: Mapping[str, Callable[[str], str]] = {"word": str, "stem": stem, "base": base_form}


class Coverage(Metric):
    """Target words that a reply takes up, mean over replies: 0 to 100 percent, higher is more.

    Items without target words have no share and are left out (part ``n_without_targets``). A target that is named
    twice counts twice. Parts: mean number of hits and of targets.

    Args:
        forms: When two words are the same: ``word`` lower-cased, ``stem`` by their English Snowball stem (needs
            nltk), ``base`` the same with irregular forms ("lost" is a form of "lose"), or the name of what
            ``normalise`` does, e.g. ``wordnet-lemma``.
        normalise: A lower-cased word to its form; only with a ``forms`` of one's own.
        tokenizer: Name of what made the tokens.

    Raises:
        ConfigError: An unknown ``forms`` without ``normalise``, or a known one with it.

    Example:
        >>> metric = Coverage(forms="word")
        >>> metric.update(["You lost your dog ?", "Oh"], [["dog", "died"], []])
        >>> metric.compute().value
        50.0
    """

    name = "coverage"
    unit = "percent"
    columns = ("share", "hits", "targets", "n_with_targets", "n_items")

    def __init__(
        self, forms: str = "stem", normalise: Callable[[str], str] | None = None, tokenizer: str = "space"
    ) -> None:
        super().__init__()
        if (forms in _FORMS) == (normalise is not None):
            raise ConfigError(
                f"forms is {forms!r} {'with' if normalise else 'without'} `normalise`; accepted: {', '.join(_FORMS)}"
                " alone, or another name together with a function."
            )
        self.forms, self.normalise, self.tokenizer = forms, normalise, tokenizer

    def update(self, responses: Sequence[str | Tokens], targets: Sequence[Sequence[str]]) -> None:
        """Adds replies.

        Args:
            responses: One reply for each item; strings are split at white space.
            targets: The words each reply should take up; there may be none.

        Raises:
            DataError: The numbers differ, or an item's targets are no list of words.
        """
        check_same_length(self.name, responses=responses, targets=targets)
        rows = []
        for i, (reply, wanted) in enumerate(zip(as_tokens(self.name, responses, True), targets, strict=True)):
            if isinstance(wanted, str):
                raise DataError(f"{self.name}: targets of item {i} are {wanted!r}; accepted: a list of words.")
            words = as_tokens(self.name, [list(wanted)], True)[0]
            hits = int(self._hits(reply, words).sum()) if words else 0
            rows.append([hits / len(words) if words else 0, hits, len(words), bool(words), 1])
        self._append(rows, references=map(list, targets))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Mean share in percent."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return 100 * sums[..., 0] / sums[..., 3]

    def settings(self) -> Mapping[str, object]:
        """What makes two words the same."""
        return {"forms": self.forms, "tok": self.tokenizer}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Means over replies with targets; the pooled share in percent."""
        _, hits, targets, n, n_items = (float(total) for total in sums)
        nan = float("nan")
        means = {"mean_hits": hits / n if n else nan, "mean_targets": targets / n if n else nan}
        return {**means, "pooled": 100 * hits / targets if targets else nan, "n_without_targets": int(n_items - n)}

    def note_of(self, sums: np.ndarray) -> str:
        """No targets."""
        return "no item has a target word"

    def _hits(self, reply: list[str], targets: list[str]) -> np.ndarray:
        """Whether each target is taken up. Shape: (n_targets,)."""
        form: Callable[[str], str] = _FORMS.get(self.forms, self.normalise or str)
        said = set(map(form, reply))
        return np.array([form(word) in said for word in targets])


class NearCoverage(Coverage):
    """Target words with a word of like meaning in the reply, mean over replies: 0 to 100 percent, higher is more.

    A target is taken up when the reply has a form of the word itself (as :class:`Coverage` with ``base``), or a word
    whose vector has at least ``threshold`` cosine to the target's; so it is never below that coverage.

    Args:
        vectors: Lower-cased words to vectors, shape (n_words, width); zeros for a word it does not know.
        encoder: Name of the vectors, for the signature.
        threshold: Least cosine, above 0 up to 1.
        tokenizer: Name of what made the tokens.

    Raises:
        ConfigError: The threshold is out of range.

    Example:
        >>> import numpy as np
        >>> known = {"dog": [1, 0], "puppy": [0.9, 0.1], "exam": [0, 1]}
        >>> table = lambda words: np.array([known.get(word, [0, 0]) for word in words], dtype=float)
        >>> metric = NearCoverage(table, encoder="mine")
        >>> metric.update(["A puppy ?"], [["dog", "exam"]])
        >>> metric.compute().value
        50.0
    """

    name = "coverage_near"

    def __init__(
        self,
        vectors: Callable[[Sequence[str]], np.ndarray],
        encoder: str,
        threshold: float = 0.6,
        tokenizer: str = "space",
    ) -> None:
        super().__init__("base", tokenizer=tokenizer)
        if not 0 < threshold <= 1:
            raise ConfigError(f"threshold is {threshold}; accepted: above 0, up to 1.")
        self.vectors, self.encoder, self.threshold = vectors, encoder, threshold

    def settings(self) -> Mapping[str, object]:
        """Vectors and threshold."""
        return {"forms": "base-or-near", "encoder": self.encoder, "threshold": self.threshold, "tok": self.tokenizer}

    def _hits(self, reply: list[str], targets: list[str]) -> np.ndarray:
        same = super()._hits(reply, targets)
        if not reply or same.all():
            return same
        units = _unit_rows(np.asarray(self.vectors([*targets, *reply]), dtype=np.float64))
        cosines = units[: len(targets)] @ units[len(targets) :].T  # (n_targets, n_words)
        return same | (cosines.max(axis=1) >= self.threshold - 1e-9)


def _unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)
