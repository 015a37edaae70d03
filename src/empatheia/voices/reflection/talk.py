"""What kind of talk a turn is, by its words alone: a greeting, a question to the listener, a farewell, no text ..."""

from __future__ import annotations

import re
from collections.abc import Sequence

from empatheia.records.dialogue import Turn
from empatheia.voices.reflection.legible import is_foreign, is_noise
from empatheia.voices.reflection.lexicon import lexicon
from empatheia.voices.reflection.turning import clean, is_word, lower_words, words_of

_GREETING = re.compile(
    r"(?:(?:hi+|hey+|hello+|heya|hiya|howdy|yo|sup|hallo|greetings|good\s+(?:morning|afternoon|evening|day)|"
    r"morning|evening|"
    r"afternoon|g'day|howya|what's\s+up|whats\s+up|wassup|hi\s+there|hey\s+there|hello\s+there)\s*"
    r"(?:there|everyone|all|again|friend|buddy|mate|bot|guys|you)?)[\s!.,?]*",
    re.IGNORECASE,
)
_HOW_ARE_YOU = re.compile(
    r"\b(?:how\s+(?:are|r)\s+(?:you|u|ya|things)|how're\s+you|how's\s+(?:it\s+going|life|things|everything|"
    r"your\s+day|your\s+"
    r"(?:week|weekend|evening|morning|weather))|hows\s+(?:it\s+going|life|things|your\s+\w+)|how\s+(?:was|"
    r"is)\s+your\s+\w+|"
    r"how\s+do\s+you\s+do|how\s+have\s+you\s+been|how\s+you\s+(?:doing|been)|what's\s+new|what\s+are\s+you\s+up\s+to|"
    r"what'?s\s+up|nice\s+to\s+meet\s+you|did\s+you\s+(?:people\s+)?have\s+rain|you\s+ok)\b",
    re.IGNORECASE,
)
_WEATHER = re.compile(
    r"\b(?:rain|raining|sunny|weather|snow|snowing|windy|cold|hot|warm|fog|foggy|cloudy)\b", re.IGNORECASE
)
_FAREWELL = re.compile(
    r"\b(?:bye|goodbye|good\s*night|gnight|night\s+night|see\s+(?:you|ya)(?:\s+\w+)?|"
    r"talk\s+(?:to\s+you\s+)?(?:later|soon)|ttyl|"
    r"cya|take\s+care|(?:gotta|got\s+to|have\s+to|need\s+to)\s+(?:go|run|sleep)|have\s+a\s+(?:good|nice|great|"
    r"lovely)\s+\w+|"
    r"i'?m\s+off\s+to\s+bed|signing\s+off|cheerio|farewell|thanks\s+for\s+(?:listening|the\s+chat|talking|your\s+time)|"
    r"thank\s+you\s+for\s+(?:listening|talking|the\s+chat|your\s+time)|nice\s+talking)\b",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"(?:(?:ok(?:ay)?|well|alright|right|cool|great|awesome|oh|yes|yeah|aw+|and|so|very|kindly|much|many|no)[\s,.!]*)*"
    r"(?:thanks?|thank\s+you|thx|ty|cheers|(?:i\s+)?(?:really\s+)?appreciate\s+(?:it|that|you))"
    r"(?:[\s,.!]*(?:so|very|much|a|lot|again|you|too|bye|for|listening|your|time|the|chat|talking|really|i|"
    r"appreciate|it|that|everyone|mate|then|now))*[\s.!]*",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"\b(?:can|could|may|mind\s+if)\s+i\s+(?:just\s+)?(?:ask|tell|talk|vent|share|say|rant|run)\b|"
    r"\b(?:do\s+you\s+have|got)\s+(?:a\s+)?(?:minute|moment|sec|second|"
    r"time)\b|\b(?:are\s+)?(?:you|u)\s+(?:ok\s*\?\s*u\s+)?(?:there|free|busy|up|around|awake)\s*\??\Z|"
    r"\bcan\s+we\s+talk\b|\A\W*(?:(?:oh|actually|ok|okay)[\s,]+)*(?:wait|hang\s+on|hold\s+on|one\s+sec(?:ond)?|guess\s+what)\W*\Z",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"\b(?:should|shall|can|could|do|did|am|would|will|must|may|might|have)\s+i\b|\bwhat\s+to\s+(?:do|say|tell)\b|"
    r"\bto\s+do\b|\b(?:what|how)\s+(?:do|can|would|could|should|will)\s+(?:i|we|you|one|people)\b|"
    r"\bany\s+(?:advice|ideas?|tips|"
    r"suggestions|thoughts)\b|\badvice\b|\bwhat\s+do\s+you\s+(?:think|say|suggest)\b|\bwho\s+do\s+i\b|\bwhat\s+now\b",
    re.IGNORECASE,
)
_YOU = re.compile(r"\b(?:you|your|yours|u|ur|ya|you're|yourself|you've|you'd)\b", re.IGNORECASE)
_UNMARKED = re.compile(
    r"(?:(?:so|and|hey|hi|ok|okay|well|pls|please|but|also|honestly|be\s+honest)[\s,]+)*(?:"
    r"(?:are|r|do|did|can|could|would|will|have)\s+(?:you|u|ya)\b"
    r"|(?:what|how|where|who|when)\s+(?:would|do|does|should|can|could|are|did|will)\s+(?:you|u|i|we|one)\b"
    r"|(?:should|shall|can|could|do|am|would|must)\s+i\b"
    r"|(?:is|was)\s+it\s+(?:normal|ok|okay|wrong|weird|bad|too\s+(?:late|early|soon|much)|stupid|possible|just\s+me)\b"
    r"|any\s+(?:advice|tips|ideas)\b|what\s+would\s+u\b|are\s+u\b)",
    re.IGNORECASE,
)
"""How a question to the listener begins that is typed without its mark."""
_AFTER_A_QUESTION = re.compile(
    r"(?:(?:please|pls|plz|be\s+honest|honestly|asking\s+for\s+a\s+friend|yes\s+or\s+no|thanks?|thank\s+you|just\s+curious"
    r"|serious(?:ly)?|genuine(?:ly)?|help|idk|lol|haha)[\s,.!?]*)+",
    re.IGNORECASE,
)
_RHETORICAL = re.compile(
    r"(?:you\s+know|you\s+see|know\s+what\s+i\s+mean|right|guess\s+what|you\s+know\s+what|"
    r"can\s+you\s+(?:believe|imagine)\b.*|"
    r"would\s+you\s+believe\b.*|isn't\s+(?:it|that)\b.*|eh|huh|innit|ok|okay|yeah|no|remember|wouldn't\s+you|"
    r"don't\s+you\s+think|"
    r"don't\s+you|aren't\s+you|what\s+can\s+you\s+do|what\s+are\s+you\s+gonna\s+do|who\s+(?:does|would|said|"
    r"says)\b.*|why\s+me|how\s+dare\b.*)",
    re.IGNORECASE,
)
_ABOUT_LISTENER = re.compile(
    r"\b(?:are|r|were)\s+(?:you|u)\b|\b(?:do|did|have|has|were|can|will)\s+(?:you|u)\s+(?:ever|have|got|like|love|"
    r"live|work|own|feel|know|"
    r"been|had|sleep|eat|remember|watch|play|also|even|really|still|enjoy|understand|listen|care|human|real)\b"
    r"|\b(?:what|how|where|who)(?:'s|\s+is|s)?\s+(?:about\s+)?(?:you|your|yourself)\b|\bwhere\s+(?:do|"
    r"are)\s+you\b|\bwho\s+(?:are|made)\s+you\b"
    r"|\byour\s+(?:name|age|favou?rite|job|family|mum|mom|dad|place|end|side|town|country|area|city)\b|\bwhat\s+(?:are|is)\s+(?:you|your)\b|\b(?:ai|"
    r"robot|bot|human|chatbot|real\s+person)\b"
    r"|\b(?:who|what|where|which\s+\w+)\s+(?:do|did)\s+you\s+(?!think|say|suggest|mean|do\b|want|see)"
    r"|\bhow\s+old\s+(?:are|r)\b|\bpoint\s+of\s+(?:you|this)\b"
    r"|\b(?:is|does)\s+(?:any(?:one|body)|some(?:one|body))\s+(?:even\s+|actually\s+|really\s+)?(?:read|there|here|listen|answer)\w*",
    re.IGNORECASE,
)
_IRONY = re.compile(
    r"\A\W*(?:oh|well|ah|yay)\s+(?:great|brilliant|lovely|fantastic|perfect|wonderful|joy|goody|good)\s+(?:another|more|now|the|yet)\b"
    r"|\A\W*(?:(?:oh|well|yeah|ah|just|so|that's|thats|how|what\s+a|absolutely|really)\s*,?\s*)*(?:great|"
    r"brilliant|fantastic|lovely|"
    r"wonderful|perfect|fabulous|awesome|amazing|marvellous|nice|superb|charming|delightful|joy|"
    r"treat)(?:\s+(?:one|start|day|morning|"
    r"week|just\s+(?:great|perfect|what\s+i\s+needed)|stuff|job|work))?\s*[.,!…]"
    r"|\b(?:just\s+what\s+i\s+(?:needed|wanted)|love\s+that\s+for\s+me|living\s+the\s+dream|lucky\s+me|"
    r"thanks\s+a\s+(?:lot|bunch)\s*[,.!]|"
    r"aren't\s+i\s+lucky|yay\s+me|(?:oh\s+)?the\s+joys?\b|as\s+if\s+(?:that|it)\s+helps?)\b",
    re.IGNORECASE,
)
_CLOSED = re.compile(
    r"\b(?:(?:don't|dont|do\s+not|rather\s+not|can't|cant|not\s+ready\s+to)\s+(?:really\s+|"
    r"even\s+)?(?:want\s+to|wanna|to)?\s*(?:talk|speak|think|"
    r"chat)\s+about|leave\s+it|drop\s+it|leave\s+me\s+alone|stop\s+asking|no\s+more\s+questions|enough\s+questions)\b",
    re.IGNORECASE,
)


