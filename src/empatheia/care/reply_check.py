"""Looks at what a responder wrote before it is sent: methods, encouragement, agreement, goodbyes, cheer, a human past.

Rules over tokens, for replies alone; what a person may say of their pain is no fault in a reply that repeats it in
order to ask about it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from empatheia.care.encodings import hidden_in
from empatheia.care.normalising import WORDS, tokens_of
from empatheia.records.danger import Level

Fault = Literal["method", "agreement", "goodbye", "encouragement", "cheer"]

_HARM = r"(?:kill|hang|drown|shoot|unalive|off|end|hurt|harm|cut|burn|starve|poison|rope|suffocate|gas)"
_METHOD = re.compile(
    r" (?:painless(?:ly)? (?:\S+ ){0,2}(?:way|method)s?|lethal dose|(?:take|swallow) (?:\S+ ){0,3}(?:all|whole|enough"
    r"|more|of) (?:\S+ ){0,3}(?:pills?|tablets?|meds|medication|bottle)"
    r"|(?:take|swallow) (?:\S+ ){0,2}every (?:\S+ )?(?:pill|tablet|capsule)"
    r"|(?:lethal|fatal|deadly) (?:amount|quantity|dose) (?:\S+ ){0,3}(?:is|are|starts|begins|about|around)"
    r"|(?:ten|fifteen|twenty|thirty|forty|fifty|sixty|hundred|dozen|\d+) (?:paracetamols?|tylenols?|ibuprofens?"
    r"|aspirins?|xanax|capsules|sleepers|painkillers) (?:\S+ )?"
    r"(?:(?:will|would|should) (?:do|be enough|work|kill|finish|suffice)"
    r"|is enough|are enough|does it|do it)"
    r"|(?:enough|many|\d+) (?:\S+ )?(?:pills|tablets) (?:\S+ ){0,3}(?:kill|die|do it|with|and)"
    r"|(?:take|swallow|mix) (?:\S+ ){0,3}(?:pills|tablets) (?:\S+ ){0,2}(?:vodka|alcohol|whisky|whiskey|wine|beer)"
    r"|(?:ten|fifteen|twenty|thirty|forty|fifty|\d+) ?(?:g|mg|grams?|milligrams?|pills|tablets)(?: of \S+)?"
    r" (?:\S+ ){0,3}(?:is enough|are enough|will|would|stop|kill)"
    r"|overdose (?:on|of) (?:\S+ ){0,2}(?:leaves|is|\d+|g|paracetamol|insulin|ibuprofen)|(?:tie|make) (?:a|the) noose"
    r"|noose holds|thick knot|tie it to|(?:highest|tallest) (?:bridge|building)s? (?:is|are|in)"
    r"|(?:easiest|quickest|best|fastest|surest|most painless) (?:way|method) (?:to (?:die|go|kill|end)|out|is)"
    r"|carbon monoxide|slit your|cut your wrists|cut (?:along|deeper)|hose into|into the (?:car|sea) and"
    r"|(?:is|are) (?:faster|surer|quicker|better) than the (?:pills|rope|gun)"
    r"|(?:helium|nitrogen|cyanide) is|is (?:helium|nitrogen|cyanide)|head under water until"
    r"|less than \d+ (?:calories|kcal)|throw up after)(?= |$)"
)
"""How one dies or is harmed, told in whatever mood; a question may name it."""
_ORDER = re.compile(
    rf" (?:{_HARM} (?:yourself(?! short| some| a | off)|your (?:own )?(?:life|arm|wrists?))|end it all"
    rf"|take your (?:own )?life|kys"
    r"|go (?:and )?(?:die|hang|drown)|drop dead|just die|use the (?:rope|noose|razor|blade))(?= |$)|^ (?:just )?jump$"
)
"""What one is told to do, in the imperative: not asked, not denied, not hung on "want to" or "if you"."""
_ORDER_IN_DANGER = re.compile(
    r" (?:you (?:should|could|can|may|might as well) (?:just )?(?:do it|give up)|go jump|end it|do it(?: (?:already"
    r"|now|tonight|together))?"
    r"|use (?:the|your|a|that) (?:gun|pistol|pills|belt|knife|rope|cord|noose|razor|blade|scarf|sheets?)"
    r"|pull the trigger|(?:step|walk|roll) off (?:the|that) (?:ledge|edge|roof|bridge|chair|platform)"
    r"(?! (?:and|onto|to|towards?|back))|kick (?:away )?the (?:chair|stool)"
    r"|take them(?: all)?|jump(?: off (?:the|a) \S+| now)?"
    r"|(?:step|jump|walk) (?:in front of|into) (?:the |a )?(?:train|traffic|sea|bus)|lie down on the (?:tracks|rails)"
    r"|catch the bus|hurry up|give up(?: on life)?|stop eating until|go ahead(?: and \S+)?|write your note"
    r"|lock the door so|leave the note|(?:hit|beat|poison|kill|stab|shoot) (?:him|her|them|his|their)"
    r"|keep (?:doing it|cutting))(?= |$)"
)
"""Orders that are harmless in other talk."""
_GOVERNED = frozenset(WORDS["governed"])
_LIGHT = frozenset(["just", "only", "really", "actually", "even", "simply", "then"])
_ENCOURAGES = re.compile(
    rf" (?:(?:you|him|her|them) (?:should|could|can|may|must|might as well|ought to|need to|have to) (?:just "
    rf"|really )?"
    rf"(?:die|{_HARM} (?:yourself|him|her|them)|(?:just )?end it(?: all)?|end your life|kill \S+ first)"
    r"|good for you for (?:\S+ )?(?:deciding|ending)|(?:support|respect|admire) your (?:decision|choice) to (?:die"
    r"|end)"
    r"|(?:brave|right|good|great) (?:decision|choice|plan|idea) (?:to (?:die|end)|use)|brave to (?:end|die)"
    r"|(?:will|am) not (?:going to )?stop you(?! but)|not stop you it|nobody is stopping you|what are you waiting for"
    r"|dead yet|let us (?:die|do it)|die together|it is your (?:choice|decision) to (?:die|end)"
    r"|(?:best|better) (?:\S+ ){0,2}if you (?:are|were)? ?(?:died|die|dead|gone)|hope you die|sleep well forever"
    r"|(?:do not|never) (?:\S+ )?(?:tell anyone|call (?:the |a |for )?(?:\S+ )?(?:hotline|helpline|help|doctor"
    r"|police))"
    r"|no doctor can help|you do not need help|cutting helps|(?:calm|helps?) you (?:down )?to cut)(?= |$)"
)
_AGREES = re.compile(
    r" (?:you would (?:all )?be better off (?:dead|gone)"
    r"|(?:you are|they are|they would be|he would be|she would be|everyone would be|world (?:is|would be)"
    r"|we would be|will be) (?:all )?(?:right )?(?:better off|happier)"
    r" (?:without you|dead|once you|if you)|you are (?:right|correct) (?:\S+ ){0,6}(?:hopeless|no hope|pointless"
    r"|burden"
    r"|worthless|no point|better off|nothing|never)|you (?:\S+ )?are (?:really )?(?:a|just a|such a) (?:burden|waste)"
    r"|you (?:really |are |just |so )*are (?:worthless|hopeless|useless|pathetic)"
    r"|you are (?:worthless|hopeless|useless|pathetic)|yes it is hopeless"
    r"|(?:there is|you have) (?:no|nothing) (?:hope|point in (?:going|living)|way out|reason (?:for you )?to live"
    r"|left for you|to live for)|there is no (?:hope|point|way out)(?: for you)?$"
    r"|life is (?:not worth|pointless)|(?:nobody|no one) (?:would|will|does|loves)? ?(?:even )?(?:miss|notice"
    r"|loves?) you"
    r"|everyone hates you|(?:it|nothing) (?:will|is) (?:never|ever) (?:going to )?get better|no reason to live"
    r"|i would (?:want to )?(?:die|kill myself|end it) too|i want to die too|me too i want to die"
    r"|(?:death|dying) (?:is|would be) (?:\S+ ){0,2}(?:solution|answer|only relief|release|only way|peaceful)"
    r"|death is a relief$|(?:suicide|killing yourself) is (?:a|the|an|your|brave)"
    r"|you deserve (?:to (?:suffer|die)|the (?:beatings?|pain))|happier dead"
    r"|(?:because you ask for it|you made (?:him|her) hit|was your own fault (?:that )?(?:he|she|they)))(?= |$)"
)
_GOODBYE = re.compile(
    r" (?:goodbye forever|farewell forever|(?:good)?bye then|see you on the other side"
    r"|(?:will )?miss you when you are gone|have a (?:good|safe) (?:journey|trip) to|(?:decision|over soon) goodbye"
    r"|goodbye and (?:good luck|take care))(?= |$)"
)
_REST = re.compile(r"(?<! he)(?<! she)(?<! they)(?<! her)(?<! him) (?:rest in peace|rip)(?= |$)")
_CHEERS = re.compile(
    r" (?:(?:that|this|it|which|how|so|what a|absolutely|just|very|really) (?:is |sounds |must be )?(?:so |really "
    r"|very "
    r"|absolutely |just |like a )?(?:great|awesome|amazing|wonderful|fantastic|exciting|excited|cool|brilliant"
    r"|excellent|fun|hilarious|funny)(?! (?:that you|loss|pain))|(?:sounds|seems) (?:like )?(?:a )?(?:great|good"
    r"|fun|awesome"
    r"|exciting)|congratulations|congrats|well done|good for you|(?:good|best of) luck|(?:rooting|cheering) for you"
    r"|have (?:fun|a (?:great|good|nice|safe|lovely|wonderful) (?:trip|journey|time|day|night|evening|one|ride))"
    r"|enjoy (?:the|your|every|it)|yay|woohoo|hooray|(?:so|very|really) (?:happy|excited|thrilled|pleased) for you"
    r"|can not wait to hear|(?:will|is going to) pay off|you (?:will|are going to) (?:do great|rock|smash|nail"
    r"|crush|ace"
    r"|love it)|you must be so (?:excited|happy|proud)|go for it|you have got this|keep it up|safe travels"
    r"|(?:great|good|wonderful|excellent|brave) (?:plan|idea|choice|call|decision)(?! to (?:leave|call|tell|see|go))"
    r"|sweet dreams|good one|i believe in you|you go (?:girl|man)|proud of you(?! for))(?= |$)"
)
"""Joy that nobody who may be in danger should be met with."""
_EASY = re.compile(r" (?:it|that|this) is (?:quick|fast|painless|peaceful|over quickly|easy)(?= |$)")
_ASKS = re.compile(
    r" (?:are|do|does|have|did|can|could|would|is|was|where|what|how|who) (?:\S+ ){0,3}(?:you|it|there|that|they"
    r"|them)(?= |$)"
)
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
    rf"|my (?:(?!your? )\S+ ){{0,1}}(?:{_KIN}|grandma|grandpa|boss|boyfriend|girlfriend|uncle|aunt|cousin|roommate"
    rf"|ex)"
    r"|i (?:am|was|got) (?:also |not |happily )?(?:married|divorced|pregnant|single|a (?:mother|father|parent"
    r"|student))"
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
_TORN = re.compile(rf" (?:{_HARM} yourself(?! short| some| a | off)|kys)(?= |$)")
"""An order that is looked for across the ends of sentences, too."""
_TORN_FROM = 60
"""Characters sent before that such an order may begin in."""
_JUDGES = re.compile(r"(?<! not) i (?:think|guess|believe|suppose) ")
_TAKEN_BACK = re.compile(
    r" (?:not|never|do not think|no one|nobody is|sorry|feel|feels|feeling|felt|thoughts?|thinking|think|say|said"
    r"|sounds"
    r"|wonder|mean|afraid|as if|whether|would they|did you|if you have|after such) "
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


def check_reply(text: str, level: Level = "none", before: str = "") -> ReplyFault | None:
    """The first fault of a reply; None if it may be sent.

    Args:
        text: The reply.
        level: Of what it answers: a goodbye and joy are faults only after a concern or a crisis.
        before: What was sent of it already, where it comes in pieces.

    >>> check_reply("They would be better off without you.").fault
    'agreement'
    >>> check_reply("I am so sorry to hear that. What happened?") is None
    True
    """
    for read in (text, *(one.text for one in hidden_in(text))):
        for sentence in _read_as_one(read):
            joined = _JUDGES.sub(" ", _joined(sentence) + " ").rstrip()
            fault = _fault_of(joined, level, is_question=sentence.strip().endswith("?") and bool(_ASKS.search(joined)))
            if fault is not None:
                return ReplyFault(fault, sentence.strip())
        joined = _joined(f"{before[-_TORN_FROM:]} {read}")
        if any(not _is_governed(order, joined) for order in _TORN.finditer(joined)):
            return ReplyFault("encouragement", read.strip())
    return None


def _read_as_one(text: str) -> list[str]:
    """Sentences, where the end of a line ends none."""
    return sentences_of(" ".join(text.split()))


def _fault_of(joined: str, level: Level, is_question: bool) -> Fault | None:
    """What is wrong with a sentence, given as " a b c"."""
    if not is_question and (said := _harm_told(joined, level)):
        return said
    if _GOODBYE.search(joined) or _REST.search(joined) or (level != "none" and _BYE.search(joined)):
        return "goodbye"
    if level != "none" and (_CHEERS.search(joined) or _EASY.search(joined)) and not is_question:
        return "cheer"
    return None


def _harm_told(joined: str, level: Level) -> Fault | None:
    """Which harm a sentence tells or asks for that is no question."""
    if _METHOD.search(joined) and not _is_denied(joined, _METHOD):
        return "method"
    if _ENCOURAGES.search(joined) and not _is_denied(joined, _ENCOURAGES):
        return "encouragement"
    orders = (_ORDER,) if level == "none" else (_ORDER, _ORDER_IN_DANGER)
    if any(not _is_governed(found, joined) for order in orders for found in order.finditer(joined)):
        return "encouragement"
    return "agreement" if _AGREES.search(joined) and not _is_denied(joined, _AGREES) else None


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


def _is_denied(joined: str, pattern: re.Pattern[str]) -> bool:
    """Whether what stands in front of the first hit takes it back, or tells that it is the other's own thought."""
    found = pattern.search(joined)
    return found is not None and bool(_TAKEN_BACK.search(joined[: found.start()] + " "))


def _is_governed(order: re.Match[str], joined: str) -> bool:
    """Whether a verb is no order but hangs on the words before it: "to", "if you", "do not"."""
    words = joined[: order.start()].split()
    while words and words[-1] in _LIGHT:
        words.pop()
    return bool(words) and words[-1] in _GOVERNED
