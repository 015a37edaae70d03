"""Puts the answer together: what was heard, what it must be like, at most one question."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from empatheia.errors import DataError
from empatheia.records.dialogue import Turn
from empatheia.voices.reflection.clauses import Said
from empatheia.voices.reflection.forms import Form, capitalised, fill, pool, topic_pool
from empatheia.voices.reflection.perceived import Perceived, Reflected
from empatheia.voices.reflection.scene import BAD, Scene, content_of, scene_of
from empatheia.voices.reflection.talk import asks_advice
from empatheia.voices.reflection.topics import GENERAL

LONGEST_REPLY = 40
_LONG_CLAUSE, _LONG_UNCLEAR, _LONG_INSIDE, _SHORT_CLAUSE, _LONG_TURN = 12, 14, 10, 8, 25
_PART = 0.3  # of the score of the best clause that a shorter one must have
_WHOLE = ("question", "question_self", "greeting", "smalltalk", "closing", "short", "brief", "notext", "irony")
_DOES = re.compile(r"you(?:'d|'ll|'ve been)? (?!lost|have|got|can't|couldn't|didn't|missed)")
_SORRY = re.compile(r"\b(?:sorry|sad that|awful that|Oh no)\b")
_LOOKS_BACK = re.compile(r"\b(?:did|was|were|happened|has it been|took|went|must have)\b", re.IGNORECASE)
_ASKS_HOW_LONG = re.compile(
    r"\b(?:how long (?:has|have)|going on|been like|for long|still (?:going|happening))\b", re.IGNORECASE
)
_PRAISES = re.compile(
    r"\b(?:lovely|wonderful|glad|great|nice|happy|special|treat|good news|love that)\b", re.IGNORECASE
)
_EITHER = ("memory", "mixed", "care", "wonder")
_CALM = frozenset(["content", "trusting", "caring", "faithful", "nostalgic", "sentimental"])
_DOUBTED = re.compile(r"n't\b|\b(?:not|never|no|nobody|might|could|would|should|wish|if|miss|without)\b")
_REPORTS = re.compile(r"\b(?:said|says|told|asked|thinks?|thought|knows?|wants?)\b")
_NO_EVENT = re.compile(
    r"\A(?:you have no\b"
    r"|you(?:'re| are| were| feel| felt| think| thought| know| want| need| hope| wish| guess| would(?:n't)?"
    r"| might)\b|today|yesterday|tonight|last|this (?:week|morning|year|month)|when|after|now|then|sometimes|every"
    r"|it's|there|the other|one (?:day|time|night)|once|recently|lately)",
    re.IGNORECASE,
)


def reflect(turns: Sequence[Turn], perceived: Perceived, n: int = 1, seed: int = 0) -> list[Reflected]:
    """Answers the newest speaker turn.

    Args:
        turns: The conversation; the newest turn is the speaker's.
        perceived: What was understood of it.
        n: How many different answers are wanted.
        seed: Another seed gives other forms.

    Returns:
        Up to ``n`` different answers, best first; at least one.

    Raises:
        DataError: There is no turn, the newest is not the speaker's, ``n`` is below 1, or a span lies outside.
    """
    if not turns or turns[-1].role != "speaker":
        raise DataError("the newest turn must be the speaker's.")
    if n < 1:
        raise DataError(f"n must be at least 1, not {n}.")
    for span in (*perceived.causes, *perceived.words):
        if not (0 <= span.turn < len(turns) and 0 <= span.start <= span.end):
            raise DataError(f"a span of turn {span.turn} lies outside the conversation of {len(turns)} turns.")
    scene = scene_of(tuple(turns), perceived, seed)
    out: dict[str, Reflected] = {}
    for salt in range(3 * n + 2):
        answer = _answer(scene, salt)
        out.setdefault(answer.text, answer)
        if len(out) == n:
            break
    return list(out.values())


class _Chooser:
    """Draws forms of one reply: spread by a hash of the conversation, none that was used before."""

    def __init__(self, scene: Scene, salt: int) -> None:
        self.scene, self.salt = scene, salt
        self.ids: list[str] = []
        self.content: frozenset[str] = frozenset()
        self.key = hashlib.blake2b(scene.key, digest_size=32).digest()

    def number(self, what: str) -> int:
        """A number that hangs on the conversation and on ``what`` alone."""
        data = hashlib.blake2b(f"{what}/{self.salt}".encode(), key=self.key, digest_size=4).digest()
        return int.from_bytes(data, "big")

    def form(self, part: str, moments: tuple[str, ...], accept: Callable[[Form], bool] | None = None) -> Form | None:
        """The first form that fits whatever is told and is new, in an order of this conversation's own."""
        return self._first(pool(part, moments), accept)

    def topical(self, part: str, accept: Callable[[Form], bool] | None = None) -> str:
        """A sentence for what is told of, filled; "" if there is none that fits and is new."""
        scene = self.scene
        moments = (scene.seen.moment, *scene.seen.wildcards)
        for topic in scene.topics:
            for with_who in (True, False) if topic.who else (False,):
                forms = [form for form in topic_pool(part, topic.name, moments) if bool(form.slot) == with_who]
                if with_who and self.number(f"who/{part}/{topic.name}") % 3 == 0:
                    continue
                form = self._first(forms, accept)
                if form is not None:
                    return fill(self.take(form), who=topic.who)
        return ""

    def _first(self, forms: Sequence[Form], accept: Callable[[Form], bool] | None) -> Form | None:
        fitting = [form for form in forms if self._is_fitting(form) and (accept is None or accept(form))]
        fitting.sort(key=lambda form: (not form.emotions and self.number(form.id) % 3 == 0, self.number(form.id)))
        return next((f for f in fitting if not f.is_in(self.scene.used) and f.id not in self.ids), None)

    def _is_fitting(self, form: Form) -> bool:
        """Whether a form fits what is felt, whose it is, its time, and what was asked already in this reply."""
        if not form.fits(self.scene.seen.label, self.scene.seen.possible) or not self._in_tone(form):
            return False
        if form.is_own and not self.scene.is_own:
            return False
        if form.part == "ask" and content_of(form.text) & self.content:
            return False
        return form.part not in ("side", "ask") or bool(form.topics) or _fits_time(form, self.scene)

    def _in_tone(self, form: Form) -> bool:
        """An exclamation mark is for gladness that is likely and not a quiet one, praise for what is not also sad."""
        seen = self.scene.seen
        if form.part in ("side", "say", "feel") and seen.moment in _EITHER and _PRAISES.search(form.text):
            return seen.pleasant >= 0.5 and seen.unpleasant < 0.3
        if "!" not in form.text or form.part == "whole":
            return True
        is_lively = seen.label not in _CALM or "!" in self.scene.turns[-1].text
        return is_lively and seen.pleasant >= 0.6 and seen.unpleasant < 0.3

    def names_feeling(self) -> bool:
        """Whether a form that names the feeling was taken."""
        return any(".feel." in name for name in self.ids)

    def take(self, form: Form) -> Form:
        """Notes that the form is used, and its words, which no question of the same reply repeats."""
        self.ids.append(form.id)
        self.content |= content_of(fill(form, feeling=self.scene.seen.feeling) if form.slot == "feeling" else form.text)
        return form