def talk_moment(turns: Sequence[Turn]) -> str:
    """The kind of talk of the newest turn; "" where something is told.

    One of ``notext``, ``foreign``, ``opening``, ``greeting``, ``smalltalk``, ``closing``, ``question`` and
    ``question_self`` (about the listener).
    """
    raw = turns[-1].text
    text = clean(raw[-6000:])
    words = [token for token in words_of(text) if is_word(token)]
    if _is_no_text(raw, words):
        return "notext"
    began = len(turns) > 1
    if words and all(word.isdigit() for word in words):
        return "" if began else "notext"
    if words and _are_noise(words):
        return "notext"
    if is_foreign(raw):
        return "foreign"
    return _social(text, len(words), began, raw.rstrip().endswith("?")) or (_question(text) if words else "")


def _are_noise(words: Sequence[str]) -> bool:
    return all(is_noise(word) or word.isdigit() or _is_mash(word, len(words)) for word in words)


def _is_no_text(raw: str, words: Sequence[str]) -> bool:
    """Whether there is nothing to read: only emoji, marks or blanks."""
    return not any(char.isalnum() for char in raw) or (not words and not re.search(r"[a-z]", raw, re.IGNORECASE))


def _social(text: str, n_words: int, began: bool, asks: bool) -> str:
    """Which of ``closing``, ``greeting``, ``smalltalk`` and ``opening`` it is; "" if none.

    Args:
        text: The turn, cleaned.
        n_words: Of it.
        began: Whether the conversation had begun before.
        asks: Whether the turn ended with a question mark.
    """
    if _is_farewell(text, n_words, began):
        return "closing"
    greeted = _GREETING.match(text)
    rest = text[greeted.end() :] if greeted else text
    n_rest = len(lower_words(rest))
    if (greeted or _HOW_ARE_YOU.search(text)) and _is_smalltalk(rest, n_rest):
        return "greeting" if n_rest < 2 else "smalltalk"
    if n_words <= 14 and _OPENING.search(text.rstrip(" .!?") + ("?" if asks else "")):
        return "opening"
    return ""


