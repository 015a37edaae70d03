"""Turns what a person says about themselves to "you": "I lost my keys" to "you lost your keys".

Nothing is parsed. The words of the speaker are kept, and only pronouns and the verbs that agree with them change; where
the rules do not know, they say so by returning None, and nothing is said back.
"""

from __future__ import annotations

import re
from functools import lru_cache

from empatheia.voices.reflection.lexicon import lexicon

_TOKEN = re.compile(r"[^\W_](?:[\w'&@/+*-]|[.,:](?=\d))*'?|[£$€#@&~]\d[\w.,:]*\w?|\s+|.", re.DOTALL)
_QUOTES = str.maketrans({"’": "'", "‘": "'", "`": "'", "´": "'", "“": '"', "”": '"', "…": "…"})
_EMOJI = re.compile(
    "[\U0001f000-\U0001ffff\u2190-\u2bff\u2600-\u27bf\ufe0f\u200d\u20e3\u3030\u303d\u00a9\u00ae]|"
    r"(?<![\w/])[:;=8xX]['\-o]?[)(\]\[dDpPoO/\\|*3]+(?!\w)|<3+|</3|(?<!\w)[xX]{2,}(?!\w)|\^_+\^|-_+-|\bT_T\b"
)
LONGEST_CLAUSE = 400
"""Characters of a clause that is turned or looked at closely; nothing longer is said back."""
_CLOCK = re.compile(r"(\d)\s*([ap])\.?m\b\.?", re.IGNORECASE)
_BAD_OUTCOME = re.compile(
    r"\byou (?:am|is|was|has|does|wasn't|isn't|hasn't|doesn't|been|says|goes|wants|thinks|be)\b"
    r"|\b(?:i|me|my|mine|myself|us|our|ours|ourselves|i'\w+|am)\b"
    r"|\b(?:your|the|a|an|my|to|of|with|and|but|or|because|from|for|at|as|than|when|while|if|that's|your own)\Z"
    r"|\b(?:her|him|them|it) you (?:a|an|the)\b|"
    r"\byour (?:you|your|is|was|are|were|am|and|the|a)(?![\w'-])|\byou your\b|\byou you\b|\byou're (?:is|was|"
    r"were|am|are)\b"
    r"|\b(the|a|an|to|of|my|your|in|is|was|and|i|you|it|he|she|they|we) \1\b",
    re.IGNORECASE,
)
_DOUBLED = re.compile(r"\b([a-z']{2,})\s+\1\b", re.IGNORECASE)
_MAY_DOUBLE = lexicon().lists["may_double"]
_SUBJECTS = {
    "i'm": "you're", "i've": "you've", "i'd": "you'd", "i'll": "you'll", "we're": "you're", "we've": "you've",
    "we'd": "you'd", "we'll": "you'll", "we": "you", "i": "you",
}  # fmt: skip
_OTHERS = {
    "me": "you", "my": "your", "mine": "yours", "myself": "yourself", "us": "you", "our": "your", "ours": "yours",
    "ourselves": "yourselves", "ourself": "yourself", "meself": "yourself", "mysel": "yourself",
}  # fmt: skip
_AGREEING = {"am": "are", "was": "were", "wasn't": "weren't", "amn't": "aren't", "wasnt": "weren't"}
_DETERMINERS = lexicon().lists["determiners"]
_THIRD_PERSON = lexicon().lists["third_person"]


def words_of(text: str) -> list[str]:
    """Words, blanks and marks of a text, in order; joined they are the text."""
    return _TOKEN.findall(text)


def lower_words(text: str) -> list[str]:
    """The words and numbers of a text in small letters, without blanks and marks."""
    return [token.lower() for token in words_of(text) if is_word(token)]


def is_word(token: str) -> bool:
    """Whether a token is a word or a number, no mark and no blank."""
    return token[:1].isalnum() or (token[:1] in "£$€#@&~" and len(token) > 1)


def clean(text: str) -> str:
    """Without emoji, smileys and chat filler; apostrophes and usual short ways of writing restored; no shouting.

    >>> clean("omg i didnt get it 😭")
    "i didn't get it"
    """
    text = _EMOJI.sub(" ", text.translate(_QUOTES))
    text = _CLOCK.sub(lambda m: f"{m[1]}{m[2].lower()}m", text)
    tokens = words_of(text)
    shouted = _is_shouted(tokens)
    out: list[str] = []
    for i, token in enumerate(tokens):
        out.append(_cleaned(token, tokens, i, shouted) if is_word(token) or token in {"&"} else token)
    text = re.sub(r"\s+", " ", "".join(out)).strip()
    text = re.sub(r"\s+([,.;:!?])", r"\1", text)
    return re.sub(r"([,;:])(?:\s*[,;:])+", r"\1", text).strip(" ,;:-–—*~|>^_").strip()


