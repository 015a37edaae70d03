"""Finds what of a turn can be said back: cuts it into clauses, leaves out what is not safe, turns the rest to "you"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from empatheia.records.dialogue import Span, Turn
from empatheia.voices.reflection import patterns
from empatheia.voices.reflection.legible import is_foreign
from empatheia.voices.reflection.lexicon import lexicon
from empatheia.voices.reflection.pieces import LONGEST_READ, Piece, pieces_of
from empatheia.voices.reflection.refusals import is_refused, is_spoken_to_listener
from empatheia.voices.reflection.subjects import Kind, with_subject
from empatheia.voices.reflection.turning import LONGEST_CLAUSE, clean, lower_words, spoken, turn_person

LONGEST, SHORTEST, LONGEST_FRAGMENT = 16, 2, 8
_FEW = 12  # words of a turn so short that a fragment is all there is
_MOST_ECHOED = 3  # sentences
_NEAR = 800  # characters before a clause that are looked through for a person
_EARLIER = 8  # turns
_OF_I = re.compile(r"\b(?:i|we)\b", re.IGNORECASE)
_NAME = re.compile(r"[a-z,] [A-Z][a-z]{2,}")


@dataclass(frozen=True, slots=True)
class Said:
    """A part of a turn, ready to be said back.

    Attributes:
        text: Turned to "you"; no final mark; the first letter small unless it is a name.
        kind: ``clause`` can stand inside a sentence; ``fragment`` only by itself.
        score: Higher = carries more of the feeling.
        feeling: Whether it names a feeling itself.
        excited: Whether it ended with an exclamation mark.
        turn: Index of the turn it comes from.
        sure: Whether this is what the feeling is about: a cause phrase lies in it, or it is all that was said.
    """

    text: str
    kind: Kind
    score: float
    feeling: bool
    excited: bool
    turn: int
    sure: bool = False


def sayable(turns: Sequence[Turn], index: int, causes: Sequence[Span] = (), words: Sequence[Span] = ()) -> list[Said]:
    """What of turn number ``index`` can be said back, best first.

    Args:
        turns: The conversation; earlier turns tell whom "she" stands for.
        index: The turn to say something back of.
        causes: Cause phrases with offsets into ``turns``.
        words: Words with a cause score each.
    """
    text = turns[index].text
    if is_foreign(text) or lexicon().self_harm.search(text):
        return []
    causes = [span for span in causes if span.turn == index]
    words = [span for span in words if span.turn == index]
    found = list(_found(turns, index, causes, words))
    if len(text.split()) <= _FEW and len(found) > 1 and all(said.kind == "fragment" for said in found):
        return [_joined(found[0], found[1])]
    if causes and not any(said.sure or re.search(r"\byou", said.text) for said in found):
        return []
    found.sort(key=lambda said: -said.score)
    return found


def echo_of(turns: Sequence[Turn], index: int, causes: Sequence[Span] = (), fewest: int = 3) -> str:
    """What a turn said, sentence by sentence: "Him again. At your door." for "him again. at my door"; or "".

    For turns of which no clause can be said back: an echo needs no grammar but the right person. Of a turn that is not
    quite so short only the sentence that holds the first cause phrase is echoed.

    Args:
        turns: The conversation.
        index: The turn to echo.
        causes: Cause phrases with offsets into ``turns``, best first.
        fewest: Words that it must have.
    """
    text = turns[index].text
    if len(text) > LONGEST_CLAUSE:
        return ""
    if is_foreign(text) or lexicon().self_harm.search(text) or patterns.QUOTED.search(text):
        return ""
    said = [_echoed(piece) for piece in _to_echo(text, index, causes)]
    if not all(said) or not fewest <= sum(len(part.split()) for part in said) <= _FEW:
        return ""
    return ". ".join(part[0].upper() + part[1:] for part in said)


def _to_echo(text: str, index: int, causes: Sequence[Span]) -> list[Piece]:
    """The sentences of a short turn; of a longer one that with the first cause; none of a long one."""
    n_words = len(lower_words(text))
    if n_words > LONGEST:
        return []
    pieces = [piece for piece in pieces_of(text, index == 0) if piece.whole]
    if n_words <= _FEW and len(pieces) <= _MOST_ECHOED:
        return pieces
    first = [span for span in causes if span.turn == index][:1]
    return [piece for piece in pieces if _covers_cause(piece, first)][:1]


def _echoed(piece: Piece) -> str:
    """One sentence turned to "you"; "" where it asks, speaks to the listener or must not come from another's mouth.

    A sentence with "I" was read as a clause; if that was refused it is not echoed either ("You should be happy").
    """
    text = _stripped(piece.text)
    if not text or "?" in piece.mark or _OF_I.search(text) or is_spoken_to_listener(text):
        return ""
    turned = turn_person(text)
    return "" if turned is None or patterns.THING.fullmatch(turned) else _first_letter(spoken(turned))


def _found(turns: Sequence[Turn], index: int, causes: Sequence[Span], words: Sequence[Span]) -> Iterator[Said]:
    """What of the pieces of a turn can be said back, in reading order."""
    text = turns[index].text
    spoken = ". ".join(turn.text for turn in turns[max(0, index - _EARLIER) : index] if turn.role == "speaker")
    earlier = spoken[-LONGEST_READ:]
    quoted = [match.span() for match in patterns.QUOTED.finditer(text)] if len(text) <= LONGEST_READ else []
    is_short = len(text.split()) <= _FEW
    for piece in pieces_of(text, index == 0, (*causes, *words)):
        if any(start < piece.end and end > piece.start for start, end in quoted):
            continue
        said = _said(piece, (earlier + ". " + text[max(0, piece.start - _NEAR) : piece.start])[-_NEAR:], index)
        if said is None:
            continue
        said = _scored(said, piece, causes, words)
        is_doubted = not said.sure and piece.next.lstrip(" ,").startswith("but")
        if not is_doubted and (said.kind == "clause" or is_short or _covers_cause(piece, causes)):
            yield said


def _joined(first: Said, second: Said) -> Said:
    """Two fragments that were all that was said: "New lump. Same side as your mum's."."""
    text = f"{first.text}. {second.text[0].upper()}{second.text[1:]}"
    return replace(first, text=text, score=first.score + second.score, sure=True)


def _said(piece: Piece, before: str, turn: int) -> Said | None:
    """The piece turned to "you"; None if it is not said back."""
    text = piece.text
    if "?" in piece.mark or text.count("(") != text.count(")") or patterns.SPEECH.search(text):
        return None
    text = _stripped(re.sub(r"\([^)]*\)", " ", text))
    words = lower_words(text)
    if not SHORTEST <= len(words) <= LONGEST or is_refused(text, piece, before):
        return None
    subject = with_subject(text, words, piece)
    if subject is None:
        return None
    text, kind = subject
    if kind == "fragment" and (len(words) > LONGEST_FRAGMENT or not piece.whole):
        return None
    turned = turn_person(_referred(text, before))
    if turned is None or not SHORTEST <= len(turned.split()) <= LONGEST + 1:
        return None
    feeling = _names_feeling(turned)
    if feeling and not piece.whole and len(words) < 6:
        return None
    return Said(_first_letter(spoken(turned)), kind, 0.0, feeling, "!" in piece.mark, turn)


def _stripped(text: str) -> str:
    """Cleaned, without words that only lead in or fade out."""
    text = clean(text)
    for _ in range(4):
        led = patterns.LEAD.match(text)
        shorter = patterns.COORDINATION.sub("", text[led.end() :] if led else text)
        shorter = patterns.TAIL.sub("", shorter).strip(" ,;:-")
        if shorter == text:
            break
        text = shorter
    return text


def _referred(text: str, before: str) -> str:
    """Makes "she starts chemo" after "mum is ill" into "mum starts chemo", if nobody else may be meant."""
    match = re.match(r"(he|she)(?='s\b|'d\b|'ll\b|\s+(?!and\b|or\b))", text, re.IGNORECASE)
    if not match or re.search(r"in[\s-]+law|[\s-]step|\bstep", before, re.IGNORECASE):
        return text
    person = _only_person(before, "feminine" if match[1].lower() == "she" else "masculine")
    return f"my {person}{text[match.end() :]}" if person and _is_speakers(person, before) else text


def _only_person(before: str, group: str) -> str:
    """The one person of a group who was spoken of; "" if there are others, too, or a name."""
    lists = lexicon().lists
    words = re.findall(r"[a-z']+", before.lower().replace("’", "'"))
    persons = {word.removesuffix("'s") for word in words} & lists[group]
    others = lists["people"] - {"everyone", "everybody"}
    if len(persons) != 1 or _NAME.search(before) or any(word in others for word in words):
        return ""
    return persons.pop()


def _is_speakers(person: str, before: str) -> bool:
    """Whether "sister" was the speaker's own: "my sister", or "Mum" where it stands as a name."""
    if re.search(rf"(?:\b(?:his|her|their)|'s|s')\s+{person}\b", before, re.IGNORECASE):
        return False
    if re.search(rf"\b(?:my|our)\s+{person}\b", before, re.IGNORECASE):
        return True
    opens = rf"(?:\A|[.!?,]\s+|\band\s+){person}\b"
    return person in lexicon().lists["kin_names"] and bool(re.search(opens, before, re.IGNORECASE))


