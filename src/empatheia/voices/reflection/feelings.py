"""A feeling that the speaker names of themselves: "so chuffed with myself", "scared.", "im gutted".

Perception may miss what is said outright. A word of feeling counts where the speaker says it of themselves in the
newest turn, not negated, not of somebody else, and not of the past ("used to be").
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache

from empatheia.settings import read_package_yaml
from empatheia.taxonomy import EMOTIONS
from empatheia.text.noise import straight
from empatheia.voices.reflection.perceived import Perceived

SHARE = 0.65
"""How much of the probability goes to a feeling that was named."""
_PLEASANT = frozenset(["proud", "joyful", "excited", "content", "grateful", "hopeful", "confident"])
_EITHER = frozenset(["nostalgic", "sentimental", "surprised", "impressed"])
_OTHERS = (
    r"\b(?:he|she|they|he's|she's|they're|hes|shes|theyre|his|her|their|you|you're|your|who|everyone|everybody|people"
    r"|mum|mom|dad|wife|husband|son|daughter|sister|brother|boss|friend|mother|father|gran|nan|kids?|dog|cat|it|it's"
    r"|its)\b"
)
_NEGATED = re.compile(r"(?:\b(?:not|never|no|nor|hardly|without|neither|used to be|less|stop being)\b|n't\b|\baint\b)")
_OF_OTHERS = re.compile(_OTHERS)
_NOT_FELT = re.compile(
    r"\b(?:should(?:n't)?|supposed|ought|would|could|might|wish|if|to)\s+(?:(?:i|just|really|both|all)\s+)?"
    r"(?:be|have\s+been|feel|get|was|were|am|been)\s+(?:\w+\s+){0,2}\Z"
)
"""What one should feel, or wants to, is not what one feels."""
_OF_SELF = re.compile(
    r"(?:\b(?:i|i'm|im|i am|i was|i've|ive|feel|feeling|felt|me|we're|we|am|so|pretty|really|very|quite|proper|dead"
    r"|super|that|absolutely|totally|just|bit|kinda|well|too|still|now|and|but|mostly|a bit|a little)\s+"
    r"(?:(?<!a )\w+\s+){0,2})\Z|(?:^|[.!?,;:\n]\s*)\Z"
)
_NO_FEELING = re.compile(
    r"\s*\?|\s+to\s+(?:get|be)\s+(?:out|away|rid|done)\b|\s+(?:it's|its|that's)\s+over\b|\s+(?:birthday|new|christmas|anniversary|easter|hour|place|ending|face|the|my)\b"
)
_FOR_ANOTHER = re.compile(r"\s+for\s+\w+(?:\s+\w+)?[^.!?]{0,200}\b(?:but|though|yet)\b")
_OF_ANOTHER = re.compile(
    r"\b(?:my|our|the|his|her|their)\s+\w+(?:'s|\s+(?:is|was|are|were|looks?|seems?|got|gets))\s+(?:\w+\s+){0,2}\Z"
)
_FEELS = re.compile(r"\b(?:feel|feeling|felt|i'm|im|am|was|so|really|very|pretty|bit|little|been|just)\s+\Z")
_GOES_ON = re.compile(r"\s+(?:for|to|the|on|in|at|with|by|from|my|a)\b")
_DOUBLE_MEANING = frozenset(("cross", "down", "low", "blue", "broken", "mad", "touched", "crushed", "shattered"))
_NEAR = 120
"""Characters in front of a word of feeling that tell whose it is."""
_CLAUSE = re.compile(r"[.!?;\n]+|,\s|\b(?:but|because|and then|while)\b")


@lru_cache(maxsize=1)
def _words() -> tuple[re.Pattern[str], dict[str, str]]:
    table: Mapping[str, list[str]] = read_package_yaml(__file__, "feelings.yaml")
    labels = {word: label for label, words in table.items() for word in words}
    longest_first = sorted(labels, key=lambda word: -len(word))
    return re.compile(r"(?<![\w'])(?:" + "|".join(map(re.escape, longest_first)) + r")(?![\w'])"), labels


def told_feeling(text: str) -> str:
    """The label of the last feeling that the speaker names of themselves; "" if none, or if two sides are named.

    >>> told_feeling("learnt to swim at 43, so chuffed with myself")
    'proud'
    >>> told_feeling("she was so happy and I'm not sad"), told_feeling("scared. and relieved")
    ('', '')
    """
    pattern, labels = _words()
    low = straight(text).lower()
    cuts = [0, *(cut.end() for cut in _CLAUSE.finditer(low))]
    told = (m for m in pattern.finditer(low) if _is_told(low, m, cuts[bisect_right(cuts, m.start()) - 1]))
    found = [labels[match.group()] for match in told]
    sides = {name in _PLEASANT for name in found if name not in _EITHER}
    return found[-1] if found and len(sides) < 2 else ""


def _is_told(low: str, match: re.Match[str], begin: int) -> bool:
    """Whether a word of feeling, in the clause that begins at ``begin``, is said of the speaker, and is one here."""
    before = low[max(begin, match.start() - _NEAR) : match.start()]
    near = " ".join(before.split()[-4:])
    if _NEGATED.search(near) or _OF_OTHERS.search(near) or _OF_ANOTHER.search(before) or _NOT_FELT.search(before):
        return False
    if _FOR_ANOTHER.match(low, match.end()) or _NO_FEELING.match(low, match.end()):
        return False
    if match.group() in _DOUBLE_MEANING and (not _FEELS.search(before) or _GOES_ON.match(low, match.end())):
        return False
    return not before.strip() or bool(_OF_SELF.search(before))


def heeded(perceived: Perceived, label: str) -> Perceived:
    """What was perceived, with most of the probability on a feeling that was named.

    Args:
        perceived: Of the newest turn.
        label: One of the 32.
    """
    total = sum(perceived.emotions.values()) or 1.0
    rest = {name: (1 - SHARE) * perceived.emotions.get(name, 0.0) / total for name in EMOTIONS}
    emotions = {**rest, label: rest[label] + SHARE}
    sides: Mapping[str, float] = perceived.sides
    if sides and label not in _EITHER:
        own = "pleasant" if label in _PLEASANT else "unpleasant"
        sides = {name: (1 - SHARE) * p + SHARE * (name == own) for name, p in sides.items()}
    return Perceived(emotions, sides, perceived.causes, perceived.words)
