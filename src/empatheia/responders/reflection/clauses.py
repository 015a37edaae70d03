"""Finds what of a turn can be said back: cuts it into clauses, leaves out what is not safe, turns the rest to "you"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from empatheia.dialogue import Span, Turn
from empatheia.responders.reflection import patterns
from empatheia.responders.reflection.lexicon import lexicon
from empatheia.responders.reflection.turning import clean, is_word, together, turn_person, words_of

Kind = Literal["clause", "fragment"]
LONGEST, SHORTEST, LONGEST_FRAGMENT = 16, 2, 8
_FEW = 12  # words of a turn so short that a fragment is all there is
_NEAR = 800  # characters before a clause that are looked through for a person
_MOST_SENTENCES = 24
_LONGEST_READ = 6000  # characters of a turn; the last ones count

_CONTENTLESS = lexicon().lists["contentless"]
_DROPPED = lexicon().lists["dropped"]
_WITH_OBJECT = lexicon().lists["with_object"]
_OBJECT = lexicon().lists["object"]
_NOUN_LIKE = lexicon().lists["noun_like"]


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


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence or a part of one; ``lead`` is what stands before it in its sentence, ``next`` what follows."""

    text: str
    start: int
    end: int
    mark: str
    whole: bool
    first: bool
    lead: str = ""
    next: str = ""
    alone: bool = False


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
    earlier = ". ".join(turn.text for turn in turns[max(0, index - 8) : index] if turn.role == "speaker")[
        -_LONGEST_READ:
    ]
    causes = [span for span in causes if span.turn == index]
    words = [span for span in words if span.turn == index]
    found: list[Said] = []
    quoted = (
        [match.span() for match in patterns.QUOTED.finditer(text[-_LONGEST_READ:])]
        if len(text) <= _LONGEST_READ
        else []
    )
    for piece in _pieces(text, index == 0, (*causes, *words)):
        if any(start < piece.end and end > piece.start for start, end in quoted):
            continue
        said = _said(piece, (earlier + ". " + text[max(0, piece.start - _NEAR) : piece.start])[-_NEAR:], index)
        if said is not None:
            scored = _scored(said, piece, causes, words)
            if piece.next.lstrip(" ,").startswith("but") and not scored.sure:
                continue
            if said.kind == "clause" or len(text.split()) <= _FEW or _covers_cause(piece, causes):
                found.append(scored)
    if 1 < len(found) == sum(said.kind == "fragment" for said in found) and len(text.split()) <= _FEW:
        first, second = found[:2]  # "New lump. Same side as your mum's."
        joined = f"{first.text}. {second.text[0].upper()}{second.text[1:]}"
        return [replace(first, text=joined, score=first.score + second.score, sure=True)]
    if causes and not any(said.sure or re.search(r"\byou", said.text) for said in found):
        return []
    found.sort(key=lambda said: -said.score)
    return found


def is_foreign(text: str) -> bool:
    """Whether a text is hardly English, by its commonest words and its letters."""
    known = lexicon()
    letters = [c for c in text if c.isalpha()]
    if not letters:
        return False
    if sum(ord(c) > 0x24F for c in letters) > 0.3 * len(letters):
        return True
    low = [token.lower() for token in words_of(text[:_LONGEST_READ]) if is_word(token)]
    if len(low) < 2:
        return False
    foreign = sum(word in known.lists["foreign"] for word in low)
    english = sum(word in known.lists["english"] for word in low)
    return foreign > 1.2 * english and (foreign > 1 or len(low) <= 4) and foreign >= 0.2 * len(low)