def _answer(scene: Scene, salt: int) -> Reflected:
    chooser = _Chooser(scene, salt)
    moment = "question" if scene.moment == "question_self" else scene.moment
    sentences, back = _whole_reply(scene, chooser, moment) if scene.moment in _WHOLE else _reflection(scene, chooser)
    if not sentences:
        sentences = [_last_resort(scene, chooser)]
    return Reflected(" ".join(sentences), tuple(chooser.ids), back, scene.seen.sureness, moment)


def _whole_reply(scene: Scene, chooser: _Chooser, moment: str) -> tuple[list[str], str]:
    """For talk that is no telling: a ready reply, sometimes after what was told with it."""
    best = scene.said[0] if scene.said else None
    if moment == "short":
        return _to_a_short_turn(scene, chooser, best)
    form = _ready(scene, chooser, moment)
    if form is None:
        return _tail(scene, chooser), ""
    first, back = _before_the_answer(scene, chooser, best) if scene.moment == "question" else ("", "")
    return [*([first] if first else []), chooser.take(form).text], back


def _ready(scene: Scene, chooser: _Chooser, moment: str) -> Form | None:
    """The ready reply; about this program where the listener was asked about itself, no question if none is wanted."""
    about = scene.moment == "question_self"
    advice = scene.moment == "question" and asks_advice(scene.turns[-1].text)
    form = chooser.form(
        "whole",
        ("advice",) if advice else (moment,),
        lambda form: moment != "question" or bool(re.search("program|software", form.text)) == about,
    )
    if form is not None and moment == "irony" and form.text.endswith("?") and not scene.may_ask:
        return chooser.form("whole", (moment,), lambda form: not form.text.endswith("?")) or form
    return form


