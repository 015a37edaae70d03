"""``empatheia respond``: one reply to a conversation."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from empatheia.cli.guarding import CountryOption, NoCareOption, ResourcesOption
from empatheia.cli.listener_settings import (
    AlphaOption,
    BetaOption,
    DistractorsOption,
    MaxNewTokensOption,
    NoRepeatOption,
    NumBeamsOption,
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
from empatheia.cli.rows import refuse_files
from empatheia.cli.steering import FocusOption, ListenerOption
from empatheia.errors import DataError

if TYPE_CHECKING:
    from empatheia.dialogue import Reply


class Shown(StrEnum):
    """What to print besides the reply."""

    reply = "reply"
    analysis = "analysis"


def respond(
    context: typer.Context,
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...|-", help="Turns, speaker first; '-' reads lines.")],
    as_json: Annotated[bool, typer.Option("--json", help="Reply and analysis as one JSON object.")] = False,
    strategy: Annotated[str, typer.Option(help="greedy, beam or sample.")] = "greedy",
    seed: Annotated[int, typer.Option(help="Seed of sampling.")] = 0,
    show: Annotated[Shown, typer.Option(help="analysis: also emotions and causes.")] = Shown.reply,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Explain the reply: emotion, words, intent, candidates. Always uses five steps."
        ),
    ] = False,
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
    num_beams: NumBeamsOption = 4,
    top_k: TopKOption = 20,
    top_p: TopPOption = 1.0,
    temperature: TemperatureOption = 0.9,
    no_repeat_ngram_size: NoRepeatOption = None,
    repetition_penalty: PenaltyOption = 1.0,
    max_new_tokens: MaxNewTokensOption = 60,
    alpha: AlphaOption = None,
    beta: BetaOption = None,
    worlds: WorldsOption = None,
    distractors: DistractorsOption = None,
) -> None:
    r"""Answer a conversation.

    Several TEXTs are the turns of one conversation: speaker, listener, speaker ... The last must be the
    speaker's.

    Without --model or --system, and with --focus or --explain, five steps make the reply: candidates are written
    greedily and by beam search, plain and focused, and ranked. --strategy leaves one way of writing; the other options
    change both.

    A text about danger gets a composed reply with help lines instead of the model's; see 'empatheia care --help'.

    \b
    empatheia respond "I finally got the job!"
    empatheia respond "My dog died." "I am so sorry." "He was fourteen." --strategy beam --show analysis
    empatheia respond "I failed again." --system cause_gated
    empatheia respond "I failed again." --system language_model --endpoint http://localhost:8000/v1 --llm NAME
    empatheia respond "My dog ate the cake." --focus cake --set express.focus.alpha=6 --set express.focus.worlds=4
    empatheia respond "My dog ate the cake." --listener listener.yaml --explain
    """
    from empatheia.cli.guarding import check_resources, open_care, tell_guesses
    from empatheia.cli.listener_settings import given_settings
    from empatheia.cli.opening import check_who, open_listener, usage_line
    from empatheia.cli.output import say
    from empatheia.cli.steering import in_five_steps, read_listener
    from empatheia.dialogue import Dialogue

    texts = _turns(texts)
    check_resources(no_care, country, resources)
    if endpoint is None and llm is None:
        check_who(model, system, runs, listener_file, folder)
    from empatheia.listener import FocusedListener

    given = given_settings(context, pairs, listener_file or model)
    settings, steering = given.decoding(), given.steering(focus)
    dialogue = Dialogue.of(*texts)
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
    if explain or steering is not None or has_steps or given.needs_five_steps:
        five_steps = in_five_steps(listener, condition, given.overrides)
        writing = five_steps.used(given.writing, say)
        reply = five_steps.respond(dialogue, steering=steering, explain=explain, care=care, **writing)
    else:
        reply = listener.respond(dialogue, decoding=settings, care=care)
    _print(reply, as_json, given.asked(focus) if explain else None, show is Shown.analysis)
    tell_guesses(care, reply)
    if told := usage_line(listener):
        say(told)


def _turns(texts: list[str]) -> list[str]:
    """The turns of the command line, or the lines of stdin.

    Raises:
        DataError: stdin holds none, or a text is the name of a file.
    """
    if texts != ["-"]:
        refuse_files(texts, "respond")
        return texts
    lines = sys.stdin.buffer.read().decode("utf-8", "replace").splitlines()
    if turns := [line for line in lines if line.strip()]:
        return turns
    raise DataError("stdin holds no text; write one turn a line, speaker first.")


def _print(reply: Reply, as_json: bool, asked: frozenset[str] | None, with_analysis: bool) -> None:
    """The reply in the form that was asked for, with what is doubtful of it; explained where ``asked`` is not None."""
    from empatheia.cli.explaining import explanation_lines
    from empatheia.cli.output import print_json, print_lines, reply_lines, say, show, understanding_lines

    if not reply.text:
        finish = reply.decoding.get("finish", "none")
        say(f"the reply is empty (finish: {finish}); try --set express.decoding.max_new_tokens=100.")
    if as_json:
        print_json(reply.to_dict())
    elif asked is not None:
        print_lines([*explanation_lines(reply, asked), *reply_lines(reply)])
    elif with_analysis:
        print_lines([*understanding_lines(reply.understanding), *reply_lines(reply)])
    else:
        show(reply.text)
        if reply.understanding.uncertain:
            say(f"uncertain: {'; '.join(reply.understanding.uncertain)}")
