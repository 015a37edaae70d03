"""Turns out of sentences: for each pair of neighbours, does the same person go on or another one speak?

MEED2 used a support vector machine after Lison and Meena (2016), 76.69 % of pairs right; features, data and code were
not published. Ours is a linear one on :mod:`empatheia_people.curation.pair_features`. What a subtitle itself says
comes before it: a dash at the beginning of a sentence and a speaker's name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np

from empatheia.errors import CheckpointError, ConfigError
from empatheia.reading import read_record
from empatheia.resources.arrays import load_arrays
from empatheia_people.curation.dialogues import CHAT_GAP_MS
from empatheia_people.curation.pair_features import BITS, SLOTS, pair_features, strip_marks
from empatheia_people.curation.records import Script, ScriptTurn, Sentence

BUNDLED = "bundled"
FORMAT = 1
_WEIGHTS, _FACTS = "weights.safetensors", "segmenter.json"


class PairModel(Protocol):
    """Tells the probability that the same person goes on.

    Attributes:
        name: For records.
        threshold: From which probability on it is taken for the same.
    """

    @property
    def name(self) -> str:
        """See above."""
        ...

    @property
    def threshold(self) -> float:
        """See above."""
        ...

    def same_turn_probability(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """Of each pair of neighbours. Shape: (n_sentences - 1,)."""
        ...


@dataclass(frozen=True)
class TurnSegmenter:
    """A linear classifier of pairs with a calibrated probability (Platt 1999).

    Attributes:
        name: For records.
        weights: One a bucket; positive speaks for a new turn. Shape: (2 ** BITS,), float32.
        bias: Added to the sum.
        slope: Of the logistic function of the sum.
        offset: As ``slope``.
        threshold: From which probability of the same turn on two sentences are joined.
        facts: What it learnt from and how well it does; the rest of its file.
    """

    name: str
    weights: np.ndarray
    bias: float
    slope: float
    offset: float
    threshold: float = 0.5
    facts: dict | None = None

    @classmethod
    def load(cls, place: str | Path = BUNDLED) -> TurnSegmenter:
        """From a folder, or the one that comes with the package.

        Raises:
            CheckpointError: The folder is missing or incomplete, or was made for other features.
        """
        folder = Path(__file__).with_name("segmenter") if str(place) == BUNDLED else Path(place)
        try:
            facts = read_record(folder / _FACTS)
        except (OSError, ValueError) as error:
            said = " ".join(str(error).split())[:200]
            raise CheckpointError(
                f"no turn segmenter in {folder} ({said}). Make one: empatheia curate train-segmenter --out {folder}"
            ) from None
        weights = load_arrays(folder / _WEIGHTS).get("weights")
        if facts.get("slots") != list(SLOTS) or weights is None or tuple(weights.shape) != (1 << BITS,):
            raise CheckpointError(
                f"{folder} holds a segmenter of other features than this version reads."
                f" Make it again: empatheia curate train-segmenter --out {folder}"
            )
        try:
            bias, slope, offset, threshold = (float(facts[name]) for name in ("bias", "slope", "offset", "threshold"))
        except (KeyError, TypeError, ValueError):
            raise CheckpointError(f"{folder / _FACTS}: bias, slope, offset or threshold is not a number.") from None
        name = str(facts.get("name", folder.name))
        return cls(name, weights.astype(np.float32), bias, slope, offset, threshold, facts)

    def save(self, folder: Path) -> None:
        """Writes weights (half precision) and facts; :meth:`load` reads them."""
        from safetensors.numpy import save_file

        folder.mkdir(parents=True, exist_ok=True)
        save_file({"weights": self.weights.astype(np.float16)}, folder / _WEIGHTS)
        record = {
            "format": FORMAT,
            "name": self.name,
            "bias": self.bias,
            "slope": self.slope,
            "offset": self.offset,
            "threshold": self.threshold,
            "slots": list(SLOTS),
            **(self.facts or {}),
        }
        (folder / _FACTS).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    def scores(self, features: np.ndarray) -> np.ndarray:
        """Above 0 speaks for a new turn.

        Args:
            features: Buckets. Shape: (n_pairs, n_slots).

        Returns:
            Shape: (n_pairs,), float64.
        """
        return self.weights[features].sum(axis=1, dtype=np.float64) + self.bias

    def same_turn_probability(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """Calibrated, of each pair of neighbours. Shape: (n_sentences - 1,)."""
        z = self.slope * self.scores(pair_features(sentences)) + self.offset
        return 1.0 / (1.0 + np.exp(np.clip(z, -60, 60)))


@dataclass(frozen=True)
class Rule:
    """A baseline of the specification, in the form of a model of pairs: probability 1 or 0.

    Attributes:
        name: ``always_new``, ``always_same`` or ``dash_or_gap``.
        is_same: Of each pair of neighbours.
        threshold: See :class:`PairModel`.
    """

    name: str
    is_same: Callable[[Sequence[Sentence]], np.ndarray]
    threshold: float = 0.5

    def same_turn_probability(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """1 or 0. Shape: (n_sentences - 1,)."""
        return self.is_same(sentences).astype(np.float64)


GAP_RULE_MS = 1000


def _dash_or_gap(sentences: Sequence[Sentence]) -> np.ndarray:
    """Same unless the second begins with a dash, or starts more than a second after the first ends."""
    return np.array(
        [
            not strip_marks(after.text)[1]
            and (one.end is None or after.start is None or after.start - one.end <= GAP_RULE_MS)
            for one, after in pairwise(sentences)
        ],
        bool,
    )


RULES = {
    "always_new": Rule("always_new", lambda sentences: np.zeros(max(0, len(sentences) - 1), bool)),
    "always_same": Rule("always_same", lambda sentences: np.ones(max(0, len(sentences) - 1), bool)),
    "dash_or_gap": Rule("dash_or_gap", _dash_or_gap),
}


def load_segmenter(place: str | Path = BUNDLED) -> PairModel:
    """A model of pairs by name: ``bundled``, a rule of ``RULES``, or the folder of a trained one.

    Raises:
        ConfigError: There is no such folder and no such rule.
        CheckpointError: The folder holds none.
    """
    if str(place) in RULES:
        return RULES[str(place)]
    if str(place) != BUNDLED and not Path(place).is_dir():
        raise ConfigError(
            f"no turn segmenter {str(place)!r}; accepted: {BUNDLED}, {', '.join(RULES)}, or a folder that"
            " `empatheia curate train-segmenter` made."
        )
    return TurnSegmenter.load(place)


def new_turns(
    sentences: Sequence[Sentence],
    model: PairModel,
    threshold: float | None = None,
    use_marks: bool = True,
    longest_pause_ms: int | None = None,
) -> np.ndarray:
    """Which sentences begin a turn.

    Args:
        sentences: Of one file.
        model: Decides where the file itself does not say.
        threshold: In place of the model's.
        use_marks: Believe dashes and speakers' names.
        longest_pause_ms: A longer pause always begins a turn; None = none does.

    Returns:
        Shape: (n_sentences,), bool; the first is True.
    """
    if not sentences:
        return np.zeros(0, bool)
    limit = model.threshold if threshold is None else threshold
    is_new = np.concatenate([[True], model.same_turn_probability(sentences) < limit])
    if use_marks:
        for i, (one, after) in enumerate(pairwise(sentences), 1):
            if one.speaker and after.speaker:
                is_new[i] = one.speaker != after.speaker
            elif any(strip_marks(after.text)[1:]):
                is_new[i] = True
    if longest_pause_ms is not None:
        for i, (one, after) in enumerate(pairwise(sentences), 1):
            if one.end is not None and after.start is not None and after.start - one.end > longest_pause_ms:
                is_new[i] = True
    return is_new


def join_turns(sentences: Sequence[Sentence], is_new: Sequence[bool] | np.ndarray) -> list[ScriptTurn]:
    """The turns that decisions make.

    Args:
        sentences: Of one file.
        is_new: Whether each begins a turn; the first always does.
    """
    begins = [i for i, new in enumerate(is_new) if new or i == 0]
    out: list[ScriptTurn] = []
    for begin, end in pairwise([*begins, len(sentences)]):
        first = sentences[begin]
        text = " ".join([strip_dashes(one.text) for one in sentences[begin:end]]).strip()
        out.append(ScriptTurn(text, first.start, sentences[end - 1].end, first.speaker, first.dialogue, end - begin))
    return out


def strip_dashes(text: str) -> str:
    """Without dashes at its beginning; speakers' names stay, the cleaning counts them."""
    if text[:1] not in "-\u2010\u2011\u2012\u2013\u2014\u2015 ":
        return text
    return text.lstrip("-\u2010\u2011\u2012\u2013\u2014\u2015 ")