def _before_the_answer(scene: Scene, chooser: _Chooser, best: Said | None) -> tuple[str, str]:
    """What is said of what was told, before the question asked with it is answered; and what of it is said back."""
    first = chooser.topical("side") if scene.is_news and not scene.topics[0].is_light else ""
    if first:
        return first, ""
    if best is not None and best.kind == "clause" and len(best.text.split()) <= _LONG_INSIDE:
        return capitalised(best.text) + ".", best.text
    return "", ""


def _to_a_short_turn(scene: Scene, chooser: _Chooser, best: Said | None) -> tuple[list[str], str]:
    """To "yeah" or "idk": what was told before is taken up, or room is made; "all passed!!!" is an answer to echo."""
    if scene.echo:
        return _echoed(scene, chooser)
    if best is not None and chooser.number("take up") % 2:
        tail = _tail(scene, chooser)
        say = chooser.form("say", ("short",))
        if say is not None and tail:
            return [fill(chooser.take(say), clause=best.text), *tail], best.text
    if scene.seen.sureness != "none" and scene.seen.wildcards[0] == "any_pleasant":
        return _without_clause(replace(scene, said=()), chooser)
    form = chooser.form("whole", ("short",), lambda form: scene.may_ask or "?" not in form.text)
    return ([chooser.take(form).text], "") if form is not None else (_tail(scene, chooser), "")


def _echoed(scene: Scene, chooser: _Chooser) -> tuple[list[str], str]:
    """A short turn in the speaker's own words, then what it must be like or a question."""
    lively = "!" in scene.turns[-1].text and scene.seen.pleasant >= scene.seen.unpleasant
    sentences = [scene.echo + ("!" if lively else ".")]
    second = _side(scene, chooser, _follows)
    sentences += [second] if second else []
    return [*sentences, *_rest(scene, chooser, sentences, 60 if second else 100)], scene.echo


def _reflection(scene: Scene, chooser: _Chooser) -> tuple[list[str], str]:
    """What was heard, then what it must be like or one question."""
    best = _best(scene, chooser)
    topical = scene.is_news and scene.topics[0].name not in GENERAL
    if best is None or scene.only_stay or (topical and chooser.number("by topic") % 100 < 50):
        return _without_clause(scene, chooser)
    if not _worth_saying(best, scene, chooser):
        return _without_clause(scene, chooser)
    inside = _inside(best, scene, chooser) if chooser.number("inside") % 100 < 75 else ""
    if inside:
        sentences = [inside]
        return [*sentences, *_rest(scene, chooser, sentences, 75)], best.text
    shown = 60 if len(best.text.split()) <= _SHORT_CLAUSE else 40
    if scene.seen.sureness != "none" and chooser.number("bare") % 100 >= shown:
        return _without_clause(scene, chooser)
    sentences = [_bare(best, scene)]
    second = _second(scene, chooser, best)
    if second:
        sentences.append(second)
    return [*sentences, *_rest(scene, chooser, sentences, 35 if second else 100)], best.text


def _worth_saying(best: Said, scene: Scene, chooser: _Chooser) -> bool:
    """Whether a clause is short enough, and surely the point of what was told."""
    length = len(scene.turns[-1].text.split())
    if best.kind == "fragment" and len(scene.turns) > 1:  # "some printer ink": an answer, no telling
        return False
    if length <= _LONG_TURN:
        return len(best.text.split()) <= _longest(scene)
    unclear = scene.seen.sureness == "none"
    if not best.sure or best.kind != "clause" or len(best.text.split()) > (_LONG_CLAUSE if unclear else _LONG_INSIDE):
        return False
    return chooser.number("of a long turn") % 100 < (85 if unclear else 50)


def _rest(scene: Scene, chooser: _Chooser, sentences: Sequence[str], asks: int) -> list[str]:
    """A question in ``asks`` of 100 cases; else often nothing, or an invitation."""
    if any("?" in sentence for sentence in sentences):
        return []
    draw = chooser.number("rest") % 100
    mark = len(chooser.ids)
    if draw < asks:
        tail = _tail(scene, chooser)
    elif len(sentences) == 1:
        is_named = chooser.names_feeling() or scene.seen.feeling in sentences[0].lower()
        second = _feel(scene, chooser) if not is_named and chooser.number("name") % 100 < 60 else ""
        tail = [second] if second else _tail(scene, chooser, asks=False)
    else:
        tail = []
    if sum(len(sentence.split()) for sentence in (*sentences, *tail)) > LONGEST_REPLY:
        del chooser.ids[mark:]
        return []
    return tail