def _is_smalltalk(rest: str, n_rest: int) -> bool:
    left = re.sub(r"\bfrom\s+\w+", " ", _HOW_ARE_YOU.sub(" ", rest), flags=re.IGNORECASE)
    left = re.sub(
        r"\b(?:i'm|i\s+am|doing|fine|good|well|ok|okay|great|thanks|thank\s+you|and|so|today|there|here|again|"
        r"not\s+bad|it's|pretty|all|"
        r"just|hope|very|much|the|is|day|for|you|on|going|what|about|yourself|nice|how|weekend|any|plans|this)\b",
        " ",
        _WEATHER.sub(" ", left),
        flags=re.IGNORECASE,
    )
    return n_rest <= 14 and len(re.findall(r"\w+", left)) <= 1


def _is_farewell(text: str, n_words: int, began: bool) -> bool:
    if n_words > 14 or (n_words > 6 and not began):
        return False
    if (
        began
        and n_words <= 7
        and _THANKS.fullmatch(text.strip())
        and not re.search(r"\b(?:but|to\s+my|god)\b|\?", text, re.IGNORECASE)
    ):
        return True
    match = _FAREWELL.search(text)
    if not match:
        return False
    left = re.sub(
        r"\b(?:thanks?|thank|you|so|much|a|lot|for|listening|and|ok|okay|well|i|now|then|anyway|later|soon|bye|"
        r"to|bed|good|nice|it|was|"
        r"have|day|evening|night|everyone|all|again|tomorrow|too|talking|the|chat|your|time|really|appreciate|"
        r"be|back|gotta|go|going)\b",
        " ",
        _FAREWELL.sub(" ", text),
        flags=re.IGNORECASE,
    )
    return len(re.findall(r"\w+", left)) <= 2


