"""What ``respond`` and ``chat`` open before they answer: who answers, behind which check, written how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from empatheia.cli.guarding import check_resources, open_care
from empatheia.cli.listener_settings import LISTENER_FILES, GivenSettings, check_overrides, given_settings
from empatheia.cli.opening import check_who, open_listener, tell_host, usage_line
from empatheia.cli.options import SessionOptions, WhoOptions
from empatheia.cli.output import say
from empatheia.errors import ConfigError
from empatheia.text.prompts import SHOWN, parse_shown

if TYPE_CHECKING:
    from empatheia.care import Care
    from empatheia.listener import Conversation, Decoding, FocusedListener, Steering
    from empatheia.listener.protocol import AnyListener
    from empatheia.records.dialogue import Dialogue
    from empatheia.records.reply import Reply


@dataclass(frozen=True)
class Session:
    """Who answers, and how.

    Attributes:
        listener: As the options name it.
        steps: The same as a listener of five steps, where something was asked for that needs them; else None.
        care: The check in front, or False.
        given: What the command line says of how to write.
        decoding: How one model alone writes.
        steering: What is decided of the focus; None = nothing.
    """

    listener: AnyListener
    steps: FocusedListener | None
    care: Care | bool
    given: GivenSettings
    decoding: Decoding
    steering: Steering | None

    def respond(self, dialogue: Dialogue, explain: bool = False) -> Reply:
        """One reply; ``explain`` needs ``steps``."""
        if self.steps is None:
            return self.listener.respond(dialogue, decoding=self.decoding, care=self.care)
        writing = self.steps.used(self.given.writing, say)
        return self.steps.respond(dialogue, steering=self.steering, explain=explain, care=self.care, **writing)

    def converse(self) -> Conversation:
        """A conversation that has not begun."""
        if self.steps is None:
            return self.listener.converse(decoding=self.decoding, care=self.care)
        return self.steps.converse(steering=self.steering, care=self.care, **self.steps.used(self.given.writing, say))

    def tell_usage(self) -> None:
        """Says what a served model has cost so far."""
        if told := usage_line(self.listener):
            say(told)


def open_session(context: typer.Context, options: SessionOptions, explain: bool = False) -> Session:
    """Opens what the options name; what is wrong with them is told before a model is.

    Args:
        context: Of the command; it knows which options were given.
        options: Of the command.
        explain: Whether the reply must be explained, which only five steps can.

    Raises:
        ConfigError: Options that contradict each other, lack another one, or are out of range.
        DecodingError: A way of writing cannot be honoured.
        MissingResourceError: The model is not on this machine.
    """
    who, file = options.who, options.listener_file
    check_resources(options.care)
    if who.endpoint is None and who.llm is None:
        check_who(who, file)
    from empatheia.listener import Decoding, FocusedListener, Steering

    given = given_settings(context, options.pairs, file or who.model)
    decoding = Decoding(**given.writing)
    steering = None if options.focus is None else Steering(focus=options.focus)
    care = open_care(options.care)
    listener = open_listener(who, given.overrides) if file is None else read_listener(file, who, given.overrides)
    is_plain = not (explain or steering is not None or given.overrides or isinstance(listener, FocusedListener))
    steps = None if is_plain else in_five_steps(listener, who.condition, given.overrides)
    return Session(listener, steps, care, given, decoding, steering)


def read_listener(file: Path, who: WhoOptions, overrides: Sequence[str] = ()) -> AnyListener:
    """The listener of a YAML file.

    Args:
        file: Which.
        who: Options that would name another one: none may be given.
        overrides: Settings laid over the file's, as ``--set`` gives them.

    Raises:
        ConfigError: An option that says who answers is given too, the file is no YAML file, or a setting is wrong.
    """
    for own in fields(who):
        if getattr(who, own.name) != own.default:
            raise ConfigError(f"--listener names its own models in {file}; leave --{own.name.replace('_', '-')} out.")
    if file.suffix not in LISTENER_FILES:
        raise ConfigError(f"--listener is {str(file)!r}; accepted: a YAML file. A model is named with --model.")
    from empatheia.listener import FocusedListener

    listener = FocusedListener.load(file, overrides=overrides)
    tell_host(listener)
    return listener


def in_five_steps(
    listener: AnyListener, condition: str | None = None, overrides: Sequence[str] = ()
) -> FocusedListener:
    """A model as the responder of a listener of five steps; one of those as itself.

    Args:
        listener: Who answers.
        condition: What a language model is told of the steps before; None = as it was opened, else everything.
        overrides: Settings of the steps around the model, as ``--set`` gives them.

    Raises:
        ConfigError: ``condition`` names something else, or ``overrides`` name other responders.
    """
    from empatheia.listener import FocusedListener, LanguageListener

    own = listener if overrides else getattr(listener, "in_steps", listener)
    if isinstance(own, FocusedListener):
        return own
    settings: dict[str, Any] = check_overrides(overrides, {"name": listener.name})
    if "responders" in settings.get("express", {}):
        raise ConfigError(
            f"{listener.name} was chosen to answer; leave out --set express.responders, or --model and --system."
        )
    if isinstance(listener, LanguageListener):
        shown = (listener.shown or SHOWN) if condition is None else parse_shown(condition)
        reasoner = listener.analyst if listener.has_own_analyst and "reasoner" not in settings else None
        return FocusedListener(settings, voices=[listener.as_voice(shown)], reasoner=reasoner)
    model: Any = listener
    reasoner = model if model.reasons and "reasoner" not in settings else None
    return FocusedListener(settings, voices=[model], reasoner=reasoner)