def _best(scene: Scene, chooser: _Chooser) -> Said | None:
    """The clause to say back; other candidates of a reply may take another that is nearly as good."""
    if not scene.said:
        return None
    told = _short_enough(scene)
    top = told[0]
    good = [said for said in told if said.score >= top.score - 0.4 * max(0.5, abs(top.score)) and said.kind == top.kind]
    return good[chooser.salt // 2 % len(good)] if chooser.salt else top


def _short_enough(scene: Scene) -> Sequence[Said]:
    """What can be said back, without the longer clauses where a shorter one is of the same matter.

    In a later turn without fragments, which are answers there and tell nothing.
    """
    clauses = [said for said in scene.said if said.kind == "clause"] if len(scene.turns) > 1 else scene.said
    told = clauses or scene.said
    short = [said for said in told if len(said.text.split()) <= _longest(scene) and said.score >= _PART * told[0].score]
    return short or told


def _longest(scene: Scene) -> int:
    """Words of a clause that is said back by itself; more where only its words show that one has listened."""
    return _LONG_UNCLEAR if scene.seen.sureness == "none" else _LONG_CLAUSE


def _bare(best: Said, scene: Scene) -> str:
    """What was said, by itself."""
    return capitalised(best.text) + ("!" if best.excited and _is_glad(scene) else ".")


def _is_glad(scene: Scene) -> bool:
    return scene.seen.pleasant >= 0.7 and scene.seen.unpleasant < 0.2


def _inside(best: Said, scene: Scene, chooser: _Chooser) -> str:
    """The clause within a sentence of the listener's: "I'm so sorry your dog died."; "" where that may go wrong."""
    if not _may_stand_inside(best, scene):
        return ""
    moments = (scene.seen.moment, *scene.seen.wildcards)
    form = chooser.form("say", moments, lambda form: _takes(form, best, scene))
    return fill(chooser.take(form), clause=best.text) if form is not None else ""


def _may_stand_inside(best: Said, scene: Scene) -> bool:
    """Whether a clause is short and plain enough, and nothing in it speaks against the feeling."""
    if best.kind != "clause" or not best.text[0].islower() or len(best.text.split()) > _LONG_INSIDE:
        return False
    is_good = scene.seen.wildcards[0] == "any_pleasant" or scene.seen.moment == "memory"
    return "," not in best.text and not (is_good and _DOUBTED.search(best.text))


def _is_event(said: Said) -> bool:
    """Whether a clause tells for sure what happened, not what is felt, thought or reported."""
    return said.sure and not said.feeling and not _NO_EVENT.match(said.text) and not _REPORTS.search(said.text)


def _takes(form: Form, best: Said, scene: Scene) -> bool:
    """Whether a form can take in a clause."""
    event = _is_event(best)
    if "{clause}?" in form.text and (not scene.may_ask or not event):
        return False
    if form.text == "So {clause}." and scene.seen.sureness != "none":
        return False
    if scene.seen.moment != "shame" and _SORRY.search(form.text):
        is_told = scene.is_news and any(topic.side == "unpleasant" for topic in scene.topics)
        if _DOES.match(best.text) or "finally" in best.text or not (is_told or BAD.search(best.text)):
            return False
    return event if "so {clause}." not in form.text.lower() else not best.text.startswith("so ")


def _second(scene: Scene, chooser: _Chooser, best: Said | None = None) -> str:
    """What it must be like: for what is told of, by the feeling's name, or only that it is good or hard."""
    named = best is not None and (best.feeling or scene.seen.feeling in best.text.lower())
    if scene.is_news and chooser.number("second by topic") % 100 < 50:
        text = chooser.topical("side", _follows)
        if text:
            return text
    if not named and chooser.number("name") % 100 < _names_in(scene):
        text = _feel(scene, chooser)
        if text:
            return text
    return _side(scene, chooser, _follows)


def _follows(form: Form) -> bool:
    """Whether a form may be the second sentence: no exclamation such as "Oh no."."""
    return not re.match(r"(?:Oh|Ugh|Wow|Ew|Yuck|Ouch|Yum|Well done|Good for)\b", form.text)


def _names_in(scene: Scene) -> int:
    """In how many of 100 cases a sure feeling is named: "you sound caring" is said more rarely than "you're angry"."""
    if scene.seen.label == "content":  # a quiet gladness: "of course you're happy" is too much
        return 10
    return {"trust": 0, "care": 15, "memory": 15, "wonder": 15}.get(scene.seen.moment, 45)


def _feel(scene: Scene, chooser: _Chooser) -> str:
    """A sentence that names the feeling, where it is sure."""
    seen = scene.seen
    form = chooser.form("feel", (seen.moment,)) if seen.sureness == "name" else None
    if form is None:
        return ""
    chooser.take(form)
    if seen.feeling == "guilty":  # "you're guilty" would be a verdict
        text = re.sub(r"\b([Yy])ou(?:'re| are| sound)(?= (?:\w+ )?\{feeling\})", r"\1ou feel", form.text)
        form = replace(form, text=text)
    return fill(form, feeling=seen.feeling)


def _side(scene: Scene, chooser: _Chooser, accept: Callable[[Form], bool] | None = None) -> str:
    seen = scene.seen
    if seen.sureness == "none":
        return ""
    form = chooser.form("side", (seen.moment,), accept) or chooser.form("side", seen.wildcards, accept)
    return chooser.take(form).text if form is not None else ""


def _tail(scene: Scene, chooser: _Chooser, asks: bool = True) -> list[str]:
    """A question; an invitation where none may be asked or none is left."""
    for part in ("ask", "stay") if scene.may_ask and asks else ("stay",):
        text = _topical_tail(scene, chooser, part)
        if text:
            return [text]
        for group in ((scene.seen.moment,), scene.seen.wildcards, ("unclear",)):
            form = chooser.form(part, group, lambda form: _is_new(form, scene))
            if form is not None:
                return [chooser.take(form).text]
    return []


def _topical_tail(scene: Scene, chooser: _Chooser, part: str) -> str:
    if not scene.topics or scene.in_danger or chooser.number("topical tail") % 100 >= (85 if scene.is_news else 50):
        return ""
    return chooser.topical(part, lambda form: _is_new(form, scene))


def _is_new(form: Form, scene: Scene) -> bool:
    """Whether a form is no question, or one that fits the time told of and is not the last one in other words."""
    if not _fits_time(form, scene):
        return False
    if form.part != "ask":
        return True
    content = content_of(form.text)
    return all(
        len(content & asked) <= 0.5 * min(len(content), len(asked)) or not asked or not content for asked in scene.asked
    )


def _fits_time(form: Form, scene: Scene) -> bool:
    """Whether a form does not take for past what is not, nor for lasting what is over."""
    if not scene.has_happened and form.part in ("ask", "side") and _LOOKS_BACK.search(form.text):
        return False
    return scene.is_lasting or form.part != "ask" or not _ASKS_HOW_LONG.search(form.text)


def _without_clause(scene: Scene, chooser: _Chooser) -> tuple[list[str], str]:
    """Nothing is said back: a word for what is told of or for the feeling, and a question."""
    if scene.only_stay:
        form = chooser.form("whole", ("opening",), lambda form: scene.may_ask or "?" not in form.text)
        return ([chooser.take(form).text] if form is not None else _tail(scene, chooser)), ""
    if scene.echo:
        return _echoed(scene, chooser)
    first = _first_word(scene, chooser)
    sentences = [first] if first else []
    if scene.seen.sureness == "name" and "?" not in first and not chooser.names_feeling():
        feel = _feel(scene, chooser) if chooser.number("both") % 100 < _names_in(scene) * 2 // 3 else ""
        sentences += [feel] if feel else []
    asks = {"name": 70, "side": 70, "none": 90}[scene.seen.sureness]
    return [*sentences, *_rest(scene, chooser, sentences, asks)], ""


def _first_word(scene: Scene, chooser: _Chooser) -> str:
    """A word for what is told of or for the feeling; where neither is clear one that fits whatever it is."""
    first = chooser.topical("side") if scene.is_news else ""
    if not first and chooser.number("name") % 100 < _names_in(scene) - 10:
        first = _feel(scene, chooser)
    first = first or _side(scene, chooser)
    if first:
        return first
    form = chooser.form("side", ("unclear",))
    return chooser.take(form).text if form is not None else ""


def _last_resort(scene: Scene, chooser: _Chooser) -> str:
    """Every form that fits was used: the one used longest ago."""
    fitting = [form for part in ("stay", "ask") for form in pool(part, ("unclear", *scene.seen.wildcards))]
    form = min(fitting, key=lambda form: (scene.used.rfind(form.text.lower().rstrip(".?!")), form.id))
    return chooser.take(form).text
