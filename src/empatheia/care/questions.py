"""The listener's own question about danger, and what a short answer to it means.

``data/questions.yaml`` holds how such questions and answers are worded.

>>> read_answer("Are you thinking of suicide?", "sometimes").level
'crisis'
>>> read_answer("Are you safe?", "no").level
'crisis'
>>> read_answer("Do you want to die?", "no no, the latin homework").is_denial
True
>>> read_answer("How was the film?", "yes") is None
True
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from empatheia.care.normalising import tokens_of
from empatheia.records.danger import Kind, Level
from empatheia.settings import read_yaml

_QUESTIONS = read_yaml(Path(__file__).parent / "data" / "questions.yaml")
SHORT = 14
"""Words of an answer that says neither yes nor no and is read as one; longer ones speak for themselves."""
LONGEST = 400
"""Characters of a question, from its end, and of an answer, from its beginning, that are read."""


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    """One pattern for all; ``_`` = up to two words."""
    joined = "|".join(pattern.replace(" _ ", r" (?:\w+ ){0,2}") for pattern in patterns)
    return re.compile(f" (?:{joined})(?= |$)")


def _first(pattern: str) -> re.Pattern[str]:
    return re.compile(f"^ (?:_laugh_ |oh |um |uh |well |so |i mean |and |ok |okay )?{pattern}(?= |$)")


_ABOUT: dict[str, re.Pattern[str]] = {
    name: _any_of(_QUESTIONS[name]) for name in ("safe", "life", "done", "other", "hurt", "body", "load")
}
_KINDS: dict[str, Kind] = {
    "safe": "ideation", "life": "ideation", "done": "emergency", "other": "third_party", "hurt": "self_injury",
    "body": "eating_disorder", "load": "hopelessness",
}  # fmt: skip
_BY_SOMEBODY = re.compile(r" (?:you|him|her|them|he|she|they)$| of \w+$")
_OF_SOMEBODY = re.compile(r" (?:is|are|does|do) (?:he|she|they) ")
STATED = ("life", "done", "hurt")
"""Topics that a yes answers where the listener only states them."""
_OF_LISTENED = re.compile(r" (?:you|your)(?: (?!not |never |he |she |they |if |please |to not )\S+){0,8} $")
_TOLD = re.compile(
    r"^(?: (?:so|and|ok|okay|well|then|right|yes))*"
    r"(?: (?:you (?:just |also |have |had )?(?:told me|tell me|said|say|mentioned|wrote|mean)"
    r"|(?:it|that) (?:sounds|seems) (?:to me )?(?:like|as if|as though)|i (?:hear|heard|understand|see))(?: that)?)?"
    r"(?=(?: (?:tonight|today|tomorrow|now|later|soon))? (?:you|your) )"
)
"""How a sentence begins that tells the speaker of themselves, up to "you"."""
_TURNED = {"you": "i", "your": "my", "yours": "mine", "yourself": "myself"}
_SIGNS = {
    "yes": re.compile(
        "(?:[\U0001f44d\U0001f44c\u2705\u2714\u2611\U0001f4af\U0001f197\U0001fae1][\U0001f3fb-\U0001f3ff\ufe0f]*)+"
    ),
    "no": re.compile("(?:[\U0001f44e\u274c\u274e\U0001f6ab\U0001f645][\U0001f3fb-\U0001f3ff\ufe0f]*)+"),
}
"""Emoji that say yes and no."""
_SAFE = re.compile(
    r" (?:yes|yeah|yep|yup|sure|of course|i am (?:safe|ok|okay|fine)|i promise|aye|home|all good)(?= |$)"
)
_YES, _NO = _first(_QUESTIONS["says_yes"]), _first(_QUESTIONS["says_no"])
_NO_BUT = re.compile(f" {_QUESTIONS['no_but']}(?= |$)")
_PLAIN = re.compile(f" {_QUESTIONS['plain']}(?= |$)")


@dataclass(frozen=True, slots=True)
class Answer:
    """What an answer to a question about danger means.

    Attributes:
        level: How grave.
        kind: Of danger.
        reason: In words.
        is_denial: It is a plain no.
    """

    level: Level
    kind: Kind
    reason: str
    is_denial: bool = False


def read_answer(question: str, answer: str) -> Answer | None:
    """What an answer means; None where the listener did not ask for danger, or the answer speaks of something else.

    Args:
        question: The listener's turn.
        answer: The speaker's turn after it.
    """
    topic, kind = _asked_about(question)
    if not topic or kind is None:
        return None
    said = _joined(_without_signs(answer[:LONGEST]))
    n_words = len(said.split())
    is_no = bool(_NO.search(said)) and (not _NO_BUT.search(said) or bool(_PLAIN.search(said)))
    if topic == "safe" and not (is_no and _PLAIN.search(said)):
        return _of_safety(said, is_no, n_words, kind)
    if is_no:
        return Answer("none", kind, "", is_denial=True)
    if _YES.search(said):
        level: Level = "crisis" if topic in ("life", "done") else "concern"
        return Answer(level, kind, "answers the question about danger with yes")
    if topic in ("life", "done", "other") and n_words <= SHORT and answer.strip() and "?" not in answer:
        return Answer("concern", kind, "does not answer the question about danger with no")
    return None


def said_with_yes(told: str, answer: str) -> str:
    """What a yes makes the speaker say of themselves, in normalised words: the last sentence that tells it of them.

    Args:
        told: The listener's turn; a question gives "".
        answer: The speaker's turn after it; anything but a yes gives "".

    >>> said_with_yes("So you will take your pills.", "yes")
    'i will take my pills'
    """
    said = _joined(_without_signs(answer[:LONGEST]))
    if "?" in told or _NO.search(said) or not _YES.search(said):
        return ""
    for joined in reversed(_sentences(told[-LONGEST:])):
        if (found := _TOLD.search(joined)) is not None:
            words = joined[found.end() :].replace(" you are ", " i am ").replace(" you were ", " i was ").split()
            return " ".join(_TURNED.get(word, word) for word in words)
    return ""


def _without_signs(answer: str) -> str:
    """An answer with the words that thumbs and ticks stand for."""
    for word, sign in _SIGNS.items():
        answer = sign.sub(f" {word} ", answer)
    return answer


def _asked_about(question: str) -> tuple[str, Kind | None]:
    """What a turn asks about, a key of ``_ABOUT``, and of which kind the danger is; "" and None if it does not ask."""
    asked = _joined(question[-LONGEST:])
    if not ("?" in question or asked.startswith((" i asked", " tell me", " last time"))):
        return _stated(question[-LONGEST:])
    topic = next((name for name, pattern in _ABOUT.items() if pattern.search(asked)), "")
    if topic == "hurt" and _BY_SOMEBODY.search(asked):
        return topic, "abuse"
    if topic == "safe" and _OF_SOMEBODY.search(asked):
        return topic, "third_party"
    return topic, _KINDS.get(topic)


def _stated(told: str) -> tuple[str, Kind | None]:
    """The same of a turn that asks nothing but tells the speaker what they said or plan: "You want to die."."""
    for joined in reversed(_sentences(told)):
        for topic in STATED:
            found = _ABOUT[topic].search(joined)
            if found is not None and _OF_LISTENED.search(joined[: found.start()] + " "):
                return topic, _KINDS[topic]
    return "", None


def _of_safety(said: str, is_no: bool, n_words: int, kind: Kind) -> Answer | None:
    if _SAFE.search(said):
        return None
    if is_no or _NO.search(said):
        return Answer("crisis", kind, "answers the question about being safe with no")
    if 0 < n_words <= SHORT:
        return Answer("concern", kind, "does not say that they are safe")
    return None


def _joined(text: str) -> str:
    return "".join(" " + token.text for token in tokens_of(text))


def _sentences(text: str) -> list[str]:
    """Its sentences, each as " a b c"."""
    sentences: dict[int, list[str]] = {}
    for token in tokens_of(text):
        sentences.setdefault(token.sentence, []).append(token.text)
    return ["".join(" " + word for word in words) for words in sentences.values()]
