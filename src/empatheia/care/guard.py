"""The guard: whatever answers, it is asked only after the check, and its reply is checked before it is sent.

>>> from empatheia.care import Care  # doctest: +SKIP
>>> listener = Care().guard(listener)  # doctest: +SKIP
>>> listener.respond("I want to kill myself.").decoding["care"]["level"]  # doctest: +SKIP
'crisis'

The guarded object is asked by its own ``respond``, ``stream``, ``converse`` and ``analyze``; everything else is
passed through, so it can stand wherever a listener stands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from empatheia.care.assessment import Assessment
from empatheia.care.counting import Counter
from empatheia.care.detector import Detector, turns_of
from empatheia.care.policy import Policy
from empatheia.care.replies import Replies, Wording
from empatheia.care.reply_check import (
    asks_whether_human,
    check_reply,
    human_claims,
    sentences_of,
    without_claims,
)
from empatheia.care.resources import Resources
from empatheia.dialogue import Dialogue, Reply, Turn, Understanding
from empatheia.taxonomy import EMOTIONS

NAME = "care"
ON, OFF = "on", "off"
NOT_ASKED = "care: the model was not asked"
_LOG = logging.getLogger(__name__)
HandOver = Callable[[Assessment], None]


class Care:
    """The check with its settings; makes guards.

    Args:
        policy: What is done; None = the defaults.
        resources: Where help is; None = the shipped file, the country guessed from the locale.
        wording: Of replies; None = the shipped parts.
        detector: None = the shipped one.
        counter: Of answers by level and day; None = nothing is counted.
        hand_over: Called with every crisis, e.g. to tell a person on duty; None = nobody is told. What it raises is
            logged without the text, and the reply is sent all the same.

    Raises:
        ConfigError: The resources or the replies cannot be used: care does not start without them.
        CheckpointError: The classifier cannot be read.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        resources: Resources | None = None,
        *,
        wording: Wording | None = None,
        detector: Any | None = None,
        counter: Counter | None = None,
        hand_over: HandOver | None = None,
    ) -> None:
        self.policy = policy or Policy()
        self.resources = resources or Resources.read()
        self.replies = Replies(wording or Wording.read(), self.resources, self.policy)
        self.detector = detector or Detector()
        self.counter = counter or (Counter() if self.policy.count else None)
        self.hand_over = hand_over

    @classmethod
    def read(
        cls,
        policy: Mapping[str, Any] | None = None,
        resources: str | Path | None = None,
        country: str | None = None,
        wording: str | Path | None = None,
    ) -> Care:
        """From settings and files.

        Args:
            policy: Fields of :class:`Policy`.
            resources: A YAML file; None = the shipped one.
            country: Two letters; None = guessed.
            wording: A YAML file; None = the shipped one.

        Raises:
            ConfigError: Something of this cannot be used.
        """
        from pydantic import ValidationError

        from empatheia.errors import ConfigError

        try:
            checked = Policy(**dict(policy or {}))
        except ValidationError as problem:
            first = problem.errors()[0]
            raise ConfigError(
                f"care policy: {'.'.join(map(str, first['loc']))}: {first['msg']} (found {first.get('input')!r})."
                f" Known: {', '.join(Policy.model_fields)}."
            ) from None
        return cls(checked, Resources.read(resources, country), wording=Wording.read(wording))

    def guard(self, responder: Any) -> Guard:
        """The responder behind the check; a guarded one as itself."""
        return responder if isinstance(responder, Guard) else Guard(responder, self)

    def assess(self, item: Any) -> Assessment:
        """As :meth:`Detector.assess`; where that raises, an assessment that asks for the safe reply.

        Args:
            item: A text or a conversation.
        """
        try:
            return self.detector.assess(item)
        except Exception as error:  # whatever it is, the bare responder must not answer
            _LOG.error("the detector raised %s; the safe reply is given", type(error).__name__)
            try:
                turns = turns_of(item)
            except Exception:
                turns = ()
            reason = f"the detector raised {type(error).__name__}"
            return Assessment("crisis", "unclear", (), (), (reason,), 1.0, turns, failed=True)

    def notice(self) -> str:
        """What is said before the first turn: a machine answers, and where help is."""
        return self.replies.notice()

    def warnings(self) -> list[str]:
        """What whoever runs this should know at the start."""
        return self.resources.doubts()


