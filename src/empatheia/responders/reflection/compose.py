"""Puts the answer together: what was said, the feeling as surely as it is known, at most one question."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from empatheia.dialogue import Turn
from empatheia.errors import DataError
from empatheia.responders.reflection.clauses import Said, is_foreign, phrase_of, sayable
from empatheia.responders.reflection.families import View, view
from empatheia.responders.reflection.feelings import heeded, told_feeling
from empatheia.responders.reflection.forms import Form, capitalised, fill, flat, pool
from empatheia.responders.reflection.lexicon import lexicon
from empatheia.responders.reflection.perceived import Perceived, Reflected
from empatheia.responders.reflection.talk import is_ironic, talk_moment, wants_no_question
from empatheia.responders.reflection.turning import is_word, words_of

LONGEST_REPLY = 45
_SHORT_TURN, _REMEMBERED, _FEW_WORDS = 4, 12, 6
_STOP = lexicon().lists["english"] | lexicon().lists["asking"]
_SAME = {
    "hardest": "most",
    "worst": "most",
    "heaviest": "most",
    "loudest": "most",
    "hits": "hurts",
    "weighs": "hurts",
    "stings": "hurts",
}


@dataclass(frozen=True)
class _Scene:
    """Everything a reply is made from."""

    turns: tuple[Turn, ...]
    seen: View
    moment: str
    said: tuple[Said, ...]
    phrase: str
    taken_up: bool
    used: str
    asked: tuple[frozenset[str], ...]
    may_ask: bool
    only_stay: bool
    key: bytes


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
    scene = _scene(tuple(turns), perceived, seed)
    out: dict[str, Reflected] = {}
    for salt in range(3 * n + 2):
        answer = _answer(scene, salt)
        out.setdefault(answer.text, answer)
        if len(out) == n:
            break
    return list(out.values())


def _scene(turns: tuple[Turn, ...], perceived: Perceived, seed: int) -> _Scene:
    newest, index = turns[-1].text, len(turns) - 1
    told = told_feeling(newest)
    seen = view(heeded(perceived, told) if told else perceived)
    listener = [turn.text for turn in turns if turn.role == "listener"]
    used = flat(listener)
    kind = talk_moment(turns)
    harm = bool(lexicon().self_harm.search(newest))
    if harm:
        seen, kind = View("unclear_unpleasant", "side", unpleasant=1.0), ""
    elif kind in ("foreign", "notext", "opening"):
        seen = View("unclear", "none")
    said = () if kind in _TALK else _said(turns, index, perceived, used)
    if is_ironic(newest, seen.unpleasant):
        said = tuple(
            s for s in said if not re.search(r"\b(?:great|lovely|nice|brilliant|joy|perfect|wonderful|love)\b", s.text)
        )
        kind = kind or ("" if said else "irony")
    n_words = sum(is_word(token) for token in words_of(newest[:200]))
    taken_up = False
    if not kind and not said and not harm and n_words <= _SHORT_TURN and index:
        kind = "short"
        said = _remembered(turns, perceived, used)
        taken_up = bool(said)
    moment = (
        "question" if kind == "question_self" else "unclear" if kind in ("foreign", "opening") else kind or seen.moment
    )
    questions = [_content(sentence) for text in listener[-2:] for sentence in re.findall(r"[^.!?]+\?", text)]
    tired = len(listener) > 1 and all(text.rstrip().endswith("?") for text in listener[-2:])
    digest = repr((seed, [(turn.role, turn.text) for turn in turns[-_REMEMBERED:]], len(turns)))
    return _Scene(
        turns=turns,
        seen=seen,
        moment=kind if kind == "question_self" else moment,
        said=said,
        phrase="" if harm else phrase_of(newest),
        taken_up=taken_up,
        used=used,
        asked=tuple(questions),
        may_ask=not (tired or harm or wants_no_question(newest)),
        only_stay=kind == "opening",
        key=digest.encode("utf-8", "surrogatepass"),
    )


def _said(turns: tuple[Turn, ...], index: int, perceived: Perceived, used: str) -> tuple[Said, ...]:
    """What can be said back of a turn and was not said back before."""
    found = sayable(turns, index, perceived.causes, perceived.words)
    return tuple(said for said in found if said.text.lower() not in used)


def _remembered(turns: tuple[Turn, ...], perceived: Perceived, used: str) -> tuple[Said, ...]:
    """What an earlier turn told, where the newest says next to nothing and the listener has not taken it up."""
    for index in range(len(turns) - 3, max(-1, len(turns) - 6), -1):
        if turns[index].role == "speaker":
            found = [
                said for said in _said(turns, index, perceived, used) if said.kind == "clause" and said.score > 0.3
            ]
            if found:
                return (found[0],)
    return ()


def _content(sentence: str) -> frozenset[str]:
    words = (str(_SAME.get(word, word)) for word in re.findall(r"[a-z']+", sentence.lower()))
    return frozenset(word for word in words if word not in _STOP)


_TALK = ("foreign", "opening", "notext", "greeting", "smalltalk", "closing")


# Moments in which "So your husband hits you." would sound offhand; what is unclear may be one of them.
_GRAVE = frozenset({"loss", "worry", "lonely", "shame", "disgust", "unclear", "unclear_unpleasant"})
_WELCOMING = ("Tell me more whenever", "I'd like to hear", "I'll just listen", "Give me a bit")


class _Chooser:
    """Draws forms of one reply: spread by a hash of the conversation, none that was used before."""

    def __init__(self, scene: _Scene, salt: int) -> None:
        self.scene, self.salt, self.ids = scene, salt, []

    def number(self, what: str) -> int:
        """A number that hangs on the conversation and on ``what`` alone."""
        data = hashlib.blake2b(f"{what}/{self.salt}".encode(), key=self.scene_key(), digest_size=4).digest()
        return int.from_bytes(data, "big")

    def scene_key(self) -> bytes:
        """A short key for the conversation."""
        return hashlib.blake2b(self.scene.key, digest_size=32).digest()

    def form(self, part: str, moments: tuple[str, ...], accept=lambda form: True) -> Form | None:  # noqa: ANN001
        """The first form that fits and is new, in an order of this conversation's own."""
        seen = self.scene.seen
        fitting = [form for form in pool(part, moments) if form.fits(seen.label, seen.possible) and accept(form)]
        fitting.sort(key=lambda form: (not form.emotions and self.number(form.id) % 3 == 0, self.number(form.id)))
        for form in fitting:
            if not form.is_in(self.scene.used) and form.id not in self.ids:
                return form
        return None

    def take(self, form: Form) -> Form:
        """Notes that the form is used."""
        self.ids.append(form.id)
        return form


