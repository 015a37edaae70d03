"""Was the cause of the emotion found: RECCON's entailment F1, micro P/R/F1 over turns or words, top-k recall.

Sources: Poria et al. 2021 (RECCON, subtask 2: F1 of the positive and the negative class and their mean, four
decimals); Gao et al. 2021, section 2 (turn labels copied to all words of the turn); Kim et al. 2021 (EmoCause
top-k).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric, check_same_length
from empatheia.metrics.classification import F1
from empatheia.taxonomy import IGNORED

CauseWord = str | tuple[str, int]
"""A word, or with its token index where :class:`CauseRecall` asks for it."""


class EntailmentF1(F1):
    """F1 of RECCON's causal entailment over pairs: 0 to 1 (four decimals are usual), higher is better.

    Args:
        of: ``positive`` (1 = causal pair), ``negative`` (0), or ``macro``, the mean of both.

    Example:
        >>> metric = EntailmentF1("positive")
        >>> metric.update([1, 1, 0, 0], [1, 0, 0, 1])
        >>> metric.compute().value
        0.5
    """

    reads = ()  # its labels are no emotions

    def __init__(self, of: Literal["positive", "negative", "macro"] = "macro") -> None:
        classes = {"positive": 1, "negative": 0, "macro": None}
        if of not in classes:
            raise ConfigError(f"unknown class {of!r}; accepted: positive, negative, macro.")
        average = "macro" if of == "macro" else "class"
        super().__init__([0, 1], average, classes[of], unit="fraction")
        self.name = f"entailment_f1_{of}"


class CauseF1(Metric):
    """Micro-averaged F1 of marked units (turns or words): 0 to 1, higher is better.

    Counts are pooled over all units of all dialogues; the interval resamples dialogues. Precision and recall
    are parts.

    Args:
        level: What a unit is; only the name depends on it.

    Example:
        >>> metric = CauseF1("turn")
        >>> metric.update([[1, 1, 0]], [[1, 0, 0]])
        >>> round(metric.compute().value, 4)
        0.6667
    """

    unit = "fraction"
    columns = ("true_positive", "false_positive", "false_negative", "n_units")

    def __init__(self, level: Literal["turn", "word"] = "turn") -> None:
        super().__init__()
        if level not in ("turn", "word"):
            raise ConfigError(f"unknown level {level!r}; accepted: turn, word.")
        self.level = level
        self.name = f"cause_f1_{level}"

    def update(self, predicted: Sequence[Sequence[int]], gold: Sequence[Sequence[int]]) -> None:
        """Adds dialogues.

        Args:
            predicted: For each dialogue, 1 or 0 (or a bool) for each unit.
            gold: The same; units labelled -100 are not scored.

        Raises:
            DataError: The numbers of dialogues or of units differ, or a flag is none of the accepted.
        """
        check_same_length(self.name, predicted=predicted, gold=gold)
        rows = []
        for i, (flags, truths) in enumerate(zip(predicted, gold, strict=True)):
            if not (hasattr(flags, "__len__") and hasattr(truths, "__len__")):
                raise DataError(
                    f"{self.name}: dialogue {i} is {flags!r} / {truths!r}; accepted: a list of flags for each"
                    f" dialogue, one flag for each {self.level}."
                )
            if len(flags) != len(truths):
                raise DataError(
                    f"{self.name}: dialogue {i} has {len(flags)} predicted and {len(truths)} gold flags;"
                    f" each {self.level} needs one of each."
                )
            guess, truth = np.asarray(flags, dtype=int), np.asarray(truths, dtype=int)
            if not (np.isin(truth, (0, 1, IGNORED)).all() and np.isin(guess, (0, 1, IGNORED)).all()):
                raise DataError(f"{self.name}: dialogue {i} has a flag that is not 0, 1 or {IGNORED}.")
            scored = truth != IGNORED
            marked, causal = guess[scored] == 1, truth[scored] == 1
            counts = [
                (marked & causal).sum(),
                (marked & ~causal).sum(),
                (~marked & causal).sum(),
                scored.sum(),
            ]
            rows.append(counts)
        self._append(rows, references=("".join(map(str, map(int, truths))) for truths in gold))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """2 tp / (2 tp + fp + fn)."""
        tp, fp, fn = sums[..., 0], sums[..., 1], sums[..., 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            return 2 * tp / (2 * tp + fp + fn)

    def settings(self) -> Mapping[str, object]:
        """What a unit is."""
        return {"level": self.level, "average": "micro"}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Precision (NaN when nothing was marked), recall (NaN when nothing is causal), counts."""
        tp, fp, fn, n_units = (int(x) for x in sums)
        precision = tp / (tp + fp) if tp + fp else float("nan")
        recall = tp / (tp + fn) if tp + fn else float("nan")
        counts = {"true_positive": tp, "false_positive": fp, "false_negative": fn, "n_units": n_units}
        return {"precision": precision, "recall": recall, **counts}

    def note_of(self, sums: np.ndarray) -> str:
        """Nothing marked, nothing causal."""
        return f"no {self.level} is causal and none was marked"


