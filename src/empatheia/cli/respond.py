"""``empatheia respond``: one reply to a conversation."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from empatheia.cli.guarding import CountryOption, NoCareOption, ResourcesOption
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
from empatheia.cli.steering import (
    AlphaOption,
    BetaOption,
    DistractorsOption,
    FocusOption,
    ListenerOption,
    NoRepeatOption,
    PenaltyOption,
    TopPOption,
    WorldsOption,
)
from empatheia.errors import DataError


class Shown(StrEnum):
    """What to print besides the reply."""

    reply = "reply"
    analysis = "analysis"


def respond(
    context: typer.Context,
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...|-", help="Turns, speaker first; '-' reads lines.")],
    as_json: Annotated[bool, typer.Option("--json", help="Reply and analysis as one JSON object.")] = False,
    strategy: Annotated[str, typer.Option(help="greedy, beam or sample.")] = "greedy",
    num_beams: Annotated[int, typer.Option(help="Width of the beam.")] = 4,
    top_k: Annotated[int, typer.Option(help="Sample from the k most probable pieces; 0 = all.")] = 20,
    top_p: TopPOption = 1.0,
    temperature: Annotated[float, typer.Option(help="Sampling temperature, above 0.")] = 0.9,
    no_repeat_ngram_size: NoRepeatOption = None,
    repetition_penalty: PenaltyOption = 1.0,
    max_new_tokens: Annotated[int, typer.Option(help="Longest reply, in pieces.")] = 60,
    seed: Annotated[int, typer.Option(help="Of sampling.")] = 0,
    show: Annotated[Shown, typer.Option(help="analysis: also emotions and causes.")] = Shown.reply,
    explain: Annotated[
        bool, typer.Option("--explain", help="Tell why: emotion, words, intent, candidates. Always in five steps.")
    ] = False,
    focus: FocusOption = None,
    alpha: AlphaOption = None,
    beta: BetaOption = None,
    worlds: WorldsOption = None,
    distractors: DistractorsOption = None,
    listener_file: ListenerOption = None,
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
) -> None:
    r"""Answer a conversation.

    Several TEXTs are the turns of one conversation: speaker, listener, speaker ... The last must be the
    speaker's.

    Without --model or --system, and with --focus or --explain, the reply comes of five steps: candidates are
    written greedily and by a beam, plain and focused, and ranked. --strategy makes it one way of writing; the other
    options change both.

    A text that tells of danger gets a reply built from parts and help lines in place of the model's; see
    'empatheia care --help'.

    \b
    empatheia respond "I finally got the job!"
    empatheia respond "My dog died." "I am so sorry." "He was fourteen." --strategy beam --show analysis
    empatheia respond "I failed again." --system cause_gated
    empatheia respond "I failed again." --system language_model --endpoint http://localhost:8000/v1 --llm NAME
    empatheia respond "My dog ate the cake." --focus cake --alpha 6 --beta 0.9 --distractors random
    empatheia respond "My dog ate the cake." --listener listener.yaml --explain
    """
    from empatheia.cli.explaining import explanation_lines
    from empatheia.cli.guarding import open_care, tell_guesses
    from empatheia.cli.opening import check_who, open_listener, usage_line
    from empatheia.cli.output import print_json, print_lines, reply_lines, say, understanding_lines
    from empatheia.cli.output import show as show_lines
    from empatheia.cli.steering import given_decoding, in_five_steps, read_listener, steering_of
    from empatheia.dialogue import Dialogue

    if texts == ["-"]:
        lines = sys.stdin.buffer.read().decode("utf-8", "replace").splitlines()
        texts = [line for line in lines if line.strip()]
        if not texts:
            raise DataError("stdin holds no text; write one turn a line, speaker first.")
    if endpoint is None and llm is None and folder is None:
        check_who(model, system, runs, listener_file)
    from empatheia.listener import Decoding, FocusedListener

    settings = Decoding(
        strategy=strategy,  # pyright: ignore[reportArgumentType]
        num_beams=num_beams,
        top_k=top_k,
        temperature=temperature,
        max_new_tokens=max_new_tokens,
        seed=seed,
        top_p=top_p,
        no_repeat_ngram_size=no_repeat_ngram_size,
        repetition_penalty=repetition_penalty,
    )
    steering = steering_of(focus, alpha, beta, worlds, distractors)
    dialogue = Dialogue.of(*texts)
    care = open_care(no_care, country, resources)
    if listener_file is not None:
        listener = read_listener(context, listener_file)
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
        )
    has_steps = isinstance(listener, FocusedListener)
    if explain or steering is not None or has_steps:
        five_steps = in_five_steps(listener, condition)
        reply = five_steps.respond(dialogue, steering=steering, explain=explain, care=care, **given_decoding(context))
    else:
        reply = listener.respond(dialogue, decoding=settings, care=care)
    if not reply.text:
        say(f"the reply is empty (finish: {reply.decoding.get('finish', 'none')}); try a larger --max-new-tokens.")
    if as_json:
        print_json(reply.to_dict())
    elif explain:
        print_lines([*explanation_lines(reply), *reply_lines(reply)])
    elif show is Shown.analysis:
        print_lines([*understanding_lines(reply.understanding), *reply_lines(reply)])
    else:
        show_lines(reply.text)
        if reply.understanding.uncertain:
            say(f"uncertain: {'; '.join(reply.understanding.uncertain)}")
    tell_guesses(care, reply)
    if told := usage_line(listener):
        say(told)
