"""Label sets against the sources' own statements."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from empatheia import taxonomy
from empatheia.errors import DataError
from empatheia.taxonomy import EMOTIONS, INTENTS, LABELS_41, ORDERS, RELATION_GROUPS, canonical_emotion

# Rashkin et al. (2018), Table 7: the 32 labels by share of situations, most frequent first.
TABLE_7 = [
    *(
        "surprised",
        "excited",
        "annoyed",
        "proud",
        "angry",
        "sad",
        "grateful",
        "lonely",
        "impressed",
        "afraid",
    ),
    *("disgusted", "confident", "terrified", "hopeful", "anxious", "joyful", "disappointed", "prepared"),
    *("guilty", "furious", "nostalgic", "jealous", "anticipating", "embarrassed", "content", "devastated"),
    *("sentimental", "caring", "trusting", "ashamed", "apprehensive", "faithful"),
]


def test_emotions_are_those_of_table_7_in_alphabetical_order():
    assert list(EMOTIONS) == sorted(TABLE_7)


@pytest.mark.parametrize("source", ["gao2021", "moel", "kim2021"])
def test_every_order_is_a_permutation_of_the_32(source):
    assert Counter(ORDERS[source]) == Counter(EMOTIONS)


@pytest.mark.parametrize(
    ("source", "index", "name"),
    [
        ("gao2021", 0, "sentimental"),
        ("gao2021", 17, "surprised"),
        ("gao2021", 31, "devastated"),
        ("moel", 0, "surprised"),
        ("moel", 15, "disappointed"),  # MoEL's ids swap Table 7's 15th and 16th
        ("moel", 16, "joyful"),
        ("moel", 31, "faithful"),
        ("meed2", 0, "afraid"),
        ("meed2", 32, "agreeing"),
        ("meed2", 38, "questioning"),
        ("meed2", 40, "neutral"),
    ],
)
def test_published_ids(source, index, name):
    assert taxonomy.order(source)[index] == name


def test_moel_order_is_table_7_with_two_neighbours_swapped():
    table = list(TABLE_7)
    table[15], table[16] = table[16], table[15]
    assert list(ORDERS["moel"]) == table


def test_41_labels():
    assert len(LABELS_41) == 41 == len(set(LABELS_41))
    assert len(INTENTS) == 9
    assert INTENTS[-1] == "neutral"


def test_polarity_splits_13_and_19():
    assert len(taxonomy.POSITIVE_EMOTIONS) == 13
    assert len(set(EMOTIONS) - taxonomy.POSITIVE_EMOTIONS) == 19
    assert taxonomy.polarity("surprised") == "positive"
    assert taxonomy.polarity("Anticipating") == "negative"
    with pytest.raises(DataError, match="unknown emotion or intent 'neutral'"):
        taxonomy.polarity("neutral")


def test_eleven_relations_in_four_groups():
    assert [len(names) for names in RELATION_GROUPS.values()] == [1, 5, 3, 2]
    assert len(set(taxonomy.RELATIONS)) == 11


def test_reccon_table_covers_the_32_and_uses_all_six():
    assert list(taxonomy.EMOTION_TO_RECCON) == list(EMOTIONS)
    assert set(taxonomy.EMOTION_TO_RECCON.values()) == set(taxonomy.RECCON_EMOTIONS)
    negative = {"anger", "sadness", "disgust", "fear"}
    for emotion, coarse in taxonomy.EMOTION_TO_RECCON.items():
        if coarse in negative:
            assert taxonomy.polarity(emotion) == "negative", emotion


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("acknowleding", "acknowledging"),
        ("Wishing", "wishing"),
        ("Annoyed (Other)", "annoyed"),
        ("neutral  (Other)", "neutral"),
        ("suprised (Other)", "surprised"),
        ("__joyful__", "joyful"),
        (" AFRAID\n", "afraid"),
    ],
)
def test_spellings_of_the_sources(written, meant):
    assert canonical_emotion(written) == meant


@pytest.mark.parametrize("label", LABELS_41)
def test_canonical_labels_stand_for_themselves(label):
    assert canonical_emotion(label) == label
    assert canonical_emotion(f"{label.title()} (Other)") == label


def test_unknown_label_names_the_nearest():
    with pytest.raises(DataError, match=r"unknown emotion or intent 'gratful'\. Did you mean 'grateful'\?"):
        canonical_emotion("gratful")
    with pytest.raises(DataError, match="'questioning'"):
        canonical_emotion("questioning", EMOTIONS)
    with pytest.raises(DataError, match=r"unknown label order 'moell'.*'moel'"):
        taxonomy.order("moell")


@pytest.mark.parametrize(
    ("written", "meant"),
    [("happines", "happiness"), ("sad", "sadness"), ("excited", "happiness"), ("frustrated", "frustrated")],
)
def test_reccon_spellings(written, meant):
    assert taxonomy.canonical_reccon_emotion(written) == meant


def test_unknown_reccon_emotion():
    with pytest.raises(DataError, match="unknown RECCON emotion 'bored'"):
        taxonomy.canonical_reccon_emotion("bored")


def test_import_is_light():
    code = "import sys, empatheia.taxonomy; print([m for m in ('torch', 'polars', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
