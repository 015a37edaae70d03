"""Care: the check with its settings; decides what is said in place of a responder's answer, and what is added to it.

>>> from empatheia.care import Care
>>> Care.read(country="IE").check("I want to kill myself.").assessment.level
'crisis'
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from empatheia.care.counting import Counter
from empatheia.care.detector import shipped_detector, turns_of
from empatheia.care.policy import Policy
from empatheia.care.replies import Replies, Wording
from empatheia.care.reply_check import asks_whether_human, check_reply, without_claims
from empatheia.care.resources import Resources
from empatheia.errors import ConfigError
from empatheia.reading import Json
from empatheia.records.analysis import Analysis
from empatheia.records.danger import Assessment, Assessor
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply

if TYPE_CHECKING:
    from empatheia.care.guard import Answering, Guard

NAME = "care"
ON, OFF = "on", "off"
CLAIM_LEFT_OUT = "a claim of a human past was left out"
WITHHELD = "reply withheld"
_LOG = logging.getLogger(__name__)
HandOver = Callable[[Assessment], None]


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in a conversation, and what is to be said without asking anybody.

    Attributes:
        assessment: What was found.
        instead: The reply in place of the responder's; "" where the responder is to be asked.
        done: Why there is one.
    """

    assessment: Assessment
    instead: str = ""
    done: tuple[str, ...] = ()


class Care:
    """The check with its settings. See ``docs/concepts/care.md``.

    Args:
        policy: What is done; None = the defaults.
        resources: Where help is; None = the shipped file, the country guessed from the locale.
        wording: Of replies; None = the shipped parts.
        detector: Whoever has ``assess``; None = the shipped one.
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
        detector: Assessor | None = None,
        counter: Counter | None = None,
        hand_over: HandOver | None = None,
    ) -> None:
        self.policy = policy or Policy()
        self.resources = resources or Resources.read()
        self.replies = Replies(wording or Wording.read(), self.resources, self.policy)
        self.detector: Assessor = detector or shipped_detector()
        self.counter = counter or (Counter() if self.policy.count else None)
        self.hand_over = hand_over

    @classmethod
    def read(
        cls,
        policy: Mapping[str, object] | None = None,
        resources: str | Path | None = None,
        country: str | None = None,
        wording: str | Path | None = None,
        **options: Any,
    ) -> Care:
        """From settings and files.

        Args:
            policy: Fields of :class:`Policy`.
            resources: A YAML file; None = the shipped one.
            country: Two letters; None = guessed.
            wording: A YAML file; None = the shipped one.
            **options: ``detector``, ``counter``, ``hand_over``.

        Raises:
            ConfigError: Something of this cannot be used.
        """
        try:
            checked = Policy.model_validate(dict(policy or {}))
        except ValidationError as problem:
            first = problem.errors()[0]
            raise ConfigError(
                f"care policy: {'.'.join(map(str, first['loc']))}: {first['msg']} (found {first.get('input')!r})."
                f" Known: {', '.join(Policy.model_fields)}."
            ) from None
        return cls(checked, Resources.read(resources, country), wording=Wording.read(wording), **options)

    def guard(self, responder: Answering) -> Guard:
        """The responder behind this check; see :class:`~empatheia.care.guard.Guard`."""
        from empatheia.care.guard import Guard

        return responder if isinstance(responder, Guard) and responder.care is self else Guard(responder, self)

    def assess(self, item: object) -> Assessment:
        """As :meth:`~empatheia.care.Detector.assess`; where that fails, an assessment that asks for the safe reply.

        Args:
            item: A text or a conversation.

        Raises:
            DataError: It is neither.
        """
        turns = turns_of(item)
        try:
            return self.detector.assess(item)
        except Exception as error:  # whatever it is, the bare responder must not answer
            _LOG.error("the detector raised %s; the safe reply is given", type(error).__name__)
            reason = f"the detector raised {type(error).__name__}"
            return Assessment("crisis", "unclear", (), (), (reason,), 1.0, turns, failed=True)

    def check(self, item: object) -> Checked:
        """Before a responder is asked: what was found, and the reply to give in its place, if any.

        Crises are counted and handed over here; the caller sends ``instead`` as it is, or asks the responder and
        passes its words through :meth:`finish`.

        Args:
            item: A text or a conversation.
        """
        found = self.assess(item)
        if found.is_crisis:
            self._hand_over(found)
        if found.failed:
            return self._settled(found, self.replies.failed(found.turns), "failed")
        newest = next((turn.text for turn in reversed(found.turns) if turn.role == "speaker"), "")
        nature = self.replies.human(found.turns) if self.policy.tell_nature and asks_whether_human(newest) else ""
        if found.is_crisis and self.policy.crisis == "replace":
            return self._settled(found, f"{nature} {self.replies.crisis(found)}".strip(), "replaced")
        if nature and not found.is_flagged:
            return self._settled(found, nature, "human")
        return Checked(found)

    def check_all(self, items: Sequence[object]) -> list[Checked]:
        """:meth:`check` of several, which reads them together where that is faster.

        Args:
            items: Texts and conversations.
        """
        read_ahead = getattr(self.detector, "read_ahead", None)  # which not every detector has
        if read_ahead is not None:
            with suppress(Exception):  # whatever fails here fails again below, where it is dealt with
                read_ahead(items)
        return [self.check(item) for item in items]

    def finish(self, text: str, found: Assessment) -> tuple[str, list[str]]:
        """After a responder has answered: what may be sent, with what goes around it, and what was done.

        Args:
            text: What the responder wrote.
            found: Of what it answers.
        """
        said, done = self.passed(text, found)
        if lead := self.lead(found):
            said = f"{lead}\n\n{said}".strip()
            done.append("preceded")
        if addition := self.addition(found):
            said = f"{said.rstrip()} {addition}".strip()
            done.append("followed")
        self.count(found)
        return said, done

    def passed(self, text: str, found: Assessment, before: str = "") -> tuple[str, list[str]]:
        """A responder's words without what must not be sent, and what was done to them.

        Args:
            text: What the responder wrote.
            found: Of what it answers; joy is withheld from who may be in danger, and from what is not understood.
            before: What was sent of the same reply already.
        """
        level = "concern" if found.uncertain and not found.is_flagged else found.level
        if self.policy.check_replies and (fault := check_reply(text, level, before)) is not None:
            instead = {"goodbye": self.replies.parting, "cheer": self.replies.sober}.get(
                fault.fault, self.replies.replaced
            )
            return instead(found.turns), [f"{WITHHELD}: {fault.fault}"]
        if self.policy.claims == "reword" and (kept := without_claims(text)) != text:
            return kept or self.replies.without_past(found.turns), [CLAIM_LEFT_OUT]
        return text, []

    def lead(self, found: Assessment) -> str:
        """What stands in front of a responder's answer to a crisis, where the policy asks it all the same."""
        return self.replies.crisis(found) if found.is_crisis else ""

    def addition(self, found: Assessment) -> str:
        """What follows the responder's answer; "" if nothing does."""
        if found.level == "concern" and self.policy.concern == "follow":
            return self.replies.follow(found)
        if not found.is_flagged and found.uncertain and self.policy.uncertain == "follow":
            return self.replies.uncertain(found)
        return ""

    def count(self, found: Assessment) -> None:
        """One more answer for the counter, if there is one."""
        if self.counter is not None:
            self.counter.add(found.level)

    def notice(self) -> str:
        """What is said before the first turn: a machine answers, and where help is."""
        return self.replies.notice()

    def warnings(self) -> list[str]:
        """What whoever runs this should know at the start."""
        return self.resources.doubts()

    def _settled(self, found: Assessment, text: str, what: str) -> Checked:
        self.count(found)
        return Checked(found, text, (what,))

    def _hand_over(self, found: Assessment) -> None:
        if self.hand_over is not None:
            try:
                self.hand_over(found)
            except Exception as error:
                _LOG.error("handing over failed: %s", type(error).__name__)