def _names_feeling(text: str) -> bool:
    return bool(
        re.search(r"\byou(?:'re|\s+are|\s+were|\s+feel|\s+felt|'ve\s+been|\s+got)\b", text)
        and any(word in lexicon().lists["feelings"] for word in re.findall(r"[a-z]+", text.lower()))
    )


def _first_letter(text: str) -> str:
    """A small first letter, unless the word is a name, an acronym or unknown."""
    known = lexicon()
    first = re.match(r"[A-Za-z']+", text)
    if not first or (len(first[0]) > 1 and first[0].isupper()):
        return text
    low = first[0].lower()
    if re.match(r"\w+\.?\s+[A-Z][a-z]", text) and low in known.lists["people"] | known.lists["kin_names"]:
        return text  # "Uncle Sam"
    is_common = known.is_common(low) or low in known.lists["relations"] or low in known.lists["small_first"]
    return text[0].lower() + text[1:] if is_common and low not in known.names else text


def _covers_cause(piece: Piece, causes: Sequence[Span]) -> bool:
    """Whether most of a cause phrase lies within the piece."""
    return any(2 * (min(c.end, piece.end) - max(c.start, piece.start)) > c.end - c.start for c in causes[:3])


def _n_words(said: Said) -> int:
    return len(said.text.split())