class Guard:
    """A responder behind the check.

    Args:
        responder: Whoever has ``respond``, ``stream``, ``converse`` or ``analyze``.
        care: The check.
    """

    def __init__(self, responder: Any, care: Care | None = None) -> None:
        self.responder = responder
        self.care = care or Care()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("responder", "care"):
            raise AttributeError(name)
        return getattr(self.responder, name)

    def analyze(self, item: Any, *arguments: Any, **settings: Any) -> Any:
        """As the responder's; nothing is answered, so nothing is held back."""
        return self.responder.analyze(item, *arguments, **settings)

    def respond(self, item: Any, **settings: Any) -> Any:
        """Answers; see :class:`Policy` for what is done at which level.

        Args:
            item: A text, a conversation, or a list of these.
            **settings: Of the responder's ``respond``.

        Returns:
            One reply, or a list in the order of the inputs; ``decoding["care"]`` says what was found and done.

        Raises:
            DataError: The responder refuses the input.
        """
        if isinstance(item, str | Dialogue):
            return self._one(item, settings)
        items = list(item)
        if not all(isinstance(one, str | Dialogue) for one in items):
            return self.responder.respond(items, **settings)  # it says what it accepts
        found = [self.care.assess(one) for one in items]
        out: list[Reply | None] = [self._instead(one) for one in found]
        left = [place for place, reply in enumerate(out) if reply is None]
        answers = self.responder.respond([items[place] for place in left], **settings) if left else []
        for place, reply in zip(left, answers, strict=True):
            out[place] = self._finished(reply, found[place])
        return out

    def stream(self, item: Any, **settings: Any) -> GuardedStream:
        """Answers, sentence by sentence: none leaves before it was checked.

        Args:
            item: A text or a conversation.
            **settings: Of the responder's ``stream``.
        """
        assessment = self.care.assess(item) if isinstance(item, str | Dialogue) else None
        if assessment is not None:
            reply = self._instead(assessment)
            if reply is not None:
                return GuardedStream(self, assessment, reply=reply)
        inner = self.responder.stream(item, **settings)
        return GuardedStream(self, assessment or Assessment("none", "unclear"), inner=inner)

    def converse(self, *arguments: Any, **settings: Any) -> Any:
        """The responder's own conversation, which from now on asks the guard."""
        conversation = self.responder.converse(*arguments, **settings)
        conversation.listener = self
        return conversation

    # -- parts -------------------------------------------------------------------------------------------------

    def _one(self, item: str | Dialogue, settings: Mapping[str, Any]) -> Reply:
        assessment = self.care.assess(item)
        reply = self._instead(assessment)
        return reply if reply is not None else self._finished(self.responder.respond(item, **settings), assessment)

    def _instead(self, assessment: Assessment) -> Reply | None:
        """The reply that is given without asking the responder; None where it is to be asked."""
        care, turns = self.care, assessment.turns
        if assessment.failed:
            self._told(assessment)
            return self._built(care.replies.failed(turns), assessment, "failed")
        if assessment.level == "crisis":
            self._told(assessment)
            if care.policy.crisis == "replace":
                return self._built(care.replies.crisis(assessment), assessment, "replaced")
            return None
        newest = next((turn.text for turn in reversed(turns) if turn.role == "speaker"), "")
        if care.policy.tell_nature and assessment.level == "none" and asks_whether_human(newest):
            self._count(assessment)
            return self._built(care.replies.human(turns), assessment, "human")
        return None

    def _finished(self, reply: Reply, assessment: Assessment) -> Reply:
        """The responder's reply, checked, with what follows it."""
        text, done = self.checked(reply.text, assessment)
        addition = self.addition(assessment)
        if assessment.level == "crisis":  # the policy asks the responder all the same
            text = f"{self.care.replies.crisis(assessment)}\n\n{text}".strip()
            done.append("preceded")
        elif addition:
            text = f"{text.rstrip()} {addition}".strip()
            done.append("followed")
        if assessment.level != "crisis":
            self._count(assessment)
        return replace(reply, text=text, decoding={**reply.decoding, NAME: mark(assessment, done)})

    def checked(self, text: str, assessment: Assessment) -> tuple[str, list[str]]:
        """A reply without what must not be sent, and what was done to it.

        Args:
            text: What the responder wrote.
            assessment: Of what it answers.
        """
        policy = self.care.policy
        done: list[str] = []
        if policy.check_replies and (fault := check_reply(text, assessment.level)) is not None:
            return self.care.replies.replaced(assessment.turns), [f"reply withheld: {fault.fault}"]
        if policy.claims == "reword" and human_claims(text):
            kept = without_claims(text)
            if kept != text:
                text = kept
                done.append("a claim of a human past was left out")
        return text, done

    def addition(self, assessment: Assessment) -> str:
        """What follows the responder's answer; "" if nothing does."""
        policy, replies = self.care.policy, self.care.replies
        if assessment.level == "concern" and policy.concern == "follow":
            return replies.follow(assessment)
        if assessment.level == "none" and assessment.uncertain and policy.uncertain == "follow":
            return replies.uncertain(assessment)
        return ""

    def _built(self, text: str, assessment: Assessment, what: str) -> Reply:
        return Reply(text, _unperceived(assessment.turns), NAME, {"strategy": NAME, NAME: mark(assessment, [what])})

    def _told(self, assessment: Assessment) -> None:
        """Counts a crisis and hands it over, if anybody wants to know."""
        self._count(assessment)
        if self.care.hand_over is not None:
            try:
                self.care.hand_over(assessment)
            except Exception as error:
                _LOG.error("handing over failed: %s", type(error).__name__)

    def _count(self, assessment: Assessment) -> None:
        if self.care.counter is not None:
            self.care.counter.add(assessment.level)