def care_of(care: Care | bool) -> Care | None:
    """The check that ``care=`` names: True = the shipped one, None for False.

    Raises:
        ConfigError: It is something else.
    """
    if isinstance(care, Care):
        return care
    if not isinstance(care, bool):
        raise ConfigError(f"care is a {type(care).__name__}; accepted: True, False or a Care.")
    return shipped_care() if care else None


@lru_cache(maxsize=1)
def shipped_care() -> Care:
    """The check as it is shipped, read once."""
    return Care()


def mark(found: Assessment, done: Sequence[str]) -> dict[str, Json]:
    """What :attr:`Reply.care` says: found and done, never the text."""
    return {
        "care": ON,
        "level": found.level,
        "about": found.about,
        "kinds": list(found.kinds),
        "uncertain": list(found.uncertain),
        "failed": found.failed,
        "done": list(done),
    }


def built_reply(checked: Checked) -> Reply:
    """The reply that stands in place of the responder's; of what is felt it says nothing."""
    found = checked.assessment
    nothing = Analysis(Dialogue("", found.turns), by={"listener": NAME})
    return Reply(checked.instead, nothing, NAME, {"strategy": NAME}, care=mark(found, checked.done))


def unguarded(reply: Reply) -> Reply:
    """The reply with the mark of one that was given with care switched off."""
    return replace(reply, care={"care": OFF})
