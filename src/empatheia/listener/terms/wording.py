"""Terms of a reply's words alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from empatheia.analysis.questions import is_candidate
from empatheia.giving_way import give_way
from empatheia.listener.terms.term import Case, RankingTerm, Row, Tools
from empatheia.metrics.word_forms import base_form, each_once
from empatheia.records.analysis import Inference
from empatheia.text.words import tokenize_words


class Coverage(RankingTerm):
    """Share of the target words that the reply takes up."""

    name, unit, default = "coverage", "share, 0 to 1", 1.0
    example = ("Where did you last see your dog?", "Where was that?")

    def values(self, rows: Sequence[Row], tools: Tools) -> list[float | None]:
        """See :class:`RankingTerm`."""
        return [coverage(row.text, _targets(row.case)) for row in rows]

    def missing(self, case: Case, tools: Tools) -> str:
        """See :class:`RankingTerm`."""
        return "" if _targets(case) else "there is no target word."


class Knowledge(RankingTerm):
    """Share of the inferred relations that the reply takes up."""

    name, unit, default = "knowledge", "share, 0 to 1", 0.5
    example = ("You must feel lonely without him.", "You must feel something.")

    def values(self, rows: Sequence[Row], tools: Tools) -> list[float | None]:
        """See :class:`RankingTerm`."""
        return [knowledge(row.text, row.case.newest.inferences) for row in rows]

    def missing(self, case: Case, tools: Tools) -> str:
        """See :class:`RankingTerm`."""
        has_any = any(inference.tails for inference in case.newest.inferences)
        return "" if has_any else "nothing was inferred."


class Diversity(RankingTerm):
    """Minus the share of the reply that the listener, or it itself, said before."""

    name, unit, default = "diversity", "share, -1 to 0", 1.0
    example = ("Where did he run?", "I am so sorry to hear that.")

    def values(self, rows: Sequence[Row], tools: Tools) -> list[float | None]:
        """See :class:`RankingTerm`."""
        out: list[float | None] = []
        for row in rows:
            give_way()
            turns = row.case.analysis.dialogue.turns
            out.append(diversity(row.text, [turn.text for turn in turns if turn.role == "listener"]))
        return out


class Length(RankingTerm):
    """Minus how far the reply is out of bounds, in shares of the bound."""

    name, unit, default = "length", "share, at most 0", 1.0
    example = ("I am sorry to hear that.", "Oh.")

    def values(self, rows: Sequence[Row], tools: Tools) -> list[float | None]:
        """See :class:`RankingTerm`."""
        return [length(row.text, tools.min_words, tools.max_words) for row in rows]


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


def words_of(text: str) -> list[str]:
    """Lower-case words, without punctuation."""
    return [word.text for word in tokenize_words(text, "recec") if any(c.isalnum() for c in word.text)]


def _targets(case: Case) -> Sequence[str]:
    return [span.of(case.analysis.dialogue.turns) for span in case.analysis.targets]


def _pairs(words: Sequence[str]) -> list[tuple[str, ...]]:
    return list(pairwise(words)) if len(words) > 1 else [(word,) for word in words]
