"""From probabilities to what may be said: the family of feelings, how sure it is, and the word for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from empatheia.taxonomy import EMOTIONS
from empatheia.voices.reflection.perceived import Perceived, Sureness

FAMILIES: dict[str, tuple[str, ...]] = {
    "loss": ("sad", "devastated"),
    "lonely": ("lonely",),
    "worry": ("afraid", "terrified", "anxious", "apprehensive"),
    "anger": ("angry", "annoyed", "furious"),
    "letdown": ("disappointed", "jealous"),
    "disgust": ("disgusted",),
    "shame": ("ashamed", "embarrassed", "guilty"),
    "pride": ("proud", "confident", "prepared"),
    "joy": ("joyful", "excited", "content"),
    "hope": ("hopeful", "anticipating"),
    "thanks": ("grateful",),
    "trust": ("trusting", "faithful"),
    "care": ("caring",),
    "memory": ("nostalgic", "sentimental"),
    "wonder": ("surprised", "impressed"),
}
"""The 32 emotions by what a listener would answer to them; each in one family."""

PLEASANT = frozenset({"pride", "joy", "hope", "thanks", "trust"})
UNPLEASANT = frozenset({"loss", "lonely", "worry", "anger", "letdown", "disgust", "shame"})

WORDS: dict[str, str] = {
    "afraid": "scared", "anticipating": "excited", "apprehensive": "nervous", "content": "happy", "faithful": "loyal",
    "joyful": "happy", "prepared": "ready", "trusting": "sure",
}  # fmt: skip
"""The plain word for a label where it is not the label itself."""

_MILD = {
    "loss": "sad", "lonely": "lonely", "worry": "worried", "anger": "angry", "letdown": "let down",
    "disgust": "disgusted", "shame": "uncomfortable", "pride": "proud", "joy": "happy", "hope": "hopeful",
    "thanks": "grateful", "trust": "sure", "care": "caring", "memory": "sentimental", "wonder": "impressed",
}  # fmt: skip
# How much of a label counts for each side where the model names no sides.
_HALF = {"surprised": (0.5, 0.2), "nostalgic": (0.4, 0.2), "sentimental": (0.3, 0.3), "caring": (0.6, 0.2)}
# Chosen on the valid part of the everyday corpus: with them in 4 of 100 texts the side shown is the opposite one.
_FAMILY_SURE, _LABEL_SURE, _SHARE = 0.52, 0.46, 0.60
_SIDE_SURE, _WITH, _AGAINST, _LEANS, _HARDLY, _MIXED = 0.76, 0.60, 0.30, 0.50, 0.20, 0.42
_FROM_EMOTIONS = 0.4  # of the side; the two err on different texts


@dataclass(frozen=True, slots=True)
class View:
    """What may be said of the feeling.

    Attributes:
        moment: A family; or ``mixed``, ``unclear_pleasant``, ``unclear_unpleasant``, ``unclear``.
        sureness: ``name``, ``side`` or ``none``.
        feeling: The word to name it by; empty unless ``name``.
        label: The label it rests on if that is sure, else "".
        possible: Labels of the family that cannot be excluded.
        pleasant: Probability of the pleasant side.
        unpleasant: Probability of the unpleasant side.
    """

    moment: str
    sureness: Sureness
    feeling: str = ""
    label: str = ""
    possible: tuple[str, ...] = ()
    pleasant: float = 0.0
    unpleasant: float = 0.0

    @property
    def wildcards(self) -> tuple[str, ...]:
        """The moments of forms that fit any feeling of this side."""
        if self.moment in ("unclear", "mixed") or (self.pleasant <= _AGAINST and self.unpleasant <= _AGAINST):
            return ("any",)
        if self.moment in UNPLEASANT or self.moment == "unclear_unpleasant":
            return ("any_unpleasant", "any")
        if self.unpleasant <= _AGAINST and (self.moment in PLEASANT or self.pleasant >= _LEANS):
            return ("any_pleasant", "any")
        return ("any_unpleasant", "any") if self.unpleasant >= _SIDE_SURE else ("any",)


def view(perceived: Perceived) -> View:
    """What may be said of the feeling; never pleasant where the unpleasant is likely, nor the reverse."""
    emotions = {name: max(0.0, float(perceived.emotions.get(name, 0.0))) for name in EMOTIONS}
    sides = sides_of(perceived.sides, emotions)
    named = _named(emotions, sides["pleasant"], sides["unpleasant"])
    return named if named is not None else _one_sided(**sides)


def _named(emotions: Mapping[str, float], pleasant: float, unpleasant: float) -> View | None:
    """The likeliest family, where it is likely enough to be named; else None."""
    if sum(emotions.values()) <= 0 or len(set(emotions.values())) == 1:
        return None
    weights = {family: sum(emotions[label] for label in labels) for family, labels in FAMILIES.items()}
    family = max(weights, key=lambda name: weights[name])
    weight = weights[family]
    label = max(FAMILIES[family], key=lambda name: emotions[name])
    if weight < _FAMILY_SURE and emotions[label] < _LABEL_SURE:
        return None
    if not (_agrees(family, pleasant, unpleasant) or _stands_alone(family, weight, unpleasant)):
        return None
    sure = emotions[label] >= _SHARE * weight
    possible = tuple(name for name in FAMILIES[family] if emotions[name] >= 0.2 * weight)
    word = WORDS.get(label, label) if sure else _MILD[family]
    return View(family, "name", word, label if sure else "", possible, pleasant, unpleasant)


def _one_sided(pleasant: float, unpleasant: float, mixed: float) -> View:
    """Only the side, where that is sure."""
    if unpleasant >= _SIDE_SURE:
        return View("unclear_unpleasant", "side", pleasant=pleasant, unpleasant=unpleasant)
    if pleasant >= _SIDE_SURE or (pleasant >= _LEANS and unpleasant <= _HARDLY):
        return View("unclear_pleasant", "side", pleasant=pleasant, unpleasant=unpleasant)
    if mixed >= _MIXED:
        return View("mixed", "side", pleasant=pleasant, unpleasant=unpleasant)
    return View("unclear", "none", pleasant=pleasant, unpleasant=unpleasant)


def _agrees(family: str, pleasant: float, unpleasant: float) -> bool:
    """Whether the side speaks for the family, or at least not against it."""
    if family in UNPLEASANT:
        return pleasant <= _AGAINST and unpleasant >= _WITH
    if family in PLEASANT:
        return unpleasant <= _AGAINST and pleasant >= _WITH
    return unpleasant <= _AGAINST


def _stands_alone(family: str, weight: float, unpleasant: float) -> bool:
    """Whether a family that may be of either side is so likely that the side need not be known."""
    return family not in UNPLEASANT | PLEASANT and weight >= 0.75 and unpleasant < 0.6


def sides_of(given: Mapping[str, float], emotions: Mapping[str, float]) -> dict[str, float]:
    """Probabilities of ``pleasant``, ``unpleasant`` and ``mixed``: those given, with those of the emotions."""
    derived = {"pleasant": 0.0, "unpleasant": 0.0, "mixed": 0.0}
    if len(set(emotions.values())) > 1:
        total = sum(emotions.values())
        for family, labels in FAMILIES.items():
            for label in labels:
                good, bad = _HALF.get(label, (1.0, 0.0) if family not in UNPLEASANT else (0.0, 1.0))
                for name, part in (("pleasant", good), ("unpleasant", bad), ("mixed", 1.0 - good - bad)):
                    derived[name] += part * emotions[label] / total
    own = {name: max(0.0, float(given.get(name, 0.0))) for name in derived}
    if not given or not sum(own.values()):
        return derived
    if not any(derived.values()):
        return own
    total = sum(own.values())
    return {name: (1 - _FROM_EMOTIONS) * own[name] / total + _FROM_EMOTIONS * derived[name] for name in derived}
