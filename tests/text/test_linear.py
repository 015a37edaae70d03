"""Every function that reads text takes time in proportion to its length, on texts made to be slow.

Processor time of one run is compared: a text four times as long may take up to nine times as long (four is linear,
sixteen quadratic). What looks slow is measured again, so that a busy machine fails nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time

import pytest

from empatheia.care import Detector
from empatheia.care.earlier_turns import is_safe_now
from empatheia.care.guard import _whole_sentences
from empatheia.care.normalising import tokens_of
from empatheia.care.questions import read_answer
from empatheia.care.reply_check import asks_whether_human, check_reply, human_claims, without_claims
from empatheia.curation import cleaning, segmenter, subtitles
from empatheia.dialogue import Turn
from empatheia.responders.reflection import (
    clauses,
    feelings,
    legible,
    pieces,
    refusals,
    subjects,
    talk,
    topics,
    turning,
)
from empatheia.responders.reflection.compose import reflect
from empatheia.responders.reflection.perceived import Perceived
from empatheia.text.noise import straight, unshouted
from empatheia.text.prompts import read_reply
from empatheia.text.readable import readable
from empatheia.text.uncertainty import doubts
from empatheia.text.words import detokenize, tokenize_words

SHORT, TIMES, ALLOWED = 1500, 4, 9
NOTHING = 0.008
"""Seconds that are not worth a second look."""
REPEATED = [
    "I want to die ",
    "I want to die. ",
    "kill myself ",
    "she said he will kill himself ",
    "not ",
    "I am ",
    "I am not ",
    "and I ",
    "mum ",
    "my mum and ",
    "it is it ",
    "is it you ",
    "are you a ",
    "I feel sad. ",
    "so happy ",
    "so happy for me ",
    "used to be ",
    "he ",
    "when ",
    "like ",
    "please ",
    "thanks ",
    "the the ",
    "no ",
    "yes ",
    "yes but ",
    "if I ",
    "take all ",
    "you should ",
    "in the novel ",
    "she told me ",
    "I have ",
    "my friend ",
    "lol ",
    "haha ",
    "why? ",
    "oh no, ",
    "where ",
    "great, ",
    "nobody ",
    "never ",
    "i know i ",
    "a-b-",
    "a'b'",
    "a.b.c.",
    "www.",
    "http://",
    "subtitles ",
    "Mr. ",
    "A: ",
    "JOHN : ",
    "user:",
    "1:",
    "4",
    "@",
    "***",
    "d*",
    "s u i ",
    "{{{",
    "}",
    "(",
    "((a) ",
    "[",
    "<a ",
    "<",
    "😀",
    "́",
    "é",
    "\u200b",
    '"',
    "“",
    "'",
    '“a"',
    "...",
    "!?",
    ", ",
    "- ",
    " - ",
    "-",
    "A",
    "aB",
    "a",
    "kill",
    "ß",
    "&lt;",
    "&#",
    "%20",
    "k🙂i",
    "n't ",
    "'s ",
    ":) ",
    "1d13 ",
    "YXN ",
    "siht ",
    "ǝıp ",
]
"""Repeated until the text is long enough."""
BLANKS = ("\n", "\r\n", " ", "\t", ". ", "\n\nuser", "\u2028", " \n")
AROUND = (".", " ", "(", "'", '"', "-", "1", ",", "_", "!", "a", "\n", "*")
"""Runs of these stand behind a word and in front of another."""
NESTED = ("()", "[]", "{}", "<>", "\u201c\u201d", "\u00ab\u00bb")


def _texts(length: int) -> dict[str, str]:
    texts = {unit: (unit * (length // len(unit) + 1))[:length] for unit in (*REPEATED, *BLANKS)}
    texts |= {f"a {mark} run b": f"I am {mark * length}x but why" for mark in AROUND}
    texts |= {f"nested {pair}": pair[0] * (length // 2) + "a" + pair[1] * (length // 2) + " b" for pair in NESTED}
    return texts


SMALL = Detector(encoder=False)


def _piece(text: str) -> pieces.Piece:
    return pieces.Piece(text, 0, len(text), "", True, True)


def _half(text: str) -> pieces.Piece:
    return pieces.Piece("i left", 0, 6, "", False, False, lead=text)


def _told(text: str) -> tuple[Turn, ...]:
    return (Turn("speaker", text),)


def _answer_to(text: str) -> tuple[Turn, ...]:
    return (Turn("speaker", "hi"), Turn("listener", text), Turn("speaker", "not really"))


def _subtitles(text: str) -> object:
    lines = text.replace("\n", " ").replace("\r", " ").replace("\u2028", " ")
    return subtitles.read_subtitles(f"1\n00:00:01,000 --> 00:00:02,000\n{lines} -\n\n".encode(), ".srt")


READERS: dict[str, Callable[[str], object]] = {
    "tokens_of": tokens_of,
    "assess": SMALL.assess,
    "read_answer: answer": lambda text: read_answer("Do you want to die?", text),
    "read_answer: question": lambda text: read_answer(text + "?", "yes"),
    "is_safe_now": is_safe_now,
    "check_reply": lambda text: check_reply(text, "concern"),
    "without_claims": without_claims,
    "human_claims": human_claims,
    "asks_whether_human": asks_whether_human,
    "sentences of a stream": lambda text: list(_whole_sentences(text[i : i + 9] for i in range(0, len(text), 9))),
    "doubts": doubts,
    "words: family": tokenize_words,
    "words: rashkin": lambda text: tokenize_words(text, "rashkin"),
    "detokenize": lambda text: detokenize(text.split()),
    "straight": straight,
    "unshouted": lambda text: unshouted(text.upper()),
    "readable": readable,
    "read_reply": read_reply,
    "clean": turning.clean,
    "lower_words": turning.lower_words,
    "turn_person": turning.turn_person,
    "spoken": turning.spoken,
    "together": turning.together,
    "is_foreign": legible.is_foreign,
    "is_noise": legible.is_noise,
    "is_refused": lambda text: refusals.is_refused(text, _piece(text), text),
    "is_refused: a half": lambda text: refusals.is_refused("i left", _half(text), text),
    "is_spoken_to_listener": refusals.is_spoken_to_listener,
    "tells_something": refusals.tells_something,
    "pieces_of": lambda text: list(pieces.pieces_of(text, True)),
    "sayable": lambda text: clauses.sayable(_told(text), 0),
    "echo_of": lambda text: clauses.echo_of(_told(text), 0),
    "with_subject": lambda text: subjects.with_subject(text, [*turning.lower_words(text), "a", "b"], _piece(text)),
    "told_feeling": feelings.told_feeling,
    "topics_of": topics.topics_of,
    "talk_moment": lambda text: talk.talk_moment(_told(text)),
    "reflect": lambda text: reflect(_told(text), Perceived()),
    "reflect: what was said before": lambda text: reflect(_answer_to(text), Perceived()),
    "drop_brackets": cleaning.drop_brackets,
    "drop_speaker": cleaning.drop_speaker,
    "is_address": cleaning.is_address,
    "is_credit": cleaning.is_credit,
    "normalise": cleaning.normalise,
    "clean an utterance": cleaning.Cleaner().utterance,
    "split_sentences": subtitles.split_sentences,
    "strip_dashes": segmenter.strip_dashes,
    "read_subtitles": _subtitles,
}


def _seconds(read: Callable[[str], object], text: str) -> float:
    begun = process_time()
    read(text)
    return process_time() - begun


def _grows(read: Callable[[str], object], short: str, long: str) -> float:
    """How many times as long the long text takes; the least of up to three times of each."""
    if (longer := _seconds(read, long)) < NOTHING:
        return 0.0
    shorter = _seconds(read, short)
    for _ in range(2):
        if longer <= ALLOWED * shorter:
            break
        longer, shorter = min(longer, _seconds(read, long)), min(shorter, _seconds(read, short))
    return longer / max(shorter, 1e-4)


@pytest.fixture(scope="module")
def texts() -> list[tuple[str, str, str]]:
    short, long = _texts(SHORT), _texts(SHORT * TIMES)
    return [(name, short[name], long[name]) for name in short]


@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_length_alone(name: str, texts: list[tuple[str, str, str]]):
    read = READERS[name]
    read("I lost my job. It is hard.")
    gc.disable()
    try:
        slow = {unit: round(times, 1) for unit, short, long in texts if (times := _grows(read, short, long)) > ALLOWED}
    finally:
        gc.enable()
    assert not slow