def _is_shouted(tokens: list[str]) -> bool:
    letters = [token for token in tokens if token.isalpha() and len(token) > 1]
    return len(letters) > 2 and sum(token.isupper() for token in letters) > 0.6 * len(letters)


def _cleaned(token: str, tokens: list[str], i: int, shouted: bool) -> str:
    """One word, written out and lowered where it was shouted."""
    known = lexicon()
    low = token.lower()
    if low in known.lists["may_lack_apostrophe"]:
        return _with_apostrophe(token, _previous_word(tokens, i), _next_word(tokens, i))
    if low in known.short_forms and (shouted or len(token) != 2 or not token.isupper()):
        return _written_out(token, low, _previous_word(tokens, i))
    if _FILLER.fullmatch(low):
        return ""
    if low in known.names:
        return _as_name(token, low, shouted)
    if len(token) > 1 and token.isupper() and token.isalpha():
        return _lowered(token, low, shouted)
    if re.search(r"([a-z])\1{3,}", low):  # "soooo"
        return re.sub(r"([A-Za-z])\1{2,}", r"\1", token)
    return token


_FILLER = re.compile(r"(?:[ha]{4,}|(?:he){2,}|lo+l+|lmf?a+o+|o+mg+|u+gh+|a+rgh+|hm+|um+|er+m+|phew|wo+w|a+w+)")


def _written_out(token: str, low: str, before: str) -> str:
    """What a short way of writing stands for; "the da" is no "dad"."""
    if low == "da" and before in ("", "the", "that"):
        return token
    long = lexicon().short_forms[low]
    return long.capitalize() if token[0].isupper() and not long.startswith("i'") else long


def _as_name(token: str, low: str, shouted: bool) -> str:
    if low == "tiktok":
        return "TikTok"
    return token if token[0].isupper() and not shouted else low.capitalize()


def _lowered(token: str, low: str, shouted: bool) -> str:
    """A word in capitals: an acronym stays."""
    known = lexicon()
    if low in known.lists["acronyms"]:
        return token
    common = known.is_common(low) or low in known.lists["relations"]
    return low if common or len(token) > 4 or shouted or re.search("[aeiouy]", low) else token


def _with_apostrophe(token: str, before: str, after: str) -> str:
    """A word that may lack an apostrophe and is a word without it, too: decided by what stands around.

    >>> _with_apostrophe("its", "", "raining"), _with_apostrophe("its", "lost", "tail")
    ("it's", 'its')
    """
    known, low = lexicon(), token.lower()
    lists = known.lists
    is_meant = {
        "its": after in known.participles or after in lists["after_its"],
        "ill": before not in lists["ill_before"] and (after in known.bases or after in lists["infinitives"]),
        "id": before not in lists["id_before"] and after in known.bases | known.pasts | lists["after_id"],
        "were": not before and (after in known.participles or after in ("so", "not", "all", "both")),
        "lets": not before,
    }
    if not is_meant.get(low):
        return token
    return "It's" if low == "its" and token[0] == "I" else _APOSTROPHES[low]


_APOSTROPHES = {"its": "it's", "ill": "i'll", "id": "i'd", "were": "we're", "lets": "let's"}


def _next_word(tokens: list[str], i: int, step: int = 1) -> str:
    """The word after place ``i`` (before it with step -1), lower case; "" if a mark stands between."""
    j = i + step
    while 0 <= j < len(tokens):
        if is_word(tokens[j]):
            return tokens[j].lower()
        if not tokens[j].isspace():
            return ""
        j += step
    return ""


def _previous_word(tokens: list[str], i: int) -> str:
    return _next_word(tokens, i, -1)


_NOT_SHORT_AFTER = r"(?<!where )(?<!what )(?<!who )(?<!how )(?<!than )(?<!as )"
_SPOKEN: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(_NOT_SHORT_AFTER + rf"\b{long}(?= [a-z])", re.IGNORECASE), short)
    for long, short in (
        (r"(?:can not|cannot)", "can't"),
        (r"will not", "won't"),
        (r"(you|they) are", r"\1're"),
        (r"(he|she|it|that|there) is", r"\1's"),
        (
            r"(you|they) have(?= (?:been|had|got|gotten|never|always|just|already|lost|done|gone|seen|made|taken)\b)",
            r"\1've",
        ),
        (r"(you|he|she|they|it) will", r"\1'll"),
        (r"(do|does|did|is|was|were|are|has|have|had|would|could|should) not", r"\1n't"),
    )
)


