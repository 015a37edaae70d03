"""``empatheia judge``: two systems' replies compared by a language model, each pair in both orders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from empatheia.cli.options import with_options
from empatheia.cli.output import aligned, print_json, say, show
from empatheia.errors import ConfigError
from empatheia.replies.alignment import read_answers
from empatheia.resources.chat_endpoint import ChatEndpoint
from empatheia_people.judging.judge import describe, one_system, pairs_of
from empatheia_people.judging.judge import judge as compare
from empatheia_people.judging.prompts import prompt_hash
from empatheia_people.judging.verdicts import MARK, read_ratings

if TYPE_CHECKING:
    from empatheia_people.judging.judge import Judgement


@dataclass(frozen=True)
class JudgeOptions:
    """Who judges."""

    base_url: Annotated[
        str | None,
        typer.Option(help="OpenAI-compatible endpoint, e.g. http://localhost:8000/v1. [default: EMPATHEIA_BASE_URL]"),
    ] = None
    model: Annotated[str | None, typer.Option(help="Name under which it serves the judge.")] = None
    key_env: Annotated[str, typer.Option(help="Environment variable that holds the key.")] = "EMPATHEIA_API_KEY"


@dataclass(frozen=True)
class SendingOptions:
    """How questions are sent, and what they cost."""

    workers: Annotated[int, typer.Option(help="Questions sent at once.", min=1, max=64)] = 4
    timeout: Annotated[float, typer.Option(help="Seconds without an answer before a retry.")] = 60.0
    retries: Annotated[int, typer.Option(help="Retries after a failure, with growing pauses.", min=0)] = 5
    max_tokens: Annotated[int, typer.Option(help="Most tokens of an answer.", min=1)] = 300
    price_in: Annotated[float | None, typer.Option(help="Price of a million prompt tokens.")] = None
    price_out: Annotated[float | None, typer.Option(help="Price of a million completion tokens.")] = None


@with_options
def judge(
    *,
    a: Annotated[Path, typer.Argument(help="System A: run folder, or file of replies as `empatheia score` reads it.")],
    b: Annotated[Path, typer.Argument(help="System B, on the same contexts.")],
    system_a: Annotated[str | None, typer.Option(help="Which system of A's file.")] = None,
    system_b: Annotated[str | None, typer.Option(help="Which system of B's file.")] = None,
    judge_model: JudgeOptions,
    out: Annotated[Path, typer.Option(help="File of answers; what is in it is not asked again.")] = Path(
        "judged.jsonl"
    ),
    human: Annotated[
        Path | None,
        typer.Option(
            help="People's choices (CSV or JSON lines: pair, choice, criterion, rater), to measure agreement."
        ),
    ] = None,
    criteria: Annotated[str, typer.Option(help="Comma-separated.")] = "empathy,relevance,fluency,overall",
    limit: Annotated[
        int | None, typer.Option(help="Number of contexts, drawn at random; the papers take 100. [default: all]", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    sending: SendingOptions,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the first question and the number of tokens; send nothing.")
    ] = (False),
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    r"""Let a language model compare two systems' replies, pair by pair, in both orders.

    \b
    empatheia judge runs/gao2021/soft/full-seed1024 runs/default/listener/full-seed1024 --limit 100 --dry-run
    empatheia judge moel.txt moel.txt --system-a MOE --system-b trs --base-url http://localhost:8000/v1 --model NAME
    """
    names = [name.strip() for name in criteria.split(",") if name.strip()]
    if (sending.price_in is None) != (sending.price_out is None):
        raise ConfigError("give both --price-in and --price-out, or neither.")
    first, second = (
        one_system(read_answers(place), system, option)
        for place, system, option in ((a, system_a, "--system-a"), (b, system_b, "--system-b"))
    )
    pairs, name_a, name_b = pairs_of(first, second, limit, seed)
    ratings = read_ratings(human, name_a, name_b) if human is not None else []
    if dry_run:
        question, n, tokens = describe(pairs, names)
        show(question or "All replies are the same; there is nothing to ask.")
        show(f"\n{len(pairs):,} pairs, {n:,} questions, about {tokens:,} prompt tokens; nothing was sent.")
        return
    if judge_model.model is None:
        raise ConfigError("no judge: give --model, the name under which the endpoint serves it; or --dry-run.")
    endpoint = ChatEndpoint(
        judge_model.model,
        judge_model.base_url,
        key_variable=judge_model.key_env,
        timeout=sending.timeout,
        retries=sending.retries,
    )
    told = 0

    def progress(done: int, wanted: int) -> None:
        nonlocal told
        if done == wanted or done - told >= max(20, wanted // 20):
            told = done
            say(f"{done:,} of {wanted:,} answers")

    say(f"asking {endpoint.host}, question {prompt_hash(names)}, answers in {out}")
    prices = None if sending.price_in is None or sending.price_out is None else (sending.price_in, sending.price_out)
    result = compare(
        pairs,
        (name_a, name_b),
        endpoint,
        out,
        criteria=names,
        workers=sending.workers,
        max_tokens=sending.max_tokens,
        prices=prices,
        ratings=ratings,
        progress=progress,
    )
    if as_json:
        print_json(result.to_dict())
        return
    show("\n".join(_lines(result)))


def _lines(result: Judgement) -> Iterator[str]:
    yield f"A: {result.a}"
    yield f"B: {result.b}"
    yield f"{MARK} ({result.model}, question {result.prompt})"
    left_out = f"{result.n_unreadable:,} unreadable (left out)"
    yield f"{result.n_pairs:,} pairs: {result.n_identical:,} identical (ties), {left_out}"
    rows: list[tuple[str, ...]] = [
        ("", "A wins", "B wins", "tie", "A - B", "95 % interval", "p (sign)", "p (Holm)", "contradicted", "halved")
    ]
    for each in result.criteria:
        net = each.intervals["net"]
        rows.append(
            (
                each.criterion,
                *(f"{each.percent[outcome]:.1f} %" for outcome in ("win", "loss", "tie")),
                f"{each.net:+.1f}",
                "-" if net is None else f"{net[0]:+.1f} to {net[1]:+.1f}",
                f"{each.p_value:.2g}",
                f"{each.p_adjusted:.2g}",
                f"{each.kinds.get('contradicted', 0):,}",
                f"{each.kinds.get('halved', 0):,}",
            )
        )
    yield from (f"  {line}" for line in aligned(rows, range(1, len(rows[0]))))
    biased = [f"{each.criterion} {each.first_share:.0f} %" for each in result.criteria if each.first_share is not None]
    if biased:
        yield f"choices that fell on the reply shown first (50 without bias): {', '.join(biased)}"
    yield "contradicted: each order prefers another reply; halved: one order sees a tie. Both count as ties."
    for each in result.agreement:
        interval = "" if each.interval is None else f" [{each.interval[0]:.2f}, {each.interval[1]:.2f}]"
        people = (
            "" if each.people_kappa is None else f"; people among themselves: Fleiss' kappa {each.people_kappa:.2f}"
        )
        yield (
            f"agreement with people, {each.criterion}: Cohen's kappa {each.kappa:.2f}{interval},"
            f" {each.percent:.0f} % of {each.n:,} pairs{people}"
        )
    cost = "" if result.cost is None else f", cost {result.cost:.4f}"
    yield f"tokens: {result.tokens['prompt']:,} prompt, {result.tokens['completion']:,} completion{cost}"