def chat_turn(one: Sentence, after: Sentence, chat_gap_ms: int) -> str:
    """Whether a message of a chat goes on with the turn of the one before: ``same``, or why it does not."""
    if one.dialogue != after.dialogue:
        return "the source begins another dialogue"
    if not after.speaker:
        return "no speaker is named"
    if one.speaker != after.speaker:
        return "the file names the speakers"
    if one.end is None or after.start is None or after.dialogue >= 0:
        return "same"
    return "a long pause" if after.start - one.end > chat_gap_ms else "same"


def turns_of(
    script: Script,
    model: PairModel,
    threshold: float | None = None,
    use_marks: bool = True,
    longest_pause_ms: int | None = None,
    chat_gap_ms: int = CHAT_GAP_MS,
) -> list[ScriptTurn]:
    """The turns of a file; where speakers and dialogues are known, neighbours of one speaker are joined.

    See :func:`new_turns` for the arguments; ``chat_gap_ms`` is the longest pause inside of a turn of a chat.
    """
    sentences = script.sentences
    if script.kind == "chat":
        is_new = [True] + [chat_turn(one, after, chat_gap_ms) != "same" for one, after in pairwise(sentences)]
        return join_turns(sentences, is_new[: len(sentences)])
    return join_turns(sentences, new_turns(sentences, model, threshold, use_marks, longest_pause_ms))
