"""What candidates are ranked by: ``score = sum of weight * term`` over the terms that have what they need.

| term | value | range | needs |
|---|---|---|---|
| ``likelihood`` | mean log-probability of its pieces and end, by the scorer | nats, <= 0 | a local responder |
| ``listener`` | log belief in the true context after it, of a listener who hears it all | nats, <= 0 | distractors |
| ``coverage`` | share of the target words whose base form is in it | 0 to 1 | target words |
| ``knowledge`` | share of the inferred relations with a content word of theirs in it | 0 to 1 | inferences |
| ``intent`` | log-probability of the wanted intent given it | nats, <= 0 | model ``intent``, an intent |
| ``mechanism`` | expected level of EPITOME's mechanisms, mean over them | 0 to 2 | model ``mechanisms`` |
| ``side`` | log-probability that it feels as pleasant or unpleasant as the speaker does | nats, <= 0 | perception |
| ``information`` | what the conversation adds to the log-probability of a piece | nats | a local responder |
| ``contradiction`` | minus the share of its statements that say the opposite of the speaker's | -1 to 0 | nothing |
| ``diversity`` | minus the largest share of its word pairs that an earlier reply has | -1 to 0 | nothing |
| ``length`` | minus the share by which it is shorter or longer than the bounds | <= 0 | nothing |

A term without what it needs is None, counts 0, and ``missing`` says why. Values are rounded to four decimals, so that a
batch's last bits change no order. Ties go to the candidate that was written first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from empatheia.analysis import Inference, Mechanism, TurnLabels
from empatheia.dialogue import Dialogue, Turn
from empatheia.metrics.word_forms import base_form, each_once
from empatheia.text.words import tokenize_words
from empatheia.understanding import Component
from empatheia.understanding.words.questions import is_candidate

TERMS = (
    "likelihood",
    "listener",
    "coverage",
    "knowledge",
    "intent",
    "mechanism",
    "side",
    "information",
    "contradiction",
    "diversity",
    "length",
)
DECIMALS = 4
_LEAST = 1e-12
_STATEMENT = re.compile(
    r"[.!;:,\n\u2014]+|\b(?:and|but|because|so|when|while|if|after|before|until|although|though|which|who)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[^.!?\n]*\?")
_NEGATION = re.compile(
    r"\b(?:not|never|no|nobody|nothing|none|nor|neither|without|cannot)\b|n['\u2019\u02bc]t\b", re.IGNORECASE
)
_SHARED, _SHARE = 2, 0.6  # content words two statements have in common, at least so many and that share of the reply's


def coverage(reply: str, targets: Sequence[str]) -> float | None:
    """Share of the target words a reply takes up, in any form; None without targets.

    >>> coverage("I am sorry you lost your dogs.", ["dog", "exam"])
    0.5
    """
    if not targets:
        return None
    said = {base_form(word) for word in words_of(reply)}
    wanted = each_once(targets)
    return sum(base_form(target) in said for target in wanted) / len(wanted)


def knowledge(reply: str, inferences: Sequence[Inference]) -> float | None:
    """Share of the relations whose tails have a content word, in any form, that the reply has; None without any.

    >>> found = [Inference(0, "xReact", ("lonely", "sad")), Inference(0, "xWant", ("to find the dog",))]
    >>> knowledge("You must have felt so lonely.", found)
    0.5
    """
    wanted = [
        {base_form(word) for tail in one.tails for word in words_of(tail) if is_candidate(word)} for one in inferences
    ]
    wanted = [words for words in wanted if words]
    if not wanted:
        return None
    said = {base_form(word) for word in words_of(reply) if is_candidate(word)}
    return sum(not said.isdisjoint(words) for words in wanted) / len(wanted)


def diversity(reply: str, earlier: Iterable[str]) -> float:
    """Minus the largest share of a reply's word pairs that one earlier reply has, or that it has said itself before.

    Pairs are words where the reply is one word long.

    >>> diversity("I am so sorry.", ["That is great!", "I am so happy."])
    -0.6666666666666666
    >>> diversity("I am so sorry. I am so sorry.", [])
    -0.42857142857142855
    """
    own = _pairs(words_of(reply))
    if not own:
        return 0.0
    again = [sum(pair in said for pair in own) for said in map(_pairs, map(words_of, earlier))]
    return -max(len(own) - len(set(own)), *again, 0) / len(own) + 0.0


def length(reply: str, shortest: int, longest: int) -> float:
    """0 within the bounds, else minus the share by which they are missed.

    >>> length("Oh no.", 4, 40), length("Oh no, I am sorry.", 4, 40)
    (-0.5, 0.0)
    """
    n = len(words_of(reply))
    if n < shortest:
        return -(shortest - n) / shortest
    return -(n - longest) / longest if n > longest else 0.0


def intents(
    component: Component[TurnLabels], turns: Sequence[Turn], replies: Sequence[str], wanted: Sequence[str]
) -> list[float]:
    """Log-probability of the wanted intent given each reply.

    Args:
        component: Of part ``intent``.
        turns: The speaker turn each reply answers.
        replies: Texts, none empty.
        wanted: One of the 41 labels each.

    Returns:
        Nats.
    """
    asked = [Dialogue("", (turn, Turn("listener", reply))) for turn, reply in zip(turns, replies, strict=True)]
    found = [row[-1].probabilities for row in component.annotate(asked)]
    return [math.log(max(own.get(label, 0.0), _LEAST)) for own, label in zip(found, wanted, strict=True)]


def mechanisms(component: Component[Mechanism], turns: Sequence[Turn], replies: Sequence[str]) -> list[float]:
    """Expected level of each reply, mean over the mechanisms the model knows.

    Args:
        component: Of part ``mechanisms``.
        turns: The speaker turn each reply answers.
        replies: Texts, none empty.
    """
    asked = [Dialogue("", (turn, Turn("listener", reply))) for turn, reply in zip(turns, replies, strict=True)]
    out = []
    for row in component.annotate(asked):
        levels = [sum(level * p for level, p in enumerate(record.probabilities)) for record in row if record.turn == 1]
        out.append(sum(levels) / max(1, len(levels)))
    return out


def side(felt: Mapping[str, float], said: Mapping[str, float]) -> float | None:
    """How well the side of a reply fits the side of what was said; None where one of them is unknown.

    Args:
        felt: Probability of pleasant and unpleasant (mixed counts half to each) at the newest speaker turn.
        said: Likewise of the reply.

    Returns:
        Log of the probability that both are on the same side, nats, at most 0.

    >>> round(side({"pleasant": 0.9, "unpleasant": 0.1}, {"pleasant": 0.2, "unpleasant": 0.8}), 3)
    -1.347
    """
    if not felt or not said:
        return None
    one, other = _pleasant(felt), _pleasant(said)
    return math.log(max(one * other + (1 - one) * (1 - other), _LEAST))


def information(given: float, alone: float) -> float:
    """Pointwise mutual information of reply and conversation for each piece: what fits everything gains nothing.

    After the maximum mutual information objective of Li et al., NAACL 2016 ("A diversity-promoting objective function
    for neural conversation models").

    Args:
        given: Mean log-probability of a piece after the conversation, nats.
        alone: Likewise after a greeting.

    >>> information(-2.0, -3.5)
    1.5
    """
    return given - alone


def contradiction(reply: str, turns: Sequence[Turn]) -> float:
    """Minus the share of a reply's statements that say of the same thing the opposite of what the speaker said.

    Two statements are of the same thing if they have two content words, and most of the reply's, in common, in any
    form; they are opposite if one alone is negated. Questions contradict nothing.

    Args:
        reply: Of the listener.
        turns: The conversation; the speaker's are read.

    >>> contradiction("I am glad you passed your test!", [Turn("speaker", "I have not passed my test.")])
    -1.0
    >>> contradiction("So you did not pass the test.", [Turn("speaker", "I have not passed my test.")])
    0.0
    """
    said = [found for turn in turns if turn.role == "speaker" for found in _statements(turn.text)]
    own = _statements(_QUESTION.sub(" ", reply))
    wrong = 0
    for words, is_negated in own:
        alike = {denied for others, denied in said if _of_the_same(words, others)}
        wrong += bool(alike) and is_negated not in alike
    return -wrong / len(own) if wrong else 0.0


def _statements(text: str) -> list[tuple[set[str], bool]]:
    """Base forms of the content words of each statement that has one, and whether it is negated."""
    out = []
    for part in _STATEMENT.split(text):
        words = {base_form(word) for word in words_of(part) if is_candidate(word) and not _NEGATION.search(word)}
        if words:
            out.append((words, _NEGATION.search(part) is not None))
    return out


def _of_the_same(words: set[str], others: set[str]) -> bool:
    shared = len(words & others)
    return shared >= _SHARED and shared >= _SHARE * len(words)


def _pleasant(sides: Mapping[str, float]) -> float:
    return sides["pleasant"] + sides.get("mixed", 0.0) / 2


def total(terms: Mapping[str, float | None], weights: Mapping[str, float]) -> float:
    """The score: terms that are None count nothing."""
    return round(sum(weights[name] * value for name, value in terms.items() if value is not None), DECIMALS)


def rounded(value: float | None) -> float | None:
    """To four decimals, without a negative zero."""
    return None if value is None else round(value, DECIMALS) + 0.0


def words_of(text: str) -> list[str]:
    """Lower-case words, without punctuation."""
    return [word.text for word in tokenize_words(text, "recec") if any(c.isalnum() for c in word.text)]


def _pairs(words: Sequence[str]) -> list[tuple[str, ...]]:
    return list(pairwise(words)) if len(words) > 1 else [(word,) for word in words]