def _answer(scene: _Scene, salt: int) -> Reflected:
    chooser = _Chooser(scene, salt)
    moment = "question" if scene.moment == "question_self" else scene.moment
    sentences: list[str]
    back = ""
    if scene.moment in ("question", "question_self", "greeting", "smalltalk", "closing", "short", "notext", "irony"):
        sentences, back = _whole_reply(scene, chooser, moment)
    else:
        sentences, back = _reflection(scene, chooser)
    if not sentences:
        sentences = [_last_resort(scene, chooser)]
    text = " ".join(sentences)
    return Reflected(text, tuple(chooser.ids), back, scene.seen.sureness, moment)


def _whole_reply(scene: _Scene, chooser: _Chooser, moment: str) -> tuple[list[str], str]:
    """For talk that is no telling: a ready reply, sometimes after what was told with it."""
    about = scene.moment == "question_self"
    form = chooser.form(
        "whole",
        (moment,),
        lambda form: moment != "question" or ("program" in form.text or "software" in form.text) == about,
    )
    if form is not None and moment in ("short", "irony") and form.text.endswith("?") and not scene.may_ask:
        form = chooser.form("whole", (moment,), lambda form: not form.text.endswith("?")) or form
    best = scene.said[0] if scene.said else None
    if scene.taken_up and best is not None and chooser.number("take up") % 2:
        say = chooser.form("say", ("any",), lambda form: form.slot == "clause" and form.text.endswith(": {clause}."))
        tail = _tail(scene, chooser, 0)
        if say is not None and tail:
            return [fill(chooser.take(say), clause=best.text), *tail], best.text
    if moment == "short" and scene.seen.sureness != "none" and scene.seen.wildcards[0] == "any_pleasant":
        return _without_clause(replace(scene, phrase=""), chooser, chooser.number("shape") % 100)
    if form is None:
        return _tail(scene, chooser, 1), ""
    chooser.take(form)
    if moment == "question" and best is not None and best.kind == "clause" and not about:
        return [capitalised(best.text) + ".", form.text], best.text
    return [form.text], ""