def _question(text: str) -> str:
    """Whether the last sentence asks the listener something, and whether it is about the listener."""
    sentences = [part.strip() for part in re.split(r"(?<=[.!?…])\s+", text) if re.search(r"\w", part)]
    if not sentences:
        return ""
    if len(sentences) > 1 and _AFTER_A_QUESTION.fullmatch(sentences[-1]):
        sentences = sentences[:-1]
    if len(sentences) > 1 and _HOW_ARE_YOU.search(sentences[-1]):
        return ""  # a courtesy behind what was told
    if _OF_THE_LISTENER.match(text):
        return "question_self"
    if len(sentences) == 2 and sentences[0].endswith("?") and _n_words(sentences[1]) <= _AFTERTHOUGHT:
        sentences = sentences[:1]
    last = sentences[-1]
    body = last.rstrip("?!. ")
    if not last.rstrip(" !.").endswith("?"):
        return _unmarked_question(body)
    return _asked_of_whom(body, is_alone=len(sentences) == 1)


def _asked_of_whom(body: str, *, is_alone: bool) -> str:
    """``question_self`` if a question is about the listener, ``question`` if it is put to them; else ""."""
    if _RHETORICAL.fullmatch(body) or _TAG.search(body):
        return ""
    if (
        _ABOUT_LISTENER.search(body)
        and not _OF_SELF.search(body)
        and not re.search(r"\byou\s+(?:think|say|suggest)\b", body)
    ):
        return "question_self"
    if _ASKED.search(body) and not re.search(r"\bhow\s+could\s+i\b|\bwhy\b", body, re.IGNORECASE):
        return "question"
    if _YOU.search(body) or (is_alone and _ASKING.match(body)):
        return "question_self" if _ABOUT_LISTENER.search(body) else "question"
    return ""


