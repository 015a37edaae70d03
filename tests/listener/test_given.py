"""What Python callers hand in: read rightly, or refused in words."""

import numpy as np
import polars as pl
import pytest

from empatheia.errors import DataError, InputTypeError
from empatheia.listener.batch_listener import chunks
from empatheia.listener.given import given
from empatheia.records.dialogue import Dialogue
from empatheia.text.inputs import up_to

CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "I failed."},
    {"role": "assistant", "content": "Oh."},
    {"role": "user", "content": "Twice."},
]


def test_chat_messages_are_one_conversation():
    found = given(CHAT)
    assert [(turn.role, turn.text) for turn in found.turns] == [
        ("speaker", "I failed."),
        ("listener", "Oh."),
        ("speaker", "Twice."),
    ]
    assert given([CHAT, "a text"]) == [found, "a text"]


def test_frames_and_series():
    frame = pl.DataFrame({"id": [1, 2], "text": ["one", "two"]})
    assert (
        given(frame, "text").cells == ["one", "two"] == given(frame["text"]).cells == given(frame.lazy(), "text").cells
    )
    with pytest.raises(InputTypeError, match=r"needs column=.*id, text"):
        given(frame)
    with pytest.raises(DataError, match=r"no column 'txt'.*Did you mean 'text'"):
        given(frame, "txt")
    with pytest.raises(InputTypeError, match="a Series is read as it is"):
        given(frame["text"], "text")


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (None, "cannot read None"),
        ({"text": "I am sad."}, "cannot read a dict"),
        (3, "cannot read an int"),
        (b"bytes", "cannot read a bytes"),
        (["fine", None], "input 2 is None"),
        ([{"content": "x"}], "input 1 is a dict"),
        ([{"role": "user", "content": 3}], "message 1 has an int as content"),
        (np.array([1.0]), "input 1 is a float64"),
    ],
)
def test_anything_else_is_refused_with_what_is_accepted(item, words):
    with pytest.raises(InputTypeError, match=words):
        given(item)


def test_an_unknown_role_names_the_nearest():
    with pytest.raises(DataError, match=r"role 'usr'.*Did you mean 'user'"):
        given([{"role": "usr", "content": "x"}])


def test_a_listener_does_not_read_keys_or_columns():
    for item in ({"text": "I am sad."}, pl.DataFrame({"text": ["I am sad."]}), None):
        with pytest.raises(TypeError, match="cannot read"):
            list(chunks(item))


def test_a_named_turn_is_the_last_one_read():
    talk = Dialogue.of("One.", "Two.", "Three.")
    assert [turn.text for turn in up_to(talk, 0).turns] == ["One."]
    with pytest.raises(DataError, match="target is 1; accepted: a speaker turn, one of 0, 2"):
        up_to(talk, 1)


def said(who, text, first, second):
    """The turns of CHAT in other words."""
    return [{who: (second if one["role"] == "assistant" else first), text: one["content"]} for one in CHAT[1:]]


@pytest.mark.parametrize(
    "item",
    [
        {"messages": CHAT},
        said("role", "content", "human", "assistant"),
        said("speaker", "text", "Ana", "Ben"),
        said("author", "content", "Ana", "Ben"),
        said("from", "value", "human", "gpt"),
        [
            {"role": "user", "content": [{"type": "text", "text": "I failed."}]},
            {"role": "assistant", "content": None, "tool_calls": [{}]},
            {"role": "assistant", "tool_calls": [{}]},
            {"role": "function", "name": "find", "content": "{}"},
            CHAT[2],
            CHAT[3],
        ],
    ],
)
def test_conversations_are_read_as_those_of_files(item):
    assert given(item).turns == given(CHAT).turns
    assert given([item, "a text"]) == [given(item), "a text"]
