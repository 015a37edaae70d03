"""Words as the field counts them, each with the characters of the original text it came from.

``family``: lower-case, common contractions expanded, NLTK words (the code of MoEL, MIME, EmpDG, KEMP, CEM);
``recec``: the same without expansion (Gao et al. 2021's released tokens); ``rashkin``: the cased spacing
rules of the EmpatheticDialogues code (Rashkin et al. 2019).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from empatheia.errors import ConfigError

Style = Literal["family", "recec", "rashkin"]

# The released code replaces plain substrings, one entry after the other: "wit's" is expanded as well; "he's",
# "shouldn't" and whatever has a curly apostrophe are not.
CONTRACTIONS: dict[str, str] = {
    "it's": "it is", "don't": "do not", "doesn't": "does not", "didn't": "did not", "you'd": "you would",
    "you're": "you are", "you'll": "you will", "i'm": "i am", "they're": "they are", "that's": "that is",
    "what's": "what is", "couldn't": "could not", "i've": "i have", "we've": "we have", "can't": "cannot",
    "i'd": "i would", "aren't": "are not", "isn't": "is not", "wasn't": "was not", "weren't": "were not",
    "won't": "will not", "there's": "there is", "there're": "there are",
}  # fmt: skip
# "no." and "etc." do end sentences: Gao et al.'s released tokens split them 76 and 9 times, never keep them
_ABBREVIATIONS = {"mr", "mrs", "ms", "dr", "prof", "st", "vs", "jr", "sr", "e.g", "i.e"}
_SENTENCE_END = re.compile(r"[.!?]+[\"')\]]*\Z")
_BLANKS = re.compile(r"[^\S ]|[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\ud800-\udfff]")
_RASHKIN_MARKS = re.compile(r"([,;:!'?])")
_SIMPLE = re.compile(r"([a-z0-9]+)([,!?.]?)")
_HALVED = {"cannot", "gimme", "gonna", "gotta", "lemme", "wanna"}
# The rules of the Penn Treebank as NLTK has them, for small letters between two blanks; each is one pass over the text
_OPENING_RULES = (
    (re.compile("([«“‘„]|`+)"), r" \1 "),
    (re.compile(r"""([ (\[{<])(?:"|'')"""), r"\1 `` "),
    (re.compile(r"(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)"), "' "),
)
_LAST_PERIOD = re.compile(r"""(?<=[^.])\.(?=[\])}>"'»”’ ]*\Z)""")
_COMMA, _LAST_COMMA = re.compile(r"([:,])(\D)"), re.compile(r"[:,]\Z")
_CLOSING_RULES = (
    (re.compile(r"([.]{2,}|[;@#$%&?!\u2012-\u2015])"), r" \1 "),
    (re.compile(r"([^'])' "), r"\1 ' "),
    (re.compile(r"([*\[\](){}<>]|--)"), r" \1 "),
)
_QUOTE_RULES = (
    (re.compile("([»”’]|'')"), r" \1 "),
    (re.compile('"'), " '' "),
    (re.compile(" +"), " "),
    (re.compile(r"([^' ])('[smd]?) "), r"\1 \2 "),
    (re.compile(r"([^' ])('ll|'re|'ve|n't) "), r"\1 \2 "),
    (
        re.compile(
            r"\b(can(?=not\b)|d(?='ye\b)|gim(?=me\b)|gon(?=na\b)|got(?=ta\b)|lem(?=me\b)|more(?='n\b)|wan(?=na ))"
            r"(not|'ye|me|na|ta|'n)"
        ),
        r" \1 \2 ",
    ),
)
_LONGEST_CACHED, _MOST_CACHED, _LONGEST_CUT = 40, 100_000, 5000


class Word(NamedTuple):
    """A word and the characters ``[start, end)`` of the original text it stands for."""

    text: str
    start: int
    end: int


_Cut = tuple[tuple[str, int, int], ...]
_KNOWN: dict[tuple[str, bool], dict[str, _Cut]] = {
    (style, is_last): {} for style in ("family", "recec") for is_last in (False, True)
}


def tokenize_words(text: str, style: Style = "family") -> list[Word]:
    """Cuts a text into words.

    The rules never look past a blank, save that a period is cut off only at the end of a sentence. So the
    text is cut at blanks, and what lies between is looked up: words repeat, and time stays linear.

    Args:
        text: Anything; control, zero-width and surrogate characters count as blanks.
        style: See the module's first lines.

    Returns:
        Words in order, with ``0 <= start < end <= len(text)`` and spans that never step back. The parts of an
        expanded contraction share its characters: "don't" gives "do" over ``do`` and "not" over ``n't``.

    Raises:
        ConfigError: Unknown style.
    """
    if style == "rashkin":
        return _rashkin_words(text)
    if style not in ("family", "recec"):
        raise ConfigError(f"unknown word style {style!r}; accepted: family, recec, rashkin.")
    clean = text if text.isprintable() else _BLANKS.sub(" ", text)  # same length
    lowered = clean.lower()
    if len(lowered) != len(clean):  # "İ" becomes two characters: lower-case inside the chunks, where it is mapped
        lowered = clean
    inner, last = _KNOWN[style, False], _KNOWN[style, True]
    chunks = lowered.split(" ")
    last_chunk = _last_chunk(chunks)
    words: list[Word] = []
    add, make, position = words.append, Word._make, 0
    for i, chunk in enumerate(chunks):
        if chunk:
            is_last = i >= last_chunk
            cut = (last if is_last else inner).get(chunk)
            if cut is None:
                cut = _cut(chunk, style, is_last)
            for word, start, end in cut:
                add(make((word, position + start, position + end)))
        position += len(chunk) + 1
    return words


def count_words(text: str) -> int:
    """Number of ``family`` words; the unit of per-word perplexity."""
    return len(tokenize_words(text))


def _last_chunk(chunks: list[str]) -> int:
    """Index of the chunk that ends the text; brackets and quotes (but for '') may stand behind."""
    i = len(chunks) - 1
    while i > 0 and not chunks[i].strip("])}>'»”’") and not chunks[i].startswith("''"):
        i -= 1
    return i


def _cut(chunk: str, style: str, is_last: bool) -> _Cut:
    """Words of what stands between two blanks, with offsets into it; remembered if short."""
    if len(chunk) > _LONGEST_CUT:
        return _cut_in_pieces(chunk, style, is_last)
    lowered, where = _lowered(chunk)
    ends_sentence = is_last or _ends_sentence(lowered)
    if style == "family" and "'" in lowered:
        lowered, where = _expand(lowered, where)
    words, position = [], 0
    for token in _split_words(lowered, ends_sentence):
        while lowered[position].isspace():
            position += 1
        # `` or '' stands for a double quote
        width = 1 if token in ("``", "''") and lowered[position] == '"' else len(token)
        words.append((token, where[position][0], where[position + width - 1][1]))
        position += width
    cut = tuple(words)
    if len(chunk) <= _LONGEST_CACHED:
        _remember(chunk, cut, _KNOWN[style, is_last])
    return cut


def _cut_in_pieces(chunk: str, style: str, is_last: bool) -> _Cut:
    """:func:`_cut` of what is very long, a piece after the other."""
    words: list[tuple[str, int, int]] = []
    for start in range(0, len(chunk), _LONGEST_CUT):
        end = start + _LONGEST_CUT
        cut = _cut(chunk[start:end], style, is_last and end >= len(chunk))
        words += [(word, start + a, start + b) for word, a, b in cut]
    return tuple(words)


def _lowered(chunk: str) -> tuple[str, list[tuple[int, int]]]:
    """A chunk in small letters, and the span in the chunk of each of its characters."""
    lowered, where = chunk.lower(), [(i, i + 1) for i in range(len(chunk))]
    if len(lowered) == len(chunk):
        return lowered, where
    lowers = [c.lower() for c in chunk]
    return "".join(lowers), [span for span, lower in zip(where, lowers, strict=True) for _ in lower]


def _remember(chunk: str, cut: _Cut, known: dict[str, _Cut]) -> None:
    if len(known) >= _MOST_CACHED:
        known.clear()
    known[chunk] = cut


def _split_words(chunk: str, ends_sentence: bool) -> list[str]:
    """Words of what stands between two blanks, in small letters, by the Treebank's rules; `` or '' for a quote."""
    simple = _SIMPLE.fullmatch(chunk)
    if simple and simple[1] not in _HALVED:  # most words: no rule looks at more than the mark
        if not simple[2] or (simple[2] == "." and not ends_sentence):
            return [chunk]
        return [simple[1], simple[2]]
    # the blank before gives the rules their mid-sentence context, also that of a quotation opened by two single quotes
    text = _substitute(f" {chunk}" if ends_sentence else f" {chunk} ", _OPENING_RULES)
    if ends_sentence:
        text = _LAST_PERIOD.sub(" . ", text)
    text = _COMMA.sub(r" \1 \2", text)
    if ends_sentence:
        text = _LAST_COMMA.sub(r" \g<0> ", text)
    return _substitute(f" {_substitute(text, _CLOSING_RULES)} ", _QUOTE_RULES).split()


def _substitute(text: str, rules: tuple[tuple[re.Pattern[str], str], ...]) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


def _ends_sentence(chunk: str) -> bool:
    if not _SENTENCE_END.search(chunk):
        return False
    return not (chunk.endswith(".") and chunk[:-1].lstrip("(\"'") in _ABBREVIATIONS)


def _expand(text: str, where: list[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """Replaces contractions in the table's order; ``where`` holds the original span of each character."""
    for short, long in CONTRACTIONS.items():
        if short not in text:
            continue
        cut = len(short) - 3 if short.endswith("n't") else short.index("'")
        first = 3 if long == "cannot" else long.index(" ")  # the rules cut "cannot" into "can" and "not"
        parts: list[str] = []
        spans: list[tuple[int, int]] = []
        done = 0
        while (at := text.find(short, done)) >= 0:
            end = at + len(short)
            left = (where[at][0], where[at + cut - 1][1])
            right = (where[at + cut][0], where[end - 1][1])
            parts += [text[done:at], long]
            spans += [*where[done:at], *([left] * first), *([right] * (len(long) - first))]
            done = end
        text, where = "".join([*parts, text[done:]]), spans + where[done:]
    return text, where


def _rashkin_words(text: str) -> list[Word]:
    spaced = _RASHKIN_MARKS.sub(r" \1 ", text.replace(".", " . ").replace(". . .", "..."))
    words, position = [], 0
    for token in spaced.replace("  ", " ").replace("  ", " ").strip().split(" "):
        if not token:
            continue  # five or more blanks leave an empty token in the released code; it carries nothing
        position = text.find(token, position)
        words.append(Word(token, position, position + len(token)))
        position += len(token)
    return words


_CLOSING = frozenset([*".,!?;:)]}%”»’", "''", "n't", "'s", "'m", "'d", "'ll", "'re", "'ve"])
_OPENING = frozenset([*"([{#“«@", "``"])
_PAIRS = {("can", "not"), ("gon", "na"), ("wan", "na"), ("got", "ta"), ("gim", "me"), ("lem", "me"),
          ("'t", "is"), ("'t", "was"), ("more", "'n"), ("d", "'ye")}  # fmt: skip
_NAMES = """mr mr. mrs mrs. ms. dr dr. monday tuesday wednesday thursday friday saturday sunday january
    february april june july august september october november december christmas thanksgiving halloween
    easter english american america god"""
_SHOWN = {"i": "I", "``": '"', "''": '"', "tv": "TV"} | {name: name.capitalize() for name in _NAMES.split()}
_PAIRED = ('"', "'", "*")


def detokenize(words: Iterable[str]) -> str:
    """Readable text from lower-case words: spacing, quotes, capitals at sentence starts, ``i`` to ``I``.

    >>> detokenize("i am so sorry , that must be hard . do you want to talk ?".split())
    'I am so sorry, that must be hard. Do you want to talk?'
    >>> detokenize(["it", "was", "n't", "fun"])
    "It wasn't fun"
    """
    tokens = list(words)
    out: list[str] = []
    starts_sentence, glue = True, True
    is_open: dict[str, bool] = {mark: False for mark in _PAIRED}
    for i, word in enumerate(tokens):
        before, after = tokens[i - 1] if i else "", tokens[i + 1] if i + 1 < len(tokens) else ""
        attached, opens = _spacing(word, before, after, is_open)
        shown = _SHOWN.get(word, word)
        if starts_sentence and any(c.isalnum() for c in shown):
            shown, starts_sentence = shown[0].upper() + shown[1:], False
        out.append(shown if glue or attached else " " + shown)
        glue = opens
        starts_sentence = starts_sentence or word in (".", "!", "?")
    return "".join(out)


def _spacing(word: str, before: str, after: str, is_open: dict[str, bool]) -> tuple[bool, bool]:
    """Whether a word is written onto the one before, and the next onto it; notes quotes as open or closed."""
    if word in (":", ";") and after in (")", "(", "d", "p", "/") and before:
        return False, True  # a smile
    if word == "(" and before in (":", ";"):
        return True, False
    if word == "$":
        return before[-1:].isdigit() and not after[:1].isdigit(), after[:1].isdigit()
    if word in _PAIRED and (is_open[word] or not _is_apostrophe(word, before, after)):
        is_open[word] = not is_open[word] and after != ""
        return not is_open[word], is_open[word]
    return _is_attached(word, before), word in _OPENING


def _is_apostrophe(word: str, before: str, after: str) -> bool:
    """Whether a single quote that opens nothing stands for letters left out: "my parents' house", "talkin' "."""
    return word == "'" and (not after or before.endswith(("s", "in")))


def _is_attached(word: str, before: str) -> bool:
    """Whether a word is written onto the one before: a closing mark, or the end of a word that was cut."""
    return word in _CLOSING or word == "'" or not word.strip(".…!?") or (before, word) in _PAIRS