class CauseRecall(Metric):
    """Recall of gold cause words among the k best predicted (EmoCause): 0 to 100 percent, higher is better.

    As in the released code: a prediction that starts or ends with a gold word counts as that word (tokenisers
    differ), words are matched as a multiset, and the mean over utterances is unweighted. With few guesses 100
    is out of reach: the part ``ceiling`` is the best possible value for this k.

    Args:
        top_k: How many predicted words count.
        strict: True = equal case-folded words only. ``"index"`` = entries are pairs of a word and its token index, and
            both must be equal. The score then has another name.

    Example:
        >>> metric = CauseRecall(top_k=1)
        >>> metric.update([["dogs.", "car"]], [["dogs", "bark"]])
        >>> metric.compute().value
        50.0
    """

    unit = "percent"
    columns = ("recall", "ceiling", "n_items")

    def __init__(self, top_k: int = 1, strict: bool | Literal["index"] = False) -> None:
        super().__init__()
        if top_k < 1:
            raise ConfigError(f"top_k is {top_k}; accepted: 1 or more.")
        if strict not in (False, True, "index"):
            raise ConfigError(f"strict is {strict!r}; accepted: False, True, 'index'.")
        self.top_k, self.strict = top_k, strict
        self.name = f"cause_recall_top{top_k}" + ("_index" if strict == "index" else "_strict" if strict else "")

    def update(self, ranked: Sequence[Sequence[CauseWord]], gold: Sequence[Sequence[CauseWord]]) -> None:
        """Adds utterances.

        Args:
            ranked: Predicted cause words of each utterance, best first; fewer than k are allowed.
            gold: Gold cause words of each utterance; without any its recall and its ceiling are 0.

        Raises:
            DataError: The numbers differ, an entry is a plain string, or with ``strict="index"`` something is not a
                pair of a word and an index.
        """
        check_same_length(self.name, ranked=ranked, gold=gold)
        rows = []
        for i, (words, truths) in enumerate(zip(ranked, gold, strict=True)):
            if isinstance(words, str) or isinstance(truths, str):
                raise DataError(f"{self.name}: utterance {i} is {words!r} / {truths!r}; accepted: lists of words.")
            found = self._found(list(words[: self.top_k]), list(truths), i)
            n = max(1, len(truths))
            rows.append([found / n, min(self.top_k, len(truths)) / n, 1])
        self._append(rows, references=gold)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Mean recall in percent."""
        return 100 * sums[..., 0] / sums[..., 2]

    def settings(self) -> Mapping[str, object]:
        """Number of guesses and how words are matched."""
        return {"top": self.top_k, "match": "index" if self.strict == "index" else "strict" if self.strict else "affix"}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Best possible value for this k, in percent."""
        return {"ceiling": 100 * float(sums[1] / sums[2])}

    def _found(self, words: list[Any], truths: list[Any], utterance: int) -> int:
        if self.strict == "index":
            try:
                words, truths = ([(word.casefold(), int(i)) for word, i in row] for row in (words, truths))
            except (TypeError, ValueError, AttributeError):
                raise DataError(f"{self.name}: utterance {utterance}: accepted: pairs (word, index).") from None
        elif self.strict:
            words, truths = [w.casefold() for w in words], [t.casefold() for t in truths]
        else:
            for truth in truths:
                words = [truth if w.startswith(truth) or w.endswith(truth) else w for w in words]
        return (Counter(words) & Counter(truths)).total()


entailment_f1_macro, entailment_f1_positive, entailment_f1_negative = (
    partial(EntailmentF1, of) for of in ("macro", "positive", "negative")
)
cause_f1_turn, cause_f1_word = partial(CauseF1, "turn"), partial(CauseF1, "word")
cause_recall_top1, cause_recall_top3, cause_recall_top5 = (partial(CauseRecall, k) for k in (1, 3, 5))