def spoken(text: str) -> str:
    """A turned clause as one says it aloud, with the short forms of its verbs.

    >>> spoken("you have been working on it"), spoken("you are not sure where you are now")
    ("you've been working on it", "you're not sure where you are now")
    """
    for long, short in _SPOKEN:
        text = long.sub(short, text)
    return text


def turn_person(text: str) -> str | None:
    """The clause turned to "you"; None if that cannot be done safely.

    Args:
        text: A clause as :func:`clean` leaves it, without final mark; at most :data:`LONGEST_CLAUSE` characters.

    >>> turn_person("I was late and my boss shouted at me")
    'you were late and your boss shouted at you'
    """
    if len(text) > LONGEST_CLAUSE:
        return None
    text = together(text)
    tokens = words_of(text)
    changed = list(tokens)
    subject_is_speaker = False
    for i, token in enumerate(tokens):
        if not is_word(token):
            continue
        low = token.lower()
        if low in _SUBJECTS:
            if not _turn_subject(tokens, changed, i, low):
                return None
            subject_is_speaker = True
        elif low in ("he", "she", "it", "they", "who", "that", "which") or _opens_subject(tokens, i):
            subject_is_speaker = False
        else:
            changed[i] = _turned(tokens, i, subject_is_speaker) or changed[i]
    turned = "".join(changed)
    if _BAD_OUTCOME.search(_CLOCK.sub("", turned)) or _doubled_words(turned):
        return None
    return turned


def _turned(tokens: list[str], i: int, subject_is_speaker: bool) -> str:
    """What stands for a word that is no subject once the clause is turned; "" = what stands there already."""
    low = tokens[i].lower()
    if low == "me":
        return _turned_me(_previous_word(tokens, i), _next_word(tokens, i))
    if low in _OTHERS:
        return tokens[i] if _is_no_pronoun(tokens[i], _previous_word(tokens, i)) else _OTHERS[low]
    if low in _AGREEING:
        goes_on = subject_is_speaker or (low == "am" and not _previous_word(tokens, i)[-1:].isdigit())
        return _AGREEING[low] if goes_on and _is_coordinated(tokens, i) else ""
    return "your " + low if _is_kin_name(tokens, i) else ""


def _doubled_words(text: str) -> bool:
    return any(match[1].lower() not in _MAY_DOUBLE for match in _DOUBLED.finditer(text))


def together(text: str) -> str:
    """Puts "you" first: "my brother and I went" becomes "I and my brother went"."""
    match = re.match(r"((?:\w[\w'-]*\s+){0,3}\w[\w'-]*)\s+and\s+(?:I|i|me|Me|myself)\s+(?=\w)(?!and\b)", text)
    if match:
        others = match[1].split()
        finite, adverbs = lexicon().finite, lexicon().lists["adverbs"]
        first = others[0].lower()
        owned = first in ("my", "our", "the", "a") or (len(others) <= 2 and not first.endswith(("day", "time", "week")))
        if (
            owned
            and "'" not in first
            and first not in lexicon().lists["no_owner"]
            and not any(w.lower() in finite | adverbs for w in others)
        ):
            rest = text[match.end() :]
            verb = rest.split()[0].lower() if rest.split() else ""
            if first in ("my", "our", "the", "your"):
                others[0] = first
            return f"I and {' '.join(others)} {_AGREEING.get(verb, verb) if verb in _AGREEING else rest.split()[0]}" + (
                rest[len(rest.split()[0]) :] if rest.split() else ""
            )
    match = re.match(r"(?:I|i|Me|me)\s+and\s+((?:\w[\w'-]*\s+){1,4}?)(am|was|wasn't)\b", text)
    if match:
        return f"I and {match[1]}{_AGREEING[match[2].lower()]}{text[match.end() :]}"
    return re.sub(r"\A[Mm]e and\b", "I and", text)


def _turn_subject(tokens: list[str], changed: list[str], i: int, low: str) -> bool:
    """Turns "I" or "we" and the verb that belongs to it; False if the verb is not one of theirs."""
    before = _previous_word(tokens, i)
    if low == "i" and (before in lexicon().lists["i_before"] or tokens[i + 1 : i + 2] == ["."]):
        return False
    changed[i] = _SUBJECTS[low]
    if low not in ("i", "we"):
        return True
    if before in _AGREEING:  # "neither was I"
        changed[_place_before(tokens, i)] = _AGREEING[before]
        if _next_word(tokens, i) not in _AGREEING:
            return True
    return _turn_verb(tokens, changed, i)


