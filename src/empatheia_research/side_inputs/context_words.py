"""The words of an encoded context, with the pieces they are made of, and which of them carry content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from empatheia.errors import MissingResourceError
from empatheia.records.dialogue import Example
from empatheia.text.words import tokenize_words
from empatheia_research.text.collation import EncodedExample
from empatheia_research.text.tokenizer import DialogueTokenizer

TAGGER = "taggers/averaged_perceptron_tagger_eng"

# English function words as the family's tokens spell them, written for this package; NLTK's list, which the released
# code downloads, names much the same
_WORDS = """
    a an the this that these those i me my mine myself you your yours yourself yourselves he him his himself she her
    hers herself it its itself we us our ours ourselves they them their theirs themselves who whom whose which what
    am is are was were be been being do does did doing done have has had having will would shall should can could may
    might must ought not no nor n't 's 'm 're 've 'll 'd 't and or but if then else because as until while of at by for
    with about against between into through during before after above below to from up down in out on off over under
    again further once here there when where why how all any both each few more most other some such only own same so
    than too very just now also ca wo sha ai let
"""
FUNCTION_WORDS = frozenset(_WORDS.split())


@dataclass(frozen=True, slots=True)
class ContextWord:
    """A word of a context.

    Attributes:
        text: As the tokeniser's rules spell it, lower-case.
        turn: Index of its turn.
        positions: Of its pieces in the source.
        tag: Penn part of speech, or empty where nobody tagged.
    """

    text: str
    turn: int
    positions: tuple[int, ...]
    tag: str = ""


def context_words(
    example: Example, item: EncodedExample, tokenizer: DialogueTokenizer, *, tags: bool = False
) -> list[ContextWord]:
    """Words of what was kept of a context, in order.

    Args:
        example: The context.
        item: Its pieces.
        tokenizer: What made them.
        tags: Name parts of speech by NLTK's tagger (:func:`has_tagger`), each turn by itself.
    """
    places: dict[tuple[int, int], list[int]] = {}
    for position, (turn, word) in enumerate(zip(item.turn_ids, item.word_ids, strict=True)):
        if word >= 0:
            places.setdefault((turn, word), []).append(position)
    spelled: dict[int, list[str]] = {}
    found = []
    for (turn, word), positions in places.items():
        if tokenizer.kind == "hf":
            text = example.context[turn].text[item.starts[positions[0]] : item.ends[positions[-1]]].lower()
        else:
            if turn not in spelled:
                spelled[turn] = [cut.text for cut in tokenize_words(example.context[turn].text, tokenizer.style)]
            text = spelled[turn][word]
        found.append(ContextWord(text, turn, tuple(positions)))
    return _tagged(found) if tags else found


def _tagged(words: Sequence[ContextWord]) -> list[ContextWord]:
    from nltk.tag import pos_tag

    out: list[ContextWord] = []
    for turn in sorted({word.turn for word in words}):
        mine = [word for word in words if word.turn == turn]
        tags = [tag for _, tag in pos_tag([word.text for word in mine])]
        out += [ContextWord(w.text, w.turn, w.positions, tag) for w, tag in zip(mine, tags, strict=True)]
    return out


def has_tagger() -> bool:
    """Whether NLTK's part-of-speech tagger has its data here."""
    from nltk.data import find

    try:
        find(TAGGER)
    except LookupError:
        return False
    return True


def choose_tagging(wanted: bool | None, what: str) -> bool:
    """Whether to tag: as wanted, or (None) whether the tagger is here.

    Args:
        wanted: The setting.
        what: Its name, for the message.

    Raises:
        MissingResourceError: It is wanted, and not here.
    """
    if wanted and not has_tagger():
        raise MissingResourceError(
            f"{what}: true needs NLTK's tagger, whose data is not here; get it with:"
            f" python -m nltk.downloader {TAGGER.rpartition('/')[2]}, or set {what}: false."
        )
    return has_tagger() if wanted is None else wanted
