"""The forms file: enough of everything, well formed, nothing a listener should not say."""

import re
from collections import Counter

import pytest

from empatheia.errors import DataError
from empatheia.taxonomy import EMOTIONS
from empatheia.voices.reflection.families import FAMILIES
from empatheia.voices.reflection.forms import Form, fill, flat, load_forms, pool, read_forms

GOOD = {"id": "a", "moment": ["loss"], "part": "ask", "text": "How is it?"}


def test_enough_forms_of_each_kind() -> None:
    forms = load_forms()
    assert len(forms) >= 600
    count = Counter((moment, form.part) for form in forms for moment in form.moments)
    for moment in FAMILIES:
        assert count[moment, "ask"] >= 12 and count[moment, "feel"] >= 8 and count[moment, "side"] >= 8, moment
    for moment in ("question", "greeting", "smalltalk", "closing", "short", "notext", "irony"):
        assert count[moment, "whole"] >= 5, moment


def test_every_label_has_forms() -> None:
    for family, labels in FAMILIES.items():
        for label in labels:
            for part in ("ask", "feel", "side"):
                assert sum(form.fits(label, (label,)) for form in pool(part, (family,))) >= 4, (label, part)


def test_ids_and_texts_are_unique() -> None:
    assert len({form.id for form in load_forms()}) == len(load_forms())
    assert len({(form.part, form.text, form.moments, bool(form.topics)) for form in load_forms()}) == len(load_forms())


def test_texts_are_short_and_clean() -> None:
    for form in load_forms():
        assert len(form.text.split()) <= 25, form
        assert "  " not in form.text and form.text[-1] in ".?!", form
        assert form.part != "ask" or (form.text.endswith("?") and form.text.count("?") == 1), form
        assert form.part not in ("stay", "side", "feel", "say") or "?" not in form.text.replace("{clause}?", ""), form


@pytest.mark.parametrize(
    "banned",
    [
        r"so sorry to hear", r"must be (?:so )?hard", r"sending hugs", r"you should", r"you need to", r"time heals",
        r"everything happens", r"at least\b", r"depress", r"trauma", r"disorder", r"when i was", r"as a human",
        r"i'm human", r"cheer up", r"look on the bright", r"hang in there", r"thoughts and prayers", r"\bshe\b",
        r"\bhe\b", r"passed away", r"\bdied\b",
    ],
)  # fmt: skip
def test_no_phrase_a_listener_should_not_say(banned: str) -> None:
    assert [form.text for form in load_forms() if re.search(banned, form.text, re.IGNORECASE)] == []


def test_a_form_is_found_again_in_what_was_said() -> None:
    for form in load_forms():
        if not form.is_bare:
            text = fill(form, clause="your cat is sick", who="your cat", feeling="sad")
            assert form.is_in(flat(["Yes.", f"First this. {text} And that."])), form
            assert not form.is_in(flat(["Nothing of the kind."])), form


def test_filling() -> None:
    form = Form("a", ("any",), "say", "{clause}.", frozenset(), frozenset())
    assert fill(form, clause="your cat is sick") == "Your cat is sick." and form.is_bare


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "list"),
        ({}, "list"),
        ([3], "missing"),
        ([{**GOOD, "text": ""}], "text missing"),
        ([{**GOOD, "part": "shout"}], "unknown part"),
        ([{**GOOD, "moment": ["grief"]}], "unknown moment"),
        ([{**GOOD, "not": ["glad"]}], "glad"),
        ([{**GOOD, "text": "How is {clause}?"}], "slots"),
        ([{**GOOD, "part": "say"}], "slots"),
        ([{**GOOD, "text": "How is it"}], "mark"),
        ([GOOD, GOOD], "two forms"),
    ],
)
def test_a_bad_file_is_refused(records: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_forms(records)


def test_families_hold_each_emotion_once() -> None:
    assert sorted(label for labels in FAMILIES.values() for label in labels) == sorted(EMOTIONS)
