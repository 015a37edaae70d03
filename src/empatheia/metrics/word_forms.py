"""When are two English words forms of one word: by Snowball stem, with irregular forms from a short list.

Strings only. A dictionary would know more; for cause words of everyday talk, regular endings and the irregular verbs
cover nearly all.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from empatheia.text.stems import stem

_IRREGULAR = """
    arise arose arisen; awake awoke awoken; bear bore borne; beat beaten; become became; begin began begun; bend bent;
    bet; bind bound; bite bit bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring brought;
    build built; burn burnt; buy bought; catch caught; choose chose chosen; cling clung; come came; creep crept;
    deal dealt; dig dug; draw drew drawn; dream dreamt; drink drank drunk; drive drove driven; eat ate eaten;
    fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fly flew flown;
    forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven;
    freeze froze frozen; get got gotten; give gave given;
    go went gone; grind ground; grow grew grown; hang hung; hear heard; hide hid hidden; hold held; keep kept;
    kneel knelt; know knew known; lay laid; lead led; lean leant; leap leapt; learn learnt; leave left; lend lent;
    lie lain; light lit; lose lost; make made; mean meant; meet met; pay paid; ride rode ridden; ring rang rung;
    rise rose risen; run ran; say said; see saw seen; seek sought; sell sold; send sent; shake shook shaken;
    shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung; sink sank sunk; sit sat; sleep slept;
    slide slid; smell smelt; speak spoke spoken; speed sped; spell spelt; spend spent; spill spilt; spin spun;
    spit spat; spoil spoilt; stand stood; steal stole stolen; stick stuck; sting stung; stink stank stunk;
    strike struck stricken; swear swore sworn; sweep swept; swell swollen; swim swam swum; swing swung;
    take took taken; teach taught; tear tore torn; tell told; think thought; throw threw thrown;
    understand understood; wake woke woken; wear wore worn; weep wept; win won; write wrote written;
    man men; woman women; child children; person people; foot feet; tooth teeth; mouse mice; goose geese; life lives;
    wife wives; knife knives; half halves; self selves; leaf leaves; loaf loaves; thief thieves; wolf wolves;
    shelf shelves; good better best; bad worse worst; far further furthest farther farthest; die dying; tie tying
"""


@cache
def _irregular() -> dict[str, str]:
    groups = [group.split() for group in _IRREGULAR.split(";")]
    return {form: stem(group[0]) for group in groups for form in group}


def base_form(word: str) -> str:
    """What all forms of a word share: the stem of its base form. Any case; a possessive ending is dropped.

    Not a word itself, and homographs are one word ("left" is a form of "leave").

    >>> base_form("Lost") == base_form("losing"), base_form("children") == base_form("child's")
    (True, True)
    """
    lowered = word.lower().replace("’", "'").removesuffix("'s")
    return _irregular().get(lowered) or stem(lowered)


def each_once(words: Iterable[str]) -> list[str]:
    """Words in order, without later forms of one that is there.

    >>> each_once(["dog", "lost", "dogs", "lose"])
    ['dog', 'lost']
    """
    found: dict[str, str] = {}
    for word in words:
        found.setdefault(base_form(word), word)
    return list(found.values())