def _pieces(text: str, first: bool, spans: Sequence[Span] = ()) -> Iterator[_Piece]:
    """The sentences of a text, and what is left of long ones where they may be cut; ``first`` in the conversation."""
    offset = max(0, len(text) - _LONGEST_READ)
    if offset:
        end = patterns.END.search(text, offset)
        offset = end.end() if end else text.find(" ", offset) + 1 or offset
    sentences = [part for part in _sentences(text, offset) if re.search(r"\w", text[part[0] : part[1]])]
    alone = len(sentences) == 1
    if len(sentences) > _MOST_SENTENCES:  # those that carry the cause, or else the last
        heat = [sum((s.score or 0.5) for s in spans if a <= s.start < b) for a, b, _ in sentences]
        kept = sorted(range(len(sentences)), key=lambda i: (-heat[i], -i))[:_MOST_SENTENCES]
        sentences, first = [sentences[i] for i in sorted(kept)], first and 0 in kept
    for start, end, mark in sentences:
        sentence = text[start:end]
        yield _Piece(sentence, start, end, mark, True, first, alone=alone)
        cuts = [match.span() for match in patterns.CUT.finditer(sentence) if _starts_clause(sentence[match.end() :])][
            :12
        ]
        if cuts:
            edges = [0, *(b for _, b in cuts)], [*(a for a, _ in cuts), len(sentence)]
            for i, a in enumerate(edges[0]):
                for j in range(i, min(i + 3, len(edges[1]))):
                    b = edges[1][j]
                    if (i, j) != (0, len(cuts)):
                        last = j == len(cuts)
                        yield _Piece(
                            sentence[a:b],
                            start + a,
                            start + b,
                            mark if last or "?" in mark else ".",
                            False,
                            first and i == 0,
                            sentence[:a],
                            sentence[b : b + 12].lower(),
                        )
        first = False


def _starts_clause(rest: str) -> bool:
    """Whether a clause begins here, no further thing of a list: "and my boss laughed", not "and the pillow"."""
    words = [token.lower().replace("’", "'") for token in words_of(rest[:120].split(",")[0]) if is_word(token)][:10]
    if not words or words[0] not in _ARTICLES:
        return True
    return bool(_finite_place(words))


def _sentences(text: str, offset: int) -> Iterator[tuple[int, int, str]]:
    start = offset
    for match in patterns.END.finditer(text, offset):
        if match[0] == "." and patterns.ABBREVIATION.search(text[max(0, match.start() - 8) : match.end()]):
            continue
        if match.start() > start:
            yield start, match.start(), match[0]
        start = match.end()
    if start < len(text):
        yield start, len(text), ""


def _said(piece: _Piece, before: str, turn: int) -> Said | None:
    """The piece turned to "you"; None if it is not said back."""
    text = piece.text
    if "?" in piece.mark or text.count("(") != text.count(")") or patterns.SPEECH.search(text):
        return None
    text = _stripped(re.sub(r"\([^)]*\)", " ", text))
    words = [token.lower() for token in words_of(text) if is_word(token)]
    if not 2 <= len(words) <= LONGEST or not _is_safe(text, piece, before):
        return None
    subject = _with_subject(text, words, piece)
    if subject is None:
        return None
    text, kind = subject
    if kind == "fragment" and (len(words) > LONGEST_FRAGMENT or not piece.whole):
        return None
    text = _referred(text, before)
    turned = turn_person(text)
    if turned is None or not 2 <= len(turned.split()) <= LONGEST + 1:
        return None
    feeling = _names_feeling(turned)
    if feeling and not piece.whole and len(words) < 6:
        return None
    return Said(_first_letter(turned), kind, 0.0, feeling, "!" in piece.mark, turn)


def _stripped(text: str) -> str:
    """Cleaned, without words that only lead in or fade out."""
    text = clean(text)
    for _ in range(4):
        shorter = patterns.TAIL.sub(
            "",
            patterns.COORDINATION.sub("", patterns.LEAD.sub("", text, count=1) if patterns.LEAD.match(text) else text),
        ).strip(" ,;:-")
        if shorter == text:
            break
        text = shorter
    return text


def _is_safe(text: str, piece: _Piece, before: str) -> bool:
    """Whether a clause, still in the speaker's words, may be said back."""
    known = lexicon()
    low = text.lower()
    words = re.findall(r"[a-z']+", low)
    if any(word in known.lists["swearing"] or word in known.lists["sexual"] for word in words):
        return False
    if (
        patterns.ADDRESSED.search(text)
        or patterns.NOT_ASSERTED.match(text)
        or patterns.THIN.fullmatch(text)
        or patterns.VERDICT.search(text)
    ):
        return False
    if patterns.DIALECT.search(text) or patterns.ASKS.search(text) or patterns.ELLIPTIC.search(text):
        return False
    if (
        patterns.GENERIC.match(text)
        or is_foreign(text)
        or _is_garbled(words)
        or re.search(r"[{}<>\[\]\\|=_^]|\.\.|https?|www\.|[\"@#]", text)
    ):
        return False
    if patterns.SUBORDINATE.match(text) and "," not in text:
        return False
    if patterns.THING.match(text) and not patterns.THING_ALLOWED.match(text):
        return False
    if not piece.whole and (
        patterns.HALF_TOLD.search(text) or _hangs(piece.lead, text) or len(words) < 3 or piece.next.startswith(":")
    ):
        return False
    if not piece.whole and (not _leads(piece.lead) or _is_cut_short(text)):
        return False
    lost = re.fullmatch(r"i (?:really |still |honestly |just )*(?:don't|do not) know (?:what|how|where|who) to .*", low)
    if not lost and not any(word not in _empty() for word in words):
        return False
    if patterns.ENDS_OPEN.search(text):
        return False
    pronoun = patterns.PRONOUN.match(text)
    about_speaker = re.search(r"\b(?:i|me|my|mine|us|our)\b", low)
    return not pronoun or bool(about_speaker) or _has_person(before, pronoun[1].lower())


