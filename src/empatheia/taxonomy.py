"""Label sets of the field, their orders, their aliases, and the tables between them.

The 32 emotions are those of EmpatheticDialogues (Rashkin et al. 2019), which gives them no integer ids; the 8
response intents and ``neutral`` are those of Welivita and Pu (2020), in the order MEED2 uses (Xie and Pu
2021). Every model folder stores the order it was trained with: an index means nothing without it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, get_args

from empatheia.errors import DataError


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


EMOTIONS: tuple[str, ...] = _words(
    "afraid angry annoyed anticipating anxious apprehensive ashamed caring confident content devastated"
    " disappointed disgusted embarrassed excited faithful furious grateful guilty hopeful impressed jealous"
    " joyful lonely nostalgic prepared proud sad sentimental surprised terrified trusting"
)
"""The 32 conversation labels of EmpatheticDialogues, alphabetical: this package's own order."""

Side = Literal["pleasant", "unpleasant", "mixed"]
SIDES: tuple[Side, ...] = get_args(Side)
"""How it feels."""
SIDE_OF: Mapping[str, Side] = MappingProxyType(
    {
        **dict.fromkeys(
            _words(
                "anticipating caring confident content excited faithful grateful hopeful impressed joyful prepared"
                " proud trusting"
            ),
            "pleasant",
        ),
        **dict.fromkeys(
            _words(
                "afraid angry annoyed anxious apprehensive ashamed devastated disappointed disgusted embarrassed"
                " furious guilty jealous lonely sad terrified"
            ),
            "unpleasant",
        ),
    }
)
"""Emotions whose side is plain; the others (nostalgic, sentimental, surprised) may be either."""

INTENTS: tuple[str, ...] = _words(
    "agreeing acknowledging encouraging consoling sympathizing suggesting questioning wishing neutral"
)
"""Eight response intents and neutral (Welivita and Pu 2020); ids 32-40 of the 41 labels, not alphabetical."""

LABELS_41: tuple[str, ...] = EMOTIONS + INTENTS
"""The 41 classes of the EmpatheticIntents, EDOS and MEED2 classifiers. ``neutral`` is never an emotion."""

ORDERS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "alphabetical": EMOTIONS,
        # The 32-line list in the repository of Gao et al. (2021).
        "gao2021": _words(
            "sentimental afraid proud faithful terrified joyful angry sad jealous grateful prepared"
            " embarrassed excited annoyed lonely ashamed guilty surprised nostalgic confident furious"
            " disappointed caring trusting disgusted anticipating anxious hopeful content impressed"
            " apprehensive devastated"
        ),
        # MoEL's emotion map, reused by EmpDG, MIME, KEMP and CEM.
        "moel": _words(
            "surprised excited annoyed proud angry sad grateful lonely impressed afraid disgusted confident"
            " terrified hopeful anxious disappointed joyful prepared guilty furious nostalgic jealous"
            " anticipating embarrassed content devastated sentimental caring trusting ashamed apprehensive"
            " faithful"
        ),
        # Kim et al. (2021), label list of the generative emotion estimator.
        "kim2021": EMOTIONS,
        # Xie and Pu (2021): 32 emotions, 8 intents, neutral.
        "meed2": LABELS_41,
    }
)
"""Label orders by source: index = the integer id used there."""

POSITIVE_EMOTIONS: frozenset[str] = frozenset(
    _words(
        "confident joyful grateful impressed proud excited trusting hopeful faithful prepared content surprised caring"
    )
)
"""The 13 positive emotions of MIME (Majumder et al. 2020)."""

MECHANISMS: tuple[str, ...] = ("emotional reaction", "interpretation", "exploration")
"""Communication mechanisms of empathy (EPITOME, Sharma et al. 2020), in the order of Chen et al. (2022)."""

RELATION_GROUPS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "affect": ("xReact",),
        "behaviour": ("xIntent", "xNeed", "xWant", "xEffect", "xAttr"),
        "physical": ("HasProperty", "CapableOf", "Desires"),
        "events": ("Causes", "xReason"),
    }
)
"""ATOMIC-2020 relations used by IMAGINE (Chen et al. 2022), by type, in the order of the paper's body."""

RELATIONS: tuple[str, ...] = tuple(name for names in RELATION_GROUPS.values() for name in names)
"""The same 11 relations, flat."""

RELATION_TITLES: MappingProxyType[str, str] = MappingProxyType(
    {
        "xReact": "feels",
        "xIntent": "because they wanted",
        "xNeed": "needed before",
        "xWant": "wants now",
        "xEffect": "so that they",
        "xAttr": "is seen as",
        "HasProperty": "has the property",
        "CapableOf": "is capable of",
        "Desires": "desires",
        "Causes": "causes",
        "xReason": "because of",
    }
)
"""Each relation in a few words, as a report or a prompt shows it."""

