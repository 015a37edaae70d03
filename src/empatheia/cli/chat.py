"""``empatheia chat``: a conversation, turn by turn; sentences as they come where one model is named."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from empatheia.cli.guarding import CountryOption, NoCareOption, ResourcesOption
from empatheia.cli.listener_settings import (
    AlphaOption,
    BetaOption,
    DistractorsOption,
    NoRepeatOption,
    PenaltyOption,
    SetOption,
    TemperatureOption,
    TopKOption,
    TopPOption,
    WorldsOption,
)
from empatheia.cli.opening import (
    ConditionOption,
    EndpointOption,
    FolderOption,
    KeyOption,
    LlmOption,
    ModelOption,
    PriceInOption,
    PriceOutOption,
    RunsOption,
    SystemOption,
)
from empatheia.cli.output import say, show, show_piece
from empatheia.cli.respond import Shown
from empatheia.cli.steering import COMMANDS, FocusOption, ListenerOption
from empatheia.cli.steering import HELP as STEERING_HELP

if TYPE_CHECKING:
    from empatheia.listener import Conversation

HELP = f"""\
{STEERING_HELP}
  /reset                  forget the conversation
  /help                   show this
  /quit                   leave
All else is said to the listener."""


def chat(
    context: typer.Context,
    strategy: Annotated[str, typer.Option(help="greedy, sample or beam.")] = "greedy",
    seed: Annotated[int, typer.Option(help="Seed of sampling.")] = 0,
    show: Annotated[Shown, typer.Option(help="analysis: also emotions and causes of each turn.")] = Shown.reply,
    focus: FocusOption = None,
    listener_file: ListenerOption = None,
    pairs: SetOption = None,
    model: ModelOption = None,
    system: SystemOption = None,
    runs: RunsOption = None,
    endpoint: EndpointOption = None,
    llm: LlmOption = None,
    folder: FolderOption = None,
    condition: ConditionOption = None,
    key_env: KeyOption = "EMPATHEIA_API_KEY",
    price_in: PriceInOption = None,
    price_out: PriceOutOption = None,
    no_care: NoCareOption = False,
    country: CountryOption = None,
    resources: ResourcesOption = None,
    top_k: TopKOption = 20,
    top_p: TopPOption = 1.0,
    temperature: TemperatureOption = 0.9,
    no_repeat_ngram_size: NoRepeatOption = None,
    repetition_penalty: PenaltyOption = 1.0,
    alpha: AlphaOption = None,
    beta: BetaOption = None,
    worlds: WorldsOption = None,
    distractors: DistractorsOption = None,
) -> None:
    r"""Talk with a model.

    Without --model or --system the replies are ranked by five steps, so each is shown when it is complete; otherwise
    sentences are shown as they are written, except with beam search. --strategy leaves one way of writing. A text about
    danger gets a composed reply with help lines; see 'empatheia care --help'.

    Reads stdin to its end when that is not a terminal: one line in, one reply out. Commands inside: /quit,
    /reset, /help; /focus, /alpha, /emotion, /intent steer the next replies, /why explains the last. Named words apply
    only to the next turn.

    \b
    empatheia chat --show analysis
    empatheia chat --focus auto --set express.focus.alpha=4
    printf 'I failed my exam.\nI studied for weeks.\n' | empatheia chat
    """
    from empatheia.cli.guarding import check_resources, open_care, tell_notice
    from empatheia.cli.listener_settings import given_settings
    from empatheia.cli.opening import check_who, open_listener, usage_line
    from empatheia.cli.output import say
    from empatheia.cli.steering import in_five_steps, read_listener

    check_resources(no_care, country, resources)
    if endpoint is None and llm is None:
        check_who(model, system, runs, listener_file, folder)
    from empatheia.listener import FocusedListener

    given = given_settings(context, pairs, listener_file or model)
    settings, steering = given.decoding(), given.steering(focus)
    care = open_care(no_care, country, resources)
    if listener_file is not None:
        listener = read_listener(context, listener_file, given.overrides)
    else:
        listener = open_listener(
            model,
            system,
            runs=runs,
            endpoint=endpoint,
            llm=llm,
            folder=folder,
            condition=condition,
            key_env=key_env,
            price_in=price_in,
            price_out=price_out,
            overrides=given.overrides,
        )
    has_steps = isinstance(listener, FocusedListener)
    if steering is not None or has_steps or given.needs_five_steps:
        steps = in_five_steps(listener, condition, given.overrides)
        conversation = steps.converse(steering=steering, care=care, **steps.used(given.writing, say))
    else:
        conversation = listener.converse(decoding=settings, care=care)
    tell_notice(care)
    try:
        _converse(conversation, show, condition, given.writing)
    finally:
        if told := usage_line(listener):
            say(told)


def _converse(conversation: Conversation, show: Shown, condition: str | None, given: Mapping[str, Any]) -> None:
    """Reads, and answers, to the end of the input or ``/quit``."""
    from empatheia.cli.output import say
    from empatheia.cli.steering import steer
    from empatheia.errors import EmpatheiaError

    is_terminal = sys.stdin.isatty()
    if is_terminal:
        say(f"Say something; {_who(conversation.listener.name)} answers.\n{HELP}")
    for line in _lines(is_terminal):
        text = line.strip()
        if text == "/quit":
            return
        if text == "/reset":
            conversation.reset()
            say("the conversation is forgotten.")
        elif text == "/help":
            say(HELP)
        elif not text:
            say("say something; /help shows the commands.")
        elif text.startswith("/") and text[1:].isalpha() and text not in COMMANDS:
            say(f"no such command {text!r}; /help shows them.")
        else:
            try:
                if text.split()[0] in COMMANDS:
                    conversation = steer(conversation, text, condition, given)
                else:
                    _answer(conversation, text, show is Shown.analysis, is_terminal)
            except EmpatheiaError as error:
                say(f"error: {error}")


def _who(name: str) -> str:
    return "a listener of five steps" if name == "five steps" else name


def _answer(conversation: Conversation, text: str, with_analysis: bool, is_terminal: bool) -> None:
    """Streams one reply to stdout; one of five steps comes whole, after the words it should be about."""
    from empatheia.cli.output import print_lines, say, understanding_lines, visible
    from empatheia.listener.steps.conversing import SteeredConversation

    stream = conversation.stream(text)
    if with_analysis:
        print_lines(understanding_lines(stream.understanding, top=3, last_turns=1))
    elif stream.understanding.uncertain:
        say(f"uncertain: {'; '.join(stream.understanding.uncertain)}")
    pieces: Iterable[str] = stream
    try:
        if isinstance(conversation, SteeredConversation):
            pieces = list(stream)
            told = None if conversation.last is None else conversation.last.explanation
            if told is not None and told.worlds:
                say(f"about: {', '.join(visible(span.of(told.turns)) for span in told.targets) or 'no word'}")
        if is_terminal or with_analysis:
            show_piece("listener  ")
        for piece in pieces:
            show_piece(piece, keeps_lines=is_terminal)
    except KeyboardInterrupt:
        say("(stopped)")
    show("")
    if isinstance(conversation, SteeredConversation) and conversation.steering.words:  # hardly in the next turn
        conversation.steering = conversation.steering.but(focus="auto")


def _lines(is_terminal: bool) -> Iterator[str]:
    """What the person says: prompted on a terminal, else the lines of stdin; bad bytes are replaced."""
    if not is_terminal:
        for raw in sys.stdin.buffer:
            yield raw.decode("utf-8", "replace")
        return
    with suppress(ImportError):
        import readline  # noqa: F401  (gives input() editing and history)
    while True:
        try:
            yield input("you       ")
        except (EOFError, KeyboardInterrupt):
            show("")
            return
        except UnicodeDecodeError:
            say("error: that was not UTF-8; please say it again.")
