"""Every function that reads text takes time in proportion to its length, on texts made to be slow.

Processor time of one run is compared: a text four times as long may take up to nine times as long (four is linear,
sixteen quadratic). What looks slow is measured again, so that a busy machine fails nothing; of each text then a few
characters are left out, so that no cache answers.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from functools import cache
from time import process_time

import pytest

from empatheia.care import Detector
from empatheia.care.earlier_turns import is_safe_now
from empatheia.care.guard import _whole_sentences
from empatheia.care.normalising import tokens_of
from empatheia.care.questions import read_answer
from empatheia.care.reply_check import asks_whether_human, check_reply, without_claims
from empatheia.records.dialogue import Turn
from empatheia.text.noise import straight, unshouted
from empatheia.text.prompts import read_reply
from empatheia.text.readable import readable
from empatheia.text.uncertainty import doubts
from empatheia.text.words import detokenize, tokenize_words
from empatheia.voices.reflection import clauses, feelings, legible, pieces, refusals, subjects, talk, topics, turning
from empatheia.voices.reflection.compose import reflect
from empatheia.voices.reflection.perceived import Perceived
from empatheia_people.curation import cleaning, segmenter, subtitles

SHORT, TIMES, ALLOWED = 1500, 4, 9
SHORTER = {
    **dict.fromkeys(("reflect", "reflect: what was said before", "topics_of", "talk_moment"), 500),
    **dict.fromkeys(("assess", "check_reply"), 1000),
}
"""Short texts of readers that read a few thousand characters at most, where longer ones hide a square, or are dear."""
DEAR = ("reflect", "topics_of")
FEW = (
    *("I want to die. ", "I am not ", "and I ", "my mum and ", "so happy for me ", "when ", "lol ", "A: ", "a.b.c."),
    *(
        "4",
        "kill",
        "\u00df",
        "...",
        ", ",
        " - ",
        '\u201ca"',
        "'",
        "<",
        "\n",
        " ",
        "a   run b",
        "a , run b",
        "nested ()",
    ),
)
"""Texts of the two that are dear whatever the size: of each sort some."""
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


@cache
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


def _without(text: str, n: int) -> str:
    """A text without ``n`` characters in its middle."""
    middle = len(text) // 2
    return text[:middle] + text[middle + n :]


def _grows(read: Callable[[str], object], short: str, long: str) -> float:
    """How many times as long the long text takes; the least of up to three times of each."""
    if (longer := _seconds(read, long)) < NOTHING:
        return 0.0
    shorter = _seconds(read, short)
    for look in (1, 2):
        if longer <= ALLOWED * shorter:
            break
        longer = min(longer, _seconds(read, _without(long, look)))
        shorter = min(shorter, _seconds(read, _without(short, look)))
    return longer / max(shorter, 1e-4)


def _too_slow(name: str, read: Callable[[str], object]) -> dict[str, float]:
    """Texts on which a reader is not linear, with how many times as long the long one takes."""
    length = SHORTER.get(name, SHORT)
    short, long, units = _texts(length), _texts(length * TIMES), FEW if name in DEAR else _texts(length)
    read("I lost my job. It is hard.")
    gc.disable()
    try:
        return {unit: round(times, 1) for unit in units if (times := _grows(read, short[unit], long[unit])) > ALLOWED}
    finally:
        gc.enable()


@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_length_alone(name: str):
    assert not _too_slow(name, READERS[name])


_FROM_EVERY_LETTER = re.compile(r"\w+(?<!th)(?<!morn)(?<!even)(?<!dur)ing me\b")


@cache
def _searched(text: str) -> object:
    return _FROM_EVERY_LETTER.search(text)


def test_quadratic_time_is_seen():
    """A search that begins anew at every letter (``reflect`` had it), behind a cache."""
    assert "4" in _too_slow("reflect", lambda text: (READERS["reflect"](text), _searched(text)))