RECCON_EMOTIONS: tuple[str, ...] = ("happiness", "surprise", "anger", "sadness", "disgust", "fear")
"""Emotions of DailyDialog and so of RECCON (Poria et al. 2021), without ``neutral``."""

_RECCON_STRAYS = {
    "happy": "happiness",
    "happines": "happiness",
    "excited": "happiness",
    "joy": "happiness",
    "surprised": "surprise",
    "angry": "anger",
    "sad": "sadness",
    "disgusted": "disgust",
    "afraid": "fear",
    "no_emotion": "neutral",
    "no emotion": "neutral",
}

_TO_RECCON = {
    "happiness": "anticipating caring confident content excited faithful grateful hopeful impressed joyful"
    " nostalgic prepared proud trusting",
    "surprise": "surprised",
    "anger": "angry annoyed furious jealous",
    "sadness": "ashamed devastated disappointed embarrassed guilty lonely sad sentimental",
    "disgust": "disgusted",
    "fear": "afraid anxious apprehensive terrified",
}
EMOTION_TO_RECCON: MappingProxyType[str, str] = MappingProxyType(
    {name: next(k for k, v in _TO_RECCON.items() if name in v.split()) for name in EMOTIONS}
)
"""Each of the 32 emotions to the nearest of RECCON's six. Ours: Gao et al. (2021) do not say what they used.

Close calls: ``nostalgic`` goes to happiness and ``sentimental`` to sadness; shame, guilt and embarrassment go
to sadness, ``jealous`` to anger, ``impressed`` to happiness.
"""

_ALIASES = {
    "acknowleding": "acknowledging",  # file name in EmpatheticIntents
    "acknowledge": "acknowledging",
    "aknowledge": "acknowledging",
    "agreement": "agreeing",
    "anger": "angry",
    "aprehensive": "apprehensive",
    "asking": "questioning",
    "dissapointed": "disappointed",
    "hoping": "hopeful",
    "jealousy": "jealous",
    "question": "questioning",
    "sadness": "sad",
    "suggestive": "suggesting",
    "suprised": "surprised",
    "sympathising": "sympathizing",
    "thankful": "grateful",
}
_OTHER = re.compile(r"\s*\(other\)\s*$")


def canonical_emotion(name: str, known: Sequence[str] = LABELS_41) -> str:
    """The label that a source's spelling stands for.

    Case, blanks, double underscores (Kim et al.), a trailing full stop and EDOS's `` (Other)`` are ignored;
    misspellings found in the sources are corrected.

    Args:
        name: As written in a file, e.g. ``"Wishing"``, ``"acknowleding"``, ``"Annoyed (Other)"``.
        known: The accepted labels: all 41, or ``EMOTIONS``.

    Raises:
        DataError: No label is meant; the message names the nearest.

    >>> canonical_emotion("Suprised (Other)")
    'surprised'
    """
    key = _OTHER.sub("", name.strip().lower()).strip(" _.")
    key = _ALIASES.get(key, key)
    if key in known:
        return key
    raise DataError(f"unknown emotion or intent {name!r}.{_nearest(key, known)} Known: {', '.join(known)}.")


def canonical_reccon_emotion(name: str) -> str:
    """One of RECCON's six emotions or ``neutral``; its stray spellings (15 utterances) are mended.

    IEMOCAP's own ``frustrated`` is kept as it is: the six have no word for it.

    Raises:
        DataError: The word is none of them; the message names the nearest.

    >>> canonical_reccon_emotion("happines")
    'happiness'
    """
    known = (*RECCON_EMOTIONS, "neutral", "frustrated")
    key = name.strip().lower()
    key = _RECCON_STRAYS.get(key, key)
    if key in known:
        return key
    raise DataError(f"unknown RECCON emotion {name!r}.{_nearest(key, known)} Known: {', '.join(known)}.")


def polarity(emotion: str) -> str:
    """``positive`` or ``negative`` after MIME.

    Raises:
        DataError: Not one of the 32 emotions.
    """
    return "positive" if canonical_emotion(emotion, EMOTIONS) in POSITIVE_EMOTIONS else "negative"


def order(name: str) -> tuple[str, ...]:
    """The labels of a source in its own order.

    Raises:
        DataError: The source is unknown.
    """
    if name not in ORDERS:
        raise DataError(f"unknown label order {name!r}.{_nearest(name, list(ORDERS))} Known: {', '.join(ORDERS)}.")
    return ORDERS[name]


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


IGNORED = -100
"""Index of a label that is not supervised: losses and metrics leave it out."""
NOT_COVERED = "relation not covered"
NO_HEAD = "no near head"
ONLY_NONE = "nothing but 'none'"
NOT_CACHED = "not in the cache"
BLOCKED = "blocked"
EMPTY = "nothing to ask about"
"""Why there is no inference."""