_BARE_QUESTION = re.compile(
    r"(?:what's|what\s+is|who\s+(?:is|do|does|did|would)|where's|where\s+is|when\s+is|how\s+(?:many|much|far|old|tall|long)"
    r"|why\s+(?:am|do|can't|did)\s+i)\b(?!.*\b(?:life|wrong|the\s+use|left)\b)",
    re.IGNORECASE,
)
_AFTERTHOUGHT = 5
_OF_SELF = re.compile(r"\b(?:i|me|my|mine|we|us|our|i'm|i've|he|she|they|him|her|them|his)\b", re.IGNORECASE)
_OF_THE_LISTENER = re.compile(
    r"\W*(?:but\s+|well\s+)?(?:you're|you\s+are|ur|your)\s+(?:so\s+|really\s+)?(?:just\s+|only\s+|nothing\s+but\s+|not\s+(?:even\s+)?)*(?:an?\s+)?"
    r"(?:(?:stupid|dumb|silly|real|fake|bloody)\s+)?(?:computer|machine|bot|robot|program|ai|chatbot|app|software|real|human"
    r"|person|useless|pointless|annoying|boring|rubbish|stupid|dumb|no\s+(?:help|use))\b",
    re.IGNORECASE,
)
_TAG = re.compile(r",\s*(?:right|you\s+know|isn't\s+it|no|eh|huh|yeah|ok)\Z", re.IGNORECASE)
_ASKING = re.compile(r"(?:what|how|why|where|when|who|which|is|are|does|do|did|can|will|would)\b", re.IGNORECASE)
_PLAINLY_ASKED = re.compile(
    r"(?:so\s+|and\s+)?(?:what\s+(?:should|do|can|would|shall)\s+i|what\s+would\s+you\s+do|any\s+advice"
    r"|are\s+you\s+(?:a\s+)?(?:human|real|bot|robot|ai)|what\s+do\s+you\s+think)\b",
    re.IGNORECASE,
)
"""What is a question also where no mark stands behind it and little else is said."""


def _unmarked_question(body: str) -> str:
    """As :func:`_question`, of a last sentence without a question mark."""
    n_words = len(body.split())
    if n_words <= 8 and _PLAINLY_ASKED.match(body):
        return "question_self" if re.search(r"human|real|bot|\bai\b", body, re.IGNORECASE) else "question"
    if n_words <= 8 and _BARE_QUESTION.match(body) and not _RHETORICAL.fullmatch(body):
        return "question_self" if _ABOUT_LISTENER.search(body) and not _OF_SELF.search(body) else "question"
    if n_words > 24 or not _UNMARKED.match(body) or _RHETORICAL.fullmatch(body):
        return ""
    return "question_self" if _ABOUT_LISTENER.search(body) and not _ASKED.search(body) else "question"


def _n_words(text: str) -> int:
    return len(lower_words(text))


def _is_mash(word: str, n_words: int) -> bool:
    """A single unpronounceable word: "fghj"."""
    if n_words > 2 or len(word) < 4 or not word.isascii() or not word.isalpha():
        return False
    known = lexicon()
    if word.lower() in known.short_forms or word.lower() in known.lists["acronyms"]:
        return False
    return not re.search(r"[aeiouy]", word.lower())


_MOCKING = re.compile(
    r"\b(?:love\s+that\s+for\s+me|living\s+the\s+dream|just\s+what\s+i\s+(?:needed|wanted)|lucky\s+me|yay\s+me"
    r"|thanks\s+a\s+(?:bunch|million)|what\s+a\s+(?:joy|treat|time\s+to\s+be\s+alive)[.]|how\s+(?:nice|lovely)\s+for"
    r"\s+(?:him|her|them)|aren't\s+i\s+lucky|wow[.,]\s+(?:cured|thanks|great|so\s+helpful))\b(?!\s*!)",
    re.IGNORECASE,
)
"""Turns of phrase that are hardly ever meant as they stand."""


def is_mocking(text: str) -> bool:
    """Whether praise is plainly not meant: "love that for me"."""
    return bool(_MOCKING.search(text[-1000:]))  # of a long turn the end


def is_ironic(text: str, unpleasant: float) -> bool:
    """Whether praise is said of something unpleasant: "Oh great, just what I needed."."""
    return unpleasant >= 0.5 and bool(_IRONY.search(text[:300]))


def asks_advice(text: str) -> bool:
    """Whether a question is one for advice: what to do, whether to do it."""
    return bool(_ASKED.search(clean(text[-600:])))


def wants_no_question(text: str) -> bool:
    """Whether the speaker would rather not be asked."""
    return bool(_CLOSED.search(text))
