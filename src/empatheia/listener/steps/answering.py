"""Who answers a step as the settings say, what is told where nobody does, and far models that give no answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from empatheia.analysis.component import Component, Kind, Record
from empatheia.errors import EndpointError
from empatheia.listener.parts import how_to_get, models_of
from empatheia.listener.steps.settings import Answered, ListenerSettings
from empatheia.records.dialogue import Dialogue

if TYPE_CHECKING:
    from empatheia.listener.steps.served import ServedComponent

STEP_OF = {"emotion": "perceive", "words": "explain", "causes": "explain", "inferences": "project", "reaction": "react"}
"""Part to the section of the settings that says who answers it."""
MOST_FAILURES = 3
_KEYS = {
    **{part: f"{step}.model" for part, step in STEP_OF.items()},
    "intent": "express.intent_model",
    "mechanisms": "express.mechanism_model",
}

Item = TypeVar("Item")
Result = TypeVar("Result")


def models_named(settings: ListenerSettings) -> dict[str, str]:
    """Model name to the folder or name the settings give."""
    express = settings.express
    given: dict[str, str | None] = {
        "emotion": settings.perceive.model,
        "cause_spans" if settings.explain.targets == "spans" else "words": settings.explain.model,
        "inferences": settings.project.model,
        "reaction": settings.react.model,
        "intent": express.intent_model,
        "mechanisms": express.mechanism_model,
    }
    return {name: place for name, place in given.items() if place is not None}


def served_parts(settings: ListenerSettings) -> dict[str, ServedComponent[Record]]:
    """Part to a component that asks an endpoint, of the steps whose settings name one.

    Raises:
        ConfigError: An endpoint has no usable address.
    """
    found: dict[str, ServedComponent[Record]] = {}
    for part in ("emotion", "words", "inferences", "reaction"):
        section: Answered = getattr(settings, STEP_OF[part])
        if section.llm is not None:
            from empatheia.listener.steps.served import served_component

            limits = {"timeout": section.timeout, "retries": section.retries}
            found[part] = served_component(part, section.llm, section.endpoint, section.key_env, **limits)
    return found


def remedy(part: str) -> str:
    """What to do about a part that has no model: the command that makes one, or the key that names one."""
    return how_to_get(models_of(part)[0], f"name a folder with `{_KEYS[part]}` in the listener's YAML file")


def each_alone(
    call: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item]
) -> list[tuple[Result | None, str]]:
    """What a call gives for each item, or the reason why a far model has no answer to it.

    All are asked at once. If that fails, each is asked alone, so that one without an answer costs the others nothing;
    after a few failures in a row nobody is there, and the rest gets the same reason.

    Args:
        call: Items to as many results.
        items: Any number.

    Raises:
        Exception: Whatever else than an EndpointError the call raises.
    """
    try:
        return [(found, "") for found in call(items)]
    except EndpointError as problem:
        if len(items) == 1:
            return [(None, str(problem))]
    out: list[tuple[Result | None, str]] = []
    for item in items:
        last = out[-MOST_FAILURES:]
        if len(last) == MOST_FAILURES and all(reason for _, reason in last):
            out.append(out[-1])
        else:
            out += each_alone(call, [item])
    return out


class Notes:
    """What steps could not do, conversation by conversation.

    Args:
        n: Conversations.

    Attributes:
        missing: Step to the reason why it has no answer.
        doubts: Failures, as reasons to distrust the answer.
    """

    def __init__(self, n: int) -> None:
        self.missing: list[dict[str, str]] = [{} for _ in range(n)]
        self.doubts: list[list[str]] = [[] for _ in range(n)]

    def everywhere(self, step: str, reason: str) -> None:
        """A step that answers no conversation."""
        for own in self.missing:
            own[step] = reason

    def ask(
        self, step: str, call: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item]
    ) -> list[Result | None]:
        """What a call gives for each conversation; None where a far model gave no answer, which is noted."""
        found = each_alone(call, items)
        for i, (_, reason) in enumerate(found):
            if reason:
                self.missing[i][step] = reason
                self.doubts[i].append(f"step {step} was left out: {reason}")
        return [result for result, _ in found]

    def rows(
        self, step: str, component: Component[Kind], dialogues: Sequence[Dialogue], batch_size: int
    ) -> list[tuple[Kind, ...] | None]:
        """Likewise a component's records."""
        return self.ask(step, lambda asked: component.annotate(asked, batch_size=batch_size), dialogues)
