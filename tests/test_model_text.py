"""What a language model says, without thoughts and tokens: whole, and cut anywhere."""

from __future__ import annotations

import json

import pytest

from empatheia.records.dialogue import Turn
from empatheia.resources.chat_endpoint import ChatEndpoint
from empatheia.resources.chat_stream import ChatStream
from empatheia.text.model_text import ModelText, spoken, without_tokens
from empatheia.text.prompts import messages_of, read_reply
from judging.chat_server import ChatServer

MARKED = [
    "<think>sad</think>\n\nOh no!<|im_end|>\n<|im_start|>user\nThanks.",
    "Okay, so the user lost a dog.\nI should be kind.\n</think>\n\nOh no!",
    "<|channel|>analysis<|message|>The user is sad.<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Oh no!<|return|>",
    "analysisThe user is sad.assistantfinalOh no!",
    "<s> Oh no!</s><pad><pad>",
    "<|im_start|>assistant\nOh no!<|im_end|>",
    "<|start_header_id|>assistant<|end_header_id|>\n\nOh no!<|eot_id|>",
    "<start_of_turn>model\nOh no!<end_of_turn>",
    "[THINK]x[/THINK]Oh no!",
    "◁think▷x◁/think▷Oh no!",
    "<seed:think>x</seed:think>Oh no!",
    "<THINKING>x</THINKING> Oh no!",
    "<|channel>thought\nhm<channel|>Oh no!",
    "<|START_THINKING|>x<|END_THINKING|><|START_RESPONSE|>Oh no!<|END_RESPONSE|>",
    "Oh no!<｜end▁of▁sentence｜>",
    "Oh no![INST] hi [/INST]",
]
PLAIN = ["I <3 you, 2 < 3 and [this] is <b>bold</b>.", "  Oh no!\n", "", "The assistant's analysis is final."]


@pytest.mark.parametrize("text", MARKED)
def test_only_what_is_said_is_left(text):
    assert spoken(text) == "Oh no!"
    assert read_reply(text) == "Oh no!"
    for size in range(1, 9):
        heard = ModelText()
        parts = [heard.next(text[place : place + size]) for place in range(0, len(text), size)]
        assert "".join([*parts, heard.end()]).strip() == "Oh no!"


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_without_marks_stays(text):
    assert spoken(text) == text and without_tokens(text) == text
    heard = ModelText()
    assert "".join([*map(heard.next, text), heard.end()]) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The <think> tag marks thoughts. Use it well.", None),
        ("He said <analysis> is hard. I agree.<|im_end|>", "He said <analysis> is hard. I agree."),
        ("Write <s>old</s> new.", None),
        ("Write <s>old</s>", "Write <s>old"),
        ("Oh no!</s>\n", "Oh no!"),
        ("Oh no!</s><s>[INST] hi", "Oh no!"),
        ("I love it</think>", "I love it"),
        ("The user is sad, I should be kind.</think>", ""),
        ("Oh no! <think>x</think>Where?", "Oh no! Where?"),
    ],
)
def test_marks_that_people_write_are_said(text, said):
    """Answers were cut at them."""
    said = text if said is None else said
    assert spoken(text) == said
    heard = ModelText()
    assert "".join([*map(heard.next, text), heard.end()]) == said


@pytest.mark.parametrize("text", ["So sorry to hear that. Losing a friend", "Okay, I hear you. That is a lot to carry"])
def test_common_beginnings_are_streamed(text):
    """They were held back to the end of the answer."""
    heard = ModelText()
    assert heard.next(text + " in so short a time. Who") == text + " in so short a time. Who"


def test_thoughts_that_never_end_are_no_reply():
    assert spoken("<think>The user is") == ""


def test_what_is_sure_is_given_out_at_once():
    heard = ModelText()
    assert heard.next("Oh no! Your dog <") == "Oh no! Your dog "
    assert heard.next("th") + heard.next("ink>x</thi") + heard.next("nk>ran.") == "ran."


def test_time_grows_with_the_length_alone():
    """A mark that never becomes whole is not read again with every piece."""
    heard = ModelText()
    for _ in range(50_000):
        heard.next("<a")
    assert len(heard._rest) < 60


def test_an_endpoint_that_begins_in_thought_is_remembered():
    def streamed(*pieces):
        lines = [{"choices": [{"delta": {"content": piece}, "finish_reason": None}]} for piece in pieces]
        lines.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        body = "".join(f"data: {json.dumps(line)}\n\n" for line in lines).encode()
        return (200, {"Content-Type": "text/event-stream"}, body)

    first = streamed("Sad dog. ", "Poor man.</th", "ink>Oh no!")
    with ChatServer(lambda _: "", failures=[first, first]) as server:
        endpoint = ChatEndpoint("m", server.url)
        list(ChatStream(endpoint, []))
        assert endpoint.begins_in_thought
        assert "".join(ChatStream(endpoint, [])) == "Oh no!"


def test_an_endpoint_s_whole_answer_has_no_thoughts():
    with ChatServer(lambda _: '<think>{"overall": 1}</think>{"overall": 2}</s>') as server:
        assert ChatEndpoint("m", server.url).ask([]).text == '{"overall": 2}'


def test_thoughts_and_tokens_are_not_sent_back():
    turns = [Turn("speaker", "Hi<|im_end|>."), Turn("listener", "<think>x</think>Hello."), Turn("speaker", "I'm sad.")]
    assert [one["content"] for one in messages_of(turns)[1:]] == ["Hi.", "Hello.", "I'm sad."]