def _reflection(scene: _Scene, chooser: _Chooser) -> tuple[list[str], str]:
    """Say-back, feeling and question or invitation, in one of several shapes."""
    best = _best(scene, chooser)
    shape = chooser.number("shape") % 100
    seen = scene.seen
    if best is None:
        return _without_clause(scene, chooser, shape)
    named = best.feeling
    feel: Form | None = None
    if shape < 55 and not (named and seen.sureness == "name"):
        feel = _feel(scene, chooser)
    elif shape < 55 and seen.moment not in ("unclear",):
        feel = _side(scene, chooser)
    merged = _merged(feel, best, seen, chooser)
    if merged:
        sentences = [merged]
    else:
        sentences = [_say(best, scene, chooser)]
        if feel is not None:
            sentences.append(_filled(chooser.take(feel), seen))
    if shape >= 18 or not feel:
        ask = shape >= 30 or shape % 3 != 0
        tail = _tail(scene, chooser, 0 if ask else 1)
        if tail and sum(len(s.split()) for s in (*sentences, *tail)) <= LONGEST_REPLY:
            sentences += tail
        else:
            del chooser.ids[len(chooser.ids) - len(tail) :]
    return sentences, best.text


def _best(scene: _Scene, chooser: _Chooser) -> Said | None:
    """The clause to say back; other candidates of a reply may take another that is nearly as good."""
    if not scene.said:
        return None
    top = scene.said[0]
    good = [
        said
        for said in scene.said
        if said.score >= top.score - 0.4 * max(0.5, abs(top.score)) and said.kind == top.kind
    ]
    return good[chooser.salt // 2 % len(good)] if chooser.salt else scene.said[0]


def _say(best: Said, scene: _Scene, chooser: _Chooser) -> str:
    """What was said, by itself or inside a form."""
    end = "!" if best.excited and scene.seen.pleasant >= 0.7 and scene.seen.unpleasant < 0.2 else "."
    if best.kind == "fragment" or not best.text[0].islower() or chooser.number("bare") % 100 < 75:
        return capitalised(best.text) + end
    light = scene.seen.pleasant >= 0.5 and scene.seen.unpleasant < 0.2
    if chooser.number("so") % 100 < 35 and scene.seen.moment not in _GRAVE:
        form = chooser.form("say", ("any",), lambda form: form.text == "So {clause}.")
    else:
        form = chooser.form("say", scene.seen.wildcards, lambda form: _may_wrap(form, light, best))
    if form is None:
        return capitalised(best.text) + end
    return fill(chooser.take(form), clause=best.text)


def _may_wrap(form: Form, light: bool, best: Said) -> bool:
    """Whether a form may stand around a clause: what sounds flippant or doubting of bad news is for good news only."""
    doubting = form.text.startswith("You say") or form.text.endswith("then.") or form.text == "So {clause}."
    if form.text.endswith(("I heard that.", "That comes through.")) and not best.feeling:
        return False
    if form.text.endswith("then.") and len(best.text.split()) > 8:
        return False
    pointing = "any" not in form.moments or "stands out" in form.text
    return form.slot == "clause" and not form.is_bare and (light or not doubting) and (best.sure or not pointing)


def _merged(feel: Form | None, best: Said, seen: View, chooser: _Chooser) -> str:
    """Feeling and clause in one: "No wonder you're proud: you passed on the third try."."""
    if (
        feel is None
        or best.kind != "clause"
        or best.feeling
        or not best.sure
        or not feel.text.startswith(("No wonder you", "Of course you"))
    ):
        return ""
    if not best.text[0].islower() or not feel.text.endswith("{feeling}.") or len(best.text.split()) > 14:
        return ""
    return f"{_filled(chooser.take(feel), seen)[:-1]}: {best.text}."


def _filled(form: Form, seen: View) -> str:
    """The form with the word for the feeling; "you're guilty" would be a verdict."""
    if seen.feeling == "guilty":
        text = re.sub(r"\b([Yy])ou(?:'re| are| sound)(?= \{feeling\})", r"\1ou feel", form.text)
        form = replace(form, text=text.replace("{feeling} you are", "{feeling} you feel"))
    return fill(form, feeling=seen.feeling)


def _feel(scene: _Scene, chooser: _Chooser) -> Form | None:
    """A form that names the feeling where it is sure; else one that only shows that the weight is seen."""
    seen = scene.seen
    if seen.sureness == "name" and chooser.number("name") % 100 < 70:
        moments = (seen.moment, "any") if seen.moment != "care" else (seen.moment,)
        form = chooser.form("feel", moments)
        if form is not None:
            return form
    return _side(scene, chooser)


def _side(scene: _Scene, chooser: _Chooser) -> Form | None:
    seen = scene.seen
    if seen.sureness == "name":
        return chooser.form("side", (seen.moment,)) or chooser.form("side", seen.wildcards)
    if seen.sureness == "side":
        return chooser.form("side", (seen.moment, *seen.wildcards))
    return (
        chooser.form("side", ("unclear",), lambda form: not _asks_again(form, scene))
        if not scene.said or chooser.number("unsure") % 6 == 0
        else None
    )


def _asks_again(form: Form, scene: _Scene) -> bool:
    """Whether a form asks for other words, which only an unclear turn deserves."""
    again = form.text.startswith(("Tell me a bit more", "Can you tell me a bit", "That could go either way"))
    return again and (len(scene.turns[-1].text.split()) > _FEW_WORDS and not is_foreign(scene.turns[-1].text))


def _tail(scene: _Scene, chooser: _Chooser, first: int) -> list[str]:
    """A question (0) or an invitation (1); the other one where there is none left."""
    order = ("ask", "stay") if not first else ("stay", "ask")
    for part in order:
        if part == "ask" and not scene.may_ask:
            continue
        moments = (scene.seen.moment, *scene.seen.wildcards) if scene.seen.sureness == "side" else (scene.seen.moment,)
        for group in (moments, scene.seen.wildcards, ("unclear",)):
            form = chooser.form(part, group, lambda form: _is_new(form, scene) and not _asks_again(form, scene))
            if form is not None:
                break
        if form is not None:
            return [chooser.take(form).text]
    return []


def _is_new(form: Form, scene: _Scene) -> bool:
    """Whether a form is no question, or not the last ones in other words."""
    if form.part != "ask":
        return True
    content = _content(form.text)
    return all(
        len(content & asked) <= 0.5 * min(len(content), len(asked)) or not asked or not content for asked in scene.asked
    )


def _without_clause(scene: _Scene, chooser: _Chooser, shape: int) -> tuple[list[str], str]:
    """Nothing can be said back: a phrase if there is one, a ready reply, or the feeling and a question."""
    seen = scene.seen
    if scene.only_stay:
        form = chooser.form("stay", ("unclear",), lambda form: form.text.startswith(_WELCOMING))
        return ([chooser.take(form).text] if form is not None else _tail(scene, chooser, 1)), ""
    if scene.phrase and shape < 45:
        moments = seen.wildcards
        form = chooser.form(
            "say", moments, lambda form: form.slot == "phrase" and not form.is_bare and _may_name(form, scene.phrase)
        )
        if form is not None:
            first = fill(chooser.take(form), phrase=scene.phrase)
            return [first, *_tail(scene, chooser, shape % 2)], scene.phrase
    if seen.sureness == "name" and scene.may_ask and shape < 75:
        form = chooser.form("whole", (seen.moment,))
        if form is not None:
            return [chooser.take(form).text], ""
    form = _feel(scene, chooser) or chooser.form("side", ("unclear",), lambda form: not _asks_again(form, scene))
    first = [_filled(chooser.take(form), seen)] if form is not None else []
    return [*first, *_tail(scene, chooser, int(shape % 10 < 4))], ""


def _may_name(form: Form, phrase: str) -> bool:
    """A person is not something that "it comes down to"."""
    persons = (
        lexicon().lists["relations"]
        | lexicon().lists["kin_names"]
        | lexicon().lists["people"]
        | {"colleague", "coworker", "family"}
    )
    if form.text.startswith("Let's stay with"):
        return False
    return phrase.split()[-1] not in persons or form.text.startswith("So it's about")


def _last_resort(scene: _Scene, chooser: _Chooser) -> str:
    """Every form that fits was used: the one used longest ago."""
    fitting = [form for part in ("stay", "ask") for form in pool(part, ("unclear", *scene.seen.wildcards))]
    form = min(fitting, key=lambda form: (scene.used.rfind(form.text.lower().rstrip(".?!")), form.id))
    return chooser.take(form).text