def _ends_referring(said: Said) -> bool:
    return bool(patterns.REFERRING.search(said.text))


_WEIGHTS: tuple[tuple[float, Callable[[Said, Piece], float]], ...] = (
    (-0.7, lambda said, piece: bool(re.match(r"[\s,]*but\b", piece.next))),
    (-0.3, lambda said, piece: bool(re.match(r"\w+\s+(?:said|says|asked|told|thinks)\b", said.text))),
    (0.3, lambda said, piece: bool(re.search(r"\byour?\b|\byou'", said.text))),
    (-0.5, lambda said, piece: said.feeling),
    (-0.4, lambda said, piece: said.kind == "fragment"),
    (-0.12, lambda said, piece: max(0, _n_words(said) - 10)),
    (-0.3, lambda said, piece: _n_words(said) < 4),
    (-0.6, lambda said, piece: _n_words(said) < 4 and _ends_referring(said)),
    (-0.4, lambda said, piece: _ends_referring(said)),
    (0.2, lambda said, piece: piece.whole),
    (-0.5, lambda said, piece: not piece.whole and not piece.lead and _n_words(said) < 5),
)
"""What the words themselves add to the score, and how many times."""


def _scored(said: Said, piece: Piece, causes: Sequence[Span], words: Sequence[Span]) -> Said:
    """With the score of the causes it covers, and a little for what the words themselves tell."""
    score = _cause_score(piece, causes, words)
    for weight, times in _WEIGHTS:
        score += weight * times(said, piece)
    sure = _covers_cause(piece, causes[:1]) or (piece.whole and piece.alone)
    return replace(said, score=score, sure=sure)


def _cause_score(piece: Piece, causes: Sequence[Span], words: Sequence[Span]) -> float:
    """What the cause words within a piece, and its share of the cause phrases, are worth."""
    score = 0.0
    for span in words:
        if span.start >= piece.start and span.end <= piece.end:
            score += max(0.0, (span.score or 0.0) - 0.15)
    for rank, span in enumerate(causes):
        overlap = min(span.end, piece.end) - max(span.start, piece.start)
        if overlap > 0:
            worth = 1.0 if span.score is None else span.score
            score += worth * overlap / max(1, span.end - span.start) * (3 if not rank else 2)
    return score