def _turn_verb(tokens: list[str], changed: list[str], i: int) -> bool:
    """Turns the verb behind "I" at place ``i``; False if it is not one that can stand there."""
    known, place = lexicon(), i
    for _ in range(4):
        place = _next_place(tokens, place)
        if place < 0:
            return True
        verb = tokens[place].lower()
        if verb in _AGREEING:
            changed[place] = _AGREEING[verb]
            return True
        if verb in _THIRD_PERSON:
            return False
        if verb not in known.lists["adverbs"] and verb not in ("and", "of", "who"):
            return verb not in known.thirds or verb in known.bases
    return True


def _place_before(tokens: list[str], i: int) -> int:
    """Place of the nearest word before place ``i``; there must be one."""
    return max(j for j in range(i) if is_word(tokens[j]))


def _next_place(tokens: list[str], i: int) -> int:
    for j in range(i + 1, len(tokens)):
        if is_word(tokens[j]):
            return j
        if not tokens[j].isspace():
            return -1
    return -1


def _is_no_pronoun(token: str, before: str) -> bool:
    """Whether "US" is the country and "mine" a pit."""
    if token == "US":
        return before in ("the", "in", "to", "from")
    return token.lower() == "mine" and before in lexicon().lists["mine_before"]


def _turned_me(before: str, after: str) -> str:
    """What stands for "me", which may be "my" where some people speak; "me" if that is open: it is refused for it."""
    lists = lexicon().lists
    if after in lists["kin_names"] or after in lists["me_house"]:
        return "your"  # "me mam"
    if after in lists["me_good"]:
        return "me"  # "me good jacket", or "gave me good advice"
    loose = not before or before in lists["me_loose"]
    if loose and after and not after[0].isdigit() and after not in _after_me():
        return "me"  # "and me legs": perhaps "my"
    return "you"


@lru_cache(maxsize=1)
def _after_me() -> frozenset[str]:
    """Words that may stand after "me" without belonging to it."""
    known = lexicon()
    forms = known.bases | known.finite | known.participles
    return known.lists["english"] | known.lists["adverbs"] | known.lists["after_me"] | known.names | forms


def _is_coordinated(tokens: list[str], i: int) -> bool:
    """Whether a verb continues the sentence of the subject before: "... and was late"."""
    before = _previous_word(tokens, i)
    if before in lexicon().lists["adverbs"]:
        before = _previous_word(tokens, _place_before(tokens, i))
    return before in ("and", "but", "or", "") and any(is_word(token) for token in tokens[:i])


@lru_cache(maxsize=1)
def _going_on() -> frozenset[str]:
    """Words after "and" that do not begin another subject."""
    known = lexicon()
    return known.finite | known.lists["adverbs"] | known.bases | known.participles | {"not", "i", "we"}


@lru_cache(maxsize=1)
def _no_adjectives() -> frozenset[str]:
    """Words that may stand before a name without belonging to it."""
    known = lexicon()
    return known.lists["english"] | known.finite | known.bases | known.participles | known.lists["adverbs"]


def _opens_subject(tokens: list[str], i: int) -> bool:
    """Whether "and" is followed by another subject: "and my boss", not "and was", "and really felt"."""
    if tokens[i].lower() not in ("and", "but", "because", "so", "when", "while", "if", "or"):
        return False
    return _next_word(tokens, i) not in _going_on()


def _is_kin_name(tokens: list[str], i: int) -> bool:
    """Whether "Mum" stands here as a name: it is the speaker's, not the listener's."""
    known = lexicon()
    word = tokens[i].lower()
    stem = word.removesuffix("'s").removesuffix("'")
    if stem not in known.lists["kin_names"] or (stem in ("ma", "pa", "nanny") and tokens[i].islower()):
        return False
    before, after = _previous_word(tokens, i), _next_place(tokens, i)
    if (
        after >= 0
        and tokens[after][0].isupper()
        and tokens[after].lower() not in known.lists["english"]
        and word == stem
    ):
        return False
    if not before:
        return True
    if re.search(
        r"\b(?:my|our|your|his|her|their|the|a)\s+[\w']+\s+(?:and|or)\s+\Z", "".join(tokens[:i]), re.IGNORECASE
    ):
        return False
    if before in _DETERMINERS or before.endswith("'s") or before in known.lists["kin_before"]:
        return False
    return before in _no_adjectives()