class GuardedStream:
    """A checked reply on its way: iterate for its sentences; :attr:`reply` is there at the end.

    Args:
        guard: Whose.
        assessment: Of what is answered.
        inner: The responder's own stream.
        reply: A reply that stands already, in its place.
    """

    def __init__(
        self, guard: Guard, assessment: Assessment, *, inner: Any | None = None, reply: Reply | None = None
    ) -> None:
        self.reply: Reply | None = None
        self._guard = guard
        self._assessment = assessment
        self._inner = inner
        self._built = reply

    @property
    def understanding(self) -> Understanding:
        """What was perceived; of a built reply, nothing."""
        if self._built is not None:
            return self._built.understanding
        return self._inner.understanding  # pyright: ignore[reportOptionalMemberAccess]

    def __iter__(self) -> Iterator[str]:
        if self._built is not None:
            yield self._built.text
            self.reply = self._built
            return
        guard, assessment = self._guard, self._assessment
        done: list[str] = []
        said, held, is_withheld = "", "", False
        if assessment.level == "crisis":
            said = guard.care.replies.crisis(assessment) + "\n\n"
            done.append("preceded")
            yield said
        for piece in self._inner or ():
            held += piece
            *whole, held = sentences_of(held) or [""]
            for sentence in whole:
                told, what = self._checked(said, sentence)
                is_withheld = is_withheld or told is None
                if is_withheld:
                    break
                done += what
                said += told or ""
                if told:
                    yield told
            if is_withheld:
                break
        if not is_withheld and held.strip():
            told, what = self._checked(said, held)
            is_withheld = told is None
            done += what
            if told:
                said += told
                yield told
        if is_withheld or not said.strip():
            instead = guard.care.replies.replaced(assessment.turns)
            done.append("reply withheld")
            yield (" " if said and not said[-1].isspace() else "") + instead
            said = f"{said.rstrip()} {instead}".strip()
        addition = guard.addition(assessment)
        if addition:
            done.append("followed")
            yield (" " if said and not said[-1].isspace() else "") + addition
            said = f"{said.rstrip()} {addition}"
        if assessment.level != "crisis":
            guard._count(assessment)
        inner = getattr(self._inner, "reply", None)
        decoding = {**(inner.decoding if inner is not None else {}), NAME: mark(assessment, list(dict.fromkeys(done)))}
        if inner is not None:
            self.reply = replace(inner, text=said.strip(), decoding=decoding)
        else:
            name = str(getattr(guard.responder, "name", ""))
            self.reply = Reply(said.strip(), self.understanding, name, decoding)

    def _checked(self, said: str, sentence: str) -> tuple[str | None, list[str]]:
        """A sentence that may be sent; "" where it is left out, None where the rest is withheld."""
        policy = self._guard.care.policy
        if policy.check_replies and check_reply(sentence, self._assessment.level) is not None:
            return None, []
        if policy.claims == "reword" and human_claims(sentence):
            return "", ["a claim of a human past was left out"]
        return sentence, []


def mark(assessment: Assessment, done: Sequence[str]) -> dict[str, Any]:
    """What a reply's ``decoding["care"]`` says: found and done, never the text."""
    return {
        "care": ON,
        "level": assessment.level,
        "about": assessment.about,
        "kinds": list(assessment.kinds),
        "uncertain": list(assessment.uncertain),
        "failed": assessment.failed,
        "done": list(done),
    }


def unguarded(reply: Reply) -> Reply:
    """The mark of a reply that was given with care switched off."""
    return replace(reply, decoding={**reply.decoding, NAME: {"care": OFF}})


def _unperceived(turns: Sequence[Turn]) -> Understanding:
    """An understanding that names nothing: no model was asked."""
    even = {name: 1.0 / len(EMOTIONS) for name in EMOTIONS}
    return Understanding(even, (), (), tuple(turns), (NOT_ASKED,), NAME)
