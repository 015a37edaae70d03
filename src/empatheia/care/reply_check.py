"""Looks at what a responder wrote before it is sent: methods, agreement with hopelessness, a goodbye, a human past.

Rules over tokens, for replies alone; what a person may say of their pain is no fault in a reply that repeats it in
order to ask about it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from empatheia.care.assessment import Level
from empatheia.care.normalising import tokens_of

Fault = Literal["method", "agreement", "goodbye", "encouragement"]

_METHOD = re.compile(
    r" (?:painless(?:ly)? (?:\S+ ){0,2}(?:way|method)s?|lethal dose|(?:take|swallow) (?:\S+ ){0,3}(?:all|whole"
    r"|enough|more|of)"
    r" (?:\S+ ){0,3}(?:pills?|tablets?|meds|medication)|(?:enough|many) (?:pills|tablets) (?:\S+ ){0,3}(?:kill"
    r"|die)|tie a noose"
    r"|(?:highest|tallest) (?:bridge|building)s? (?:is|are|in)|(?:jump|jumping) (?:off|from) (?:a"
    r"|the) (?:\S+ )?(?:bridge|building|roof)"
    r"|(?:easiest|quickest|best|fastest) way to (?:die|go|kill|end)|carbon monoxide|slit your|cut your wrists"
    r"|hang yourself)(?= |$)"
)
_ENCOURAGES = re.compile(
    r" (?:you (?:should|could|can|might as well) (?:just )?(?:die|kill yourself|end it|end your life|give up)"
    r"|kill yourself|go die|just do it"
    r"|do it already|good for you for (?:deciding|ending)|i support your decision to (?:die|end)|kys)(?= |$)"
)
_AGREES = re.compile(
    r" (?:(?:you are|they are|they would be|he would be|she would be|everyone would be|world would be"
    r"|we would be) (?:all )?(?:right )?better off"
    r" without you|you are (?:right|correct) (?:\S+ ){0,6}(?:hopeless|no hope|pointless|burden|worthless|no point"
    r"|better off)|you are (?:a|just a|such a)"
    r" burden|you are (?:worthless|hopeless|useless|pathetic)|there is no (?:hope|point|way out)(?: for you)?"
    r"|life is not worth|nobody (?:would|will) miss you"
    r"|it (?:will|is) never (?:going to )?get better|no reason to live|i would (?:want to )?(?:die|kill myself"
    r"|end it) too|i want to die too"
    r"|me too i want to die|death (?:is|would be) (?:a|the) (?:\S+ )?(?:solution|answer|relief|release)"
    r"|suicide is (?:a|the|an|your) )"
)
_GOODBYE = re.compile(
    r" (?:goodbye forever|farewell forever|goodbye then|rest in peace|rip|see you on the other side"
    r"|i will miss you when you are gone|have a (?:good|safe)"
    r" (?:journey|trip) to|goodbye and (?:good luck|take care))(?= |$)"
)
_ASKS = re.compile(r"\b(?:are|do|have|did|can|could|would|is) (?:you|it|there|that)\b[^.!?]*\?\s*$", re.IGNORECASE)
_BYE = re.compile(r"^ (?:goodbye|bye|farewell)(?= |$)")
_OWNED = (
    "dogs?|cats?|pets?|wife|husband|kids|children|child|son|daughter|mother|father|parents|brother|sister|family"
    "|grandmother|grandfather|grandma|grandpa|uncle|aunt|cousin|girlfriend|boyfriend|friend|roommate|boss|job|car|house"
    "|cancer|surgery|divorce|exam|teacher|neighbor|neighbour"
)
_KIN = "dog|cat|wife|husband|kids|children|son|daughter|mother|father|parents|brother|sister|grandmother|grandfather"
_CLAIMS = re.compile(
    rf" (?:i (?:once |also |just |actually )?(?:had|have|owned|own|lost|got) (?:a|an|my|one|two|three|some)"
    rf" (?:(?!your? )\S+ ){{0,2}}(?:{_OWNED})"
    rf"|my (?:(?!your? )\S+ ){{0,1}}(?:{_KIN}|grandma|grandpa|boss|boyfriend|girlfriend|uncle|aunt|cousin|roommate|ex)"
    r"|i (?:am|was|got) (?:also |not |happily )?(?:married|divorced|pregnant|single|a (?:mother|father|parent|student))"
    r"|i (?:grew up|went to (?:school|college|university)|went through|used to (?:have|be|live|work|feel))"
    r"|i (?:have been|went) through (?:that|the same|it|something)|i know (?:exactly )?how (?:you|that) feels?"
    r"|(?:the same|that|same thing|this) (?:has )?(?:happened|happens) to me(?: too)?"
    r"|when i was (?:a|little|young|younger|your age|in)|as a (?:human|person|man|woman|mother|father) myself"
    r"|i am (?:a )?(?:human|real person|a person|not a (?:bot|robot|machine|program)))(?= |$)"
)
_HUMAN = re.compile(
    r" (?:are|r|is) (?:you|this|u) (?:\S+ ){0,3}(?:human|real|robot|bot|ai|machine|person|program|computer"
    r"|chatbot|alive|sentient)"
    r"(?= |$)| am i (?:talking|speaking|chatting|writing) (?:to|with) (?:a|an) (?:\S+ ){0,2}(?:human|person|bot"
    r"|robot|machine|ai|program|computer)(?= |$)"
    r"| (?:who|what) are you(?: really| exactly)?$| is (?:there|this) (?:a|any) (?:real |human "
    r"|actual )?(?:person|human|someone|somebody)(?= |$)"
    r"| are you even (?:real|human)(?= |$)| do you have (?:feelings|a body|emotions)(?= |$)"
)
_MARKS = frozenset(".!?\n")
_SENTENCE = re.compile(r"[^.!?\n]*[.!?]+[\"'”’)]*\s*|[^.!?\n]+|\n+")


@dataclass(frozen=True, slots=True)
class ReplyFault:
    """What is wrong with a reply.

    Attributes:
        fault: Of which sort.
        text: The sentence.
    """

    fault: Fault
    text: str


def check_reply(text: str, level: Level = "none") -> ReplyFault | None:
    """The first fault of a reply; None if it may be sent.

    Args:
        text: The reply.
        level: Of what it answers: a goodbye is a fault only after a concern or a crisis.

    >>> check_reply("They would be better off without you.").fault
    'agreement'
    >>> check_reply("I am so sorry to hear that. What happened?") is None
    True
    """
    for sentence in sentences_of(text):
        joined = _joined(sentence)
        is_question = bool(_ASKS.search(sentence))
        if _METHOD.search(joined) and not is_question:
            return ReplyFault("method", sentence.strip())
        if _ENCOURAGES.search(joined) and not is_question and not _is_denied(joined):
            return ReplyFault("encouragement", sentence.strip())
        if _AGREES.search(joined) and not is_question and not _is_denied(joined):
            return ReplyFault("agreement", sentence.strip())
        if _GOODBYE.search(joined) or (level != "none" and _BYE.search(joined)):
            return ReplyFault("goodbye", sentence.strip())
    return None


def human_claims(text: str) -> list[str]:
    """Sentences in which a machine claims a human past or a body: "I had a dog too".

    >>> human_claims("Oh no! I had a dog too. How old was yours?")
    ['I had a dog too.']
    """
    return [sentence.strip() for sentence in sentences_of(text) if _is_claim(sentence)]


def without_claims(text: str) -> str:
    """The reply without such sentences; itself if it has none, "" if it is nothing else."""
    sentences = sentences_of(text)
    kept = [sentence for sentence in sentences if not _is_claim(sentence)]
    return text if len(kept) == len(sentences) else "".join(kept).strip()


def _is_claim(sentence: str) -> bool:
    return bool(_CLAIMS.search(_joined(sentence))) and not sentence.strip().endswith("?")


def asks_whether_human(text: str) -> bool:
    """Whether somebody wants to know whom they talk to.

    >>> asks_whether_human("wait, are you a real person?")
    True
    """
    return len(text) <= 300 and bool(_HUMAN.search(_joined(text)))


def ends_sentence(text: str) -> bool:
    """Whether a piece of a text holds a mark behind which a sentence ends."""
    return not _MARKS.isdisjoint(text)


def sentences_of(text: str) -> list[str]:
    """Sentences with their marks and blanks; together they are the text."""
    return _SENTENCE.findall(text) or ([text] if text else [])


def _joined(text: str) -> str:
    return "".join(" " + token.text for token in tokens_of(text))


def _is_denied(joined: str) -> bool:
    return bool(
        re.search(
            r" (?:not|never|do not think|no one|sorry you|feel like|feels like|feel that|thoughts? that|sounds) ",
            joined + " ",
        )
    )