@lru_cache(maxsize=1)
def _empty() -> frozenset[str]:
    """Words that alone tell nothing."""
    lists = lexicon().lists
    return (
        _CONTENTLESS
        | lists["english"]
        | (lists["adverbs"])
        | lists["auxiliaries"]
        | {"i've", "i'd", "i'll", "we're", "we've", "he's", "she's", "it's", "they're"}
    )


def _leads(lead: str) -> bool:
    """Whether what stands before a part is a clause of its own: not "me" before "and my girlfriend broke up"."""
    words = [token.lower().replace("’", "'") for token in words_of(clean(lead)) if is_word(token)]
    if not words:
        return True
    known = lexicon()
    return any(
        word in known.finite or word in known.bases or re.search(r"'(?:m|re|ve|ll|d|s)\Z", word) for word in words
    )


def _is_cut_short(text: str) -> bool:
    """Whether a side clause at the end lacks its verb: "the day that my boyfriend"."""
    match = re.search(r".*\b(?:that|who|which|when|where|because|while|as|than|how|what)\b(.*)", text, re.IGNORECASE)
    if not match:
        return False
    words = [token.lower() for token in words_of(match[1]) if is_word(token)]
    known = lexicon()
    return not any(
        word in known.finite or word in known.bases or word in known.lists["auxiliaries"] or "'" in word
        for word in words
    )


def _hangs(lead: str, text: str) -> bool:
    """Whether what stands before a part of a sentence makes it less than a fact: "I thought that ...", "if ..."."""
    if re.search(r"\bso\s+\Z", lead, re.IGNORECASE) and re.search(r"\b(?:wouldn't|couldn't|can|won't|don't)\b", text):
        return True  # "so my boss wouldn't see me": what was wanted, not what happened
    if re.search(r"\bbut\s+\Z", lead, re.IGNORECASE):
        return bool(re.search(r"\b(?:if|unless|not\s+only)\b", lead, re.IGNORECASE))
    return bool(patterns.HINGES.search(lead)) and not patterns.FELT_WHEN.match(lead)


def _has_person(before: str, pronoun: str) -> bool:
    """Whether somebody was spoken of whom "she" may stand for."""
    if pronoun.startswith("they") or pronoun in ("their", "theirs"):
        return True
    known = lexicon()
    words = {word.removesuffix("'s") for word in re.findall(r"[a-z']+", before.lower().replace("’", "'"))}
    persons = known.lists["people"] | known.lists["relations"] | known.lists["kin_names"]
    return bool(words & persons) or bool(re.search(r"[a-z,] [A-Z][a-z]{2,}", before))


def _is_garbled(words: Sequence[str]) -> bool:
    return any(is_noise(word) for word in words) or (len(words) > 3 and len(set(words)) <= len(words) // 2)


def is_noise(word: str) -> bool:
    """Whether a word looks like fingers on the keys: "asdkjh"."""
    word = word.lower()
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return False
    if word in lexicon().short_forms or word in lexicon().lists["acronyms"]:
        return False
    return bool(
        re.search(r"[bcdfghjklmnpqrstvwxz]{5,}|(.)\1{3,}|\A(?:asd|qwe|zxc|sdf|jkl|dfg|hjk)|(..)\2\2", word)
    ) and not re.search(r"ngths?\b|tchstr|ghtsc|ngst", word)


def _with_subject(text: str, words: list[str], piece: _Piece) -> tuple[str, Kind] | None:
    """The clause with its subject, and whether it is a whole clause; None if it is neither that nor a fragment."""
    known = lexicon()
    first = words[0]
    if first in ("i", "we"):
        return (text, "clause") if _verb_follows(words) and not re.match(r"\w+\s*,", text) else None
    if first in ("i'm", "i've", "i'd", "i'll", "we're", "we've", "we'd", "we'll"):
        return (text, "clause") if len(words) > 2 or first in ("i'm", "we're") else None
    if together(text) != text:
        return text, "clause"
    dropped = _dropped(text, words, piece)
    if dropped:
        return dropped
    if _after_adverbs(words) in known.finite and first in known.lists["adverbs"]:
        return None
    if (
        first in known.finite - {"might", "must", "will", "can"} or re.fullmatch(r"[a-z]{3,}[^e]ed", first)
    ) and first not in known.lists["relations"]:
        return None
    if first in known.lists["relations"] and len(words) > 2 and words[1] in known.finite:
        return f"my {text[0].lower()}{text[1:]}", "clause"
    if patterns.SUBORDINATE.match(text):
        return _after_subordinate(text)
    lead = patterns.LEADING.match(text)
    if lead:
        rest = [token.lower() for token in words_of(text[lead.end() :]) if is_word(token)]
        if rest and (
            (rest[0] in _FIRST_PERSON and _verb_follows(rest)) or (rest[0] not in _FIRST_PERSON and _finite_place(rest))
        ):
            return text, "clause"
    if _finite_place(words):
        return text, "clause"
    if first in ("he", "she", "they", "it", "there") or (first in known.bases and first not in _FRAGMENT_FIRST):
        return None
    return _fragment(text, words)


_PREPOSITIONS = lexicon().lists["prepositions"]
_FIRST_PERSON = frozenset(["i", "we", "i'm", "i've", "i'd", "i'll", "we're", "we've", "we'd", "we'll"])
_FRAGMENT_FIRST = lexicon().lists["fragment_first"]


def _fragment(text: str, words: list[str]) -> tuple[str, Kind] | None:
    content = [
        w for w in words if w not in lexicon().lists["english"] and w not in lexicon().lists["adverbs"] and len(w) > 2
    ]
    known = lexicon()
    if text.lower().startswith("in front of"):
        return text, "fragment"
    alone = (
        words[0] in known.lists["adverbs"] - {"not", "never"}
        or words[0] in _PREPOSITIONS
        or (words[0][0].isdigit() and len(words) < 3)
    )
    if alone or text.lower().startswith(("no one", "not one")):
        return None
    if (
        words[0] in known.finite
        or words[0] in known.bases - _FRAGMENT_FIRST
        or words[0] in ("her", "him", "them", "me", "us")
    ):
        return None
    if not content or words[0] in ("how", "what", "who") or re.search(r"\b(?:i|we|he|she|they)\b", text.lower()):
        return None
    if any(word in lexicon().lists["feelings"] for word in words) and len(words) < 3:
        return None
    if text.count(",") > 2:
        return None
    return text, "fragment"


def _after_subordinate(text: str) -> tuple[str, Kind] | None:
    """Of "When I was small, my mother sang": whole only if a clause with a subject stands behind the comma."""
    main = text[text.rindex(",") + 1 :].strip()
    words = [token.lower() for token in words_of(main) if is_word(token)]
    if (
        len(words) < 2
        or not re.match(patterns.SUBJECT + r"\b", main, re.IGNORECASE)
        or not (_finite_place(words) or words[0] == "i")
    ):
        return None
    return text, "clause"


def _verb_follows(words: Sequence[str]) -> bool:
    """Whether "I" is followed by a verb: a known one, or at least nothing that cannot be one."""
    adverbs = lexicon().lists["adverbs"]
    rest = [word for word in words[1:] if word not in adverbs]
    return bool(rest) and rest[0] not in _NO_VERB


_NO_VERB = lexicon().lists["no_verb"]


def _finite_place(words: Sequence[str]) -> int:
    """Index of the first word that is the verb of the clause; 0 if there is none."""
    known = lexicon()
    first = words[0]
    if first in known.participles:
        return 0
    start = 1
    if first in _ARTICLES or first.endswith("'s"):
        start = 2
    for i in range(start, min(len(words), 9)):
        word = words[i]
        if word in ("that", "who", "which", "to", "where", "when", "i", "we", "he", "she", "they", "it", "i'm", "i've"):
            return 0  # what follows belongs to a side clause, or no verb is left to find
        if word in known.lists["auxiliaries"] and word not in ("be", "been", "being"):
            return i if i + 1 < len(words) or word in ("did", "does", "do") else 0
        doubtful = word in _NOUN_LIKE or (word in known.thirds and not _is_subject(words[:i]))
        if word in known.finite and (not doubtful or _looks_like_verb(words, i)):
            return i
        if i >= 2 and word.endswith("ed") and len(word) > 5 and words[i - 1] not in _ARTICLES and _takes(words, i):
            return i
        if word.endswith("'s") and i + 1 < len(words) and _is_verbal_s(words, i):
            return i
    if first.endswith("'s") and len(words) > 1 and _is_verbal_s(words, 0):
        return 1
    return 0


def _takes(words: Sequence[str], i: int) -> bool:
    """Whether an object or a direction follows."""
    return i + 1 < len(words) and words[i + 1] in _OBJECT | {
        "me",
        "us",
        "mine",
        "at",
        "to",
        "in",
        "on",
        "into",
        "i",
        "with",
    }


def _is_subject(words: Sequence[str]) -> bool:
    """Whether these words surely are a whole subject, so that a verb must follow: "she", "mum", "my dog"."""
    lists = lexicon().lists
    persons = lists["relations"] | lists["kin_names"] | lists["people"]
    if len(words) == 1:
        return words[0] in persons or words[0] in (
            "he",
            "she",
            "it",
            "everyone",
            "everybody",
            "nobody",
            "someone",
            "somebody",
            "nothing",
        )
    return len(words) == 2 and words[0] in _ARTICLES and (words[1] in persons or words[1] in lists["things"])


_ARTICLES = lexicon().lists["articles"]


def _looks_like_verb(words: Sequence[str], i: int) -> bool:
    """A form that may be a noun: a verb if an object or a particle follows."""
    if i + 1 < len(words) and words[i + 1] in lexicon().participles:
        return True
    return i + 1 < len(words) and words[i + 1] in (
        _OBJECT
        | {"me", "us", "in", "on", "at", "for", "like", "so", "very", "not", "to", "about", "with", "i", "down", "away"}
    )


def _is_verbal_s(words: Sequence[str], i: int) -> bool:
    """Whether 's is "is" or "has" and no owner: "the biopsy's on Thursday", "dad's been ill"."""
    after = words[i + 1]
    known = lexicon()
    return (
        after in known.participles
        or after in known.names
        or after in known.lists["after_verbal_s"]
        or (after in known.lists["feelings"] and i + 2 == len(words))
    )  # fmt: skip


def _dropped(text: str, words: list[str], piece: _Piece) -> tuple[str, Kind] | None:
    """Puts back a subject that was left out: "found my old lego" is "I found my old lego"."""
    known = lexicon()
    place = 0
    while (
        place < len(words) - 1
        and words[place] in known.lists["adverbs"]
        and words[place] not in ("so", "too", "very", "both", "all")
    ):
        place += 1
    verb, after = words[place], words[place + 1] if place + 1 < len(words) else ""
    if verb in ("been", "gonna") and (place or piece.first):
        helper = "I've" if verb == "been" else "I'm"
        return f"{helper} {_small(text)}", "clause"
    if verb == "am":
        return f"I {_small(text)}", "clause"
    takes = verb in _DROPPED or (verb in _WITH_OBJECT and (after in _OBJECT or after[:1].isdigit()))
    if not takes or (verb in ("had", "did", "got", "forgot", "went") and not after):
        return None
    if verb in ("had", "got") and after in ("her", "his", "their", "to", "been"):
        return None
    if verb in ("love", "hope", "wish", "need", "want", "know", "think", "miss", "hate", "feel") and after in (
        "is",
        "was",
        "of",
        "for",
        "at",
    ):
        return None
    if verb in ("don't", "can't", "won't", "didn't", "haven't", "couldn't") and after in known.lists["english"] - {
        "get",
        "go",
        "even",
        "just",
        "do",
        "have",
        "be",
        "still",
    }:
        return None
    theirs = re.search(r"\b(?:me|us)\b", text.lower()) or verb == "forgot"
    if piece.first and piece.whole and not theirs:
        return f"I {_small(text)}", "clause"
    if not piece.whole or verb in ("feel", "hate", "love", "miss", "need", "want", "know", "think", "wish", "hope"):
        return (f"I {_small(text)}", "clause") if piece.whole and not theirs else None
    return None


def _after_adverbs(words: Sequence[str]) -> str:
    adverbs = lexicon().lists["adverbs"]
    return next((word for word in words if word not in adverbs), "")


def _small(text: str) -> str:
    return text[0].lower() + text[1:] if not text[:2].isupper() else text


def _referred(text: str, before: str) -> str:
    """Makes "she starts chemo" after "mum is ill" into "mum starts chemo", if nobody else may be meant."""
    if re.search(r"in[\s-]+law|[\s-]step|\bstep", before, re.IGNORECASE):
        return text
    match = re.match(r"(he|she)(?='s\b|'d\b|'ll\b|\s+(?!and\b|or\b))", text, re.IGNORECASE)
    if not match:
        return text
    known = lexicon()
    wanted = "feminine" if match[1].lower() == "she" else "masculine"
    low = re.findall(r"[a-z']+", before.lower().replace("’", "'"))
    persons = {w for w in (word.removesuffix("'s") for word in low) if w in known.lists[wanted]}
    named = re.search(r"[a-z,] [A-Z][a-z]{2,}", before)
    if len(persons) != 1 or named or any(w in known.lists["people"] - {"everyone", "everybody"} for w in low):
        return text
    person = persons.pop()
    owned = re.search(rf"\b(?:my|our)\s+{person}\b", before, re.IGNORECASE)
    named = person in known.lists["kin_names"] and re.search(
        rf"(?:\A|[.!?,]\s+|\band\s+){person}\b", before, re.IGNORECASE
    )
    if not (owned or named) or re.search(rf"(?:\b(?:his|her|their)|'s|s')\s+{person}\b", before, re.IGNORECASE):
        return text
    return f"my {person}{text[match.end() :]}"


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
    if (
        any(low in group for group in (known.lists["english"], known.finite, known.bases, known.participles))
        or any(
            low in known.lists[name]
            for name in ("adverbs", "relations", "people", "feelings", "kin_names", "auxiliaries")
        )
        or low
        in ("your", "you're", "you've", "someone", "somebody", "everyone", "nobody", "there's", "it's", "no", "since")
    ):
        return text[0].lower() + text[1:] if low not in known.names else text
    return text


def _covers_cause(piece: _Piece, causes: Sequence[Span]) -> bool:
    """Whether most of a cause phrase lies within the piece."""
    return any(2 * (min(c.end, piece.end) - max(c.start, piece.start)) > c.end - c.start for c in causes[:3])


def _scored(said: Said, piece: _Piece, causes: Sequence[Span], words: Sequence[Span]) -> Said:
    """With the score of the causes it covers, and a little for what the words themselves tell."""
    score = 0.0
    for span in words:
        if span.start >= piece.start and span.end <= piece.end:
            score += max(0.0, (span.score or 0.0) - 0.15)
    for rank, span in enumerate(causes):
        overlap = min(span.end, piece.end) - max(span.start, piece.start)
        if overlap > 0:
            score += (
                (1.0 if span.score is None else span.score)
                * overlap
                / max(1, span.end - span.start)
                * (3 if not rank else 2)
            )
    length = len(said.text.split())
    score -= 0.7 if re.match(r"[\s,]*but\b", piece.next) else 0.0
    score -= 0.3 if re.match(r"\w+\s+(?:said|says|asked|told|thinks)\b", said.text) else 0.0
    score += 0.3 if re.search(r"\byour?\b|\byou'", said.text) else 0.0
    score -= 0.5 if said.feeling else 0.0
    score -= 0.4 if said.kind == "fragment" else 0.0
    score -= 0.12 * max(0, length - 10)
    score -= 0.3 if length < 4 else 0.0
    score -= 0.6 if length < 4 and patterns.REFERRING.search(said.text) else 0.0
    score -= 0.4 if patterns.REFERRING.search(said.text) else 0.0
    score += 0.2 if piece.whole else 0.0
    score -= 0.5 if not piece.whole and not piece.lead and length < 5 else 0.0
    sure = _covers_cause(piece, causes[:1]) or (piece.whole and piece.alone)
    return replace(said, score=score, sure=sure)
