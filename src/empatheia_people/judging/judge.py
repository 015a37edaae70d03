"""The comparison itself: pairs out of two reply files, two questions each, a file of answers that can be continued."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from empatheia.errors import ConfigError, DataError, EndpointError
from empatheia.reading import parse_json
from empatheia.registry import nearest
from empatheia.replies.alignment import AnswerFile, align, text_key
from empatheia.resources.chat_endpoint import ChatAnswer
from empatheia.writing import append_line, is_whole_line
from empatheia_people.judging.prompts import CRITERIA, Choice, asked_again, messages_for, prompt_hash, read_choices
from empatheia_people.judging.verdicts import (
    MARK,
    Agreement,
    CriterionResult,
    HumanRating,
    Verdict,
    agreement,
    summarise,
    verdict_of,
)

Order = Literal["ab", "ba"]
ORDERS: tuple[Order, ...] = ("ab", "ba")
_CHARACTERS_A_TOKEN = 4


class Endpoint(Protocol):
    """What is asked: a :class:`~empatheia.resources.chat_endpoint.ChatEndpoint` or anything like it."""

    model: str

    def ask(self, messages: Sequence[Mapping[str, str]], **options: Any) -> ChatAnswer:
        """One answer to a conversation."""
        ...


@dataclass(frozen=True, slots=True)
class Pair:
    """Two replies to one context.

    Attributes:
        id: ``dialogue/turn``, or ``#n``, the place in A's file.
        context: Turns, the speaker's first.
        a, b: The replies.
    """

    id: str
    context: tuple[str, ...]
    a: str
    b: str

    @property
    def is_identical(self) -> bool:
        """Whether the replies are one in letters and digits."""
        return text_key(self.a) == text_key(self.b)

    @property
    def fingerprint(self) -> str:
        """12 hexadecimal digits of context and replies."""
        text = json.dumps([self.context, self.a, self.b])
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of a comparison.

    Attributes:
        a, b: Names of the systems.
        model: The judge.
        prompt: Fingerprint of the question, see :func:`~empatheia_people.judging.prompts.prompt_hash`.
        n_pairs: Pairs compared.
        n_identical: Of these, pairs with the same reply, which count as ties and were not asked.
        n_unreadable: Pairs left out since an answer was a refusal or could not be read.
        criteria: Results, seen from A.
        tokens: Sums of ``prompt`` and ``completion`` tokens, as the server counts them.
        cost: In the currency of the prices, or None.
        agreement: With people, if their choices were given.
    """

    a: str
    b: str
    model: str
    prompt: str
    n_pairs: int
    n_identical: int
    n_unreadable: int
    criteria: tuple[CriterionResult, ...]
    tokens: Mapping[str, int]
    cost: float | None
    agreement: tuple[Agreement, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """JSON-ready; ``kind`` says that a model judged."""
        return {
            "kind": MARK,
            "a": self.a,
            "b": self.b,
            "judge": {"model": self.model, "prompt": self.prompt, "temperature": 0},
            "pairs": self.n_pairs,
            "identical": self.n_identical,
            "unreadable": self.n_unreadable,
            "criteria": [result.to_dict() for result in self.criteria],
            "tokens": dict(self.tokens),
            "cost": self.cost,
            "agreement": [each.to_dict() for each in self.agreement],
        }


def one_system(file: AnswerFile, system: str | None, option: str) -> AnswerFile:
    """A file with only one of its systems.

    Args:
        file: As read.
        system: Its name, with or without the file's title before it; None = the only one.
        option: What chooses it, for the message.

    Raises:
        ConfigError: There is no such system, or there are several and none is named.
    """
    short = {name.removeprefix(f"{file.title}: "): name for name in file.answers}
    if system is None and len(short) > 1:
        raise ConfigError(f"{file.place} holds {len(short)} systems; choose with {option}: {', '.join(short)}.")
    name = next(iter(file.answers)) if system is None else short.get(system, system)
    if name not in file.answers:
        raise ConfigError(
            f"{file.place} has no system {system!r}.{nearest(str(system), list(short))} Found: {', '.join(short)}."
        )
    return replace(file, answers={name: file.answers[name]})


def pairs_of(a: AnswerFile, b: AnswerFile, limit: int | None = None, seed: int = 0) -> tuple[list[Pair], str, str]:
    """The contexts that both systems answered.

    Args:
        a: File with one system, see :func:`one_system`.
        b: The other.
        limit: Draw so many at random; None = all. The papers take 100.
        seed: Of the draw.

    Returns:
        Pairs in the order of A's file, and the names of both systems.

    Raises:
        DataError: No context is in both, or contexts are not known.
    """
    ((name_a, answers_a),) = a.answers.items()
    ((name_b, answers_b),) = b.answers.items()
    if name_a == name_b:
        name_a, name_b = f"{name_a} (A)", f"{name_b} (B)"
        a, b = _renamed(a, name_a), _renamed(b, name_b)
    shared = [item for item in align([a, b]) if name_a in item.answers and name_b in item.answers]
    if not shared:
        raise DataError(
            f"{name_a} and {name_b} answer no context in common ({len(answers_a):,} and {len(answers_b):,} replies);"
            " both files need the same dialogues, with contexts or ids."
        )
    if any(not item.context for item in shared):
        why = next((note for note in (*a.notes, *b.notes) if "contexts" in note), "the files hold none")
        raise DataError(f"a judge needs the contexts: {why}")
    pairs = [Pair(i.id, i.context, i.answers[name_a].reply, i.answers[name_b].reply) for i in shared]
    if limit is not None and limit < len(pairs):
        chosen = sorted(random.Random(seed).sample(range(len(pairs)), limit))
        pairs = [pairs[i] for i in chosen]
    return pairs, name_a, name_b


def _renamed(file: AnswerFile, name: str) -> AnswerFile:
    """A file of one system under another name."""
    (answers,) = file.answers.values()
    return replace(file, answers={name: tuple(replace(answer, system=name) for answer in answers)})


def describe(pairs: Sequence[Pair], criteria: Sequence[str] = tuple(CRITERIA)) -> tuple[str, int, int]:
    """What would be sent, without sending it.

    Returns:
        The messages of the first question as text, the number of questions, and about how many tokens they have.
    """
    asked = [pair for pair in pairs if not pair.is_identical]
    if not asked:
        return "", 0, 0
    first = messages_for(asked[0].context, asked[0].a, asked[0].b, criteria)
    text = "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in first)
    n_characters = sum(
        len(message["content"]) for pair in asked for message in messages_for(pair.context, pair.a, pair.b, criteria)
    )
    return text, 2 * len(asked), 2 * n_characters // _CHARACTERS_A_TOKEN


def judge(
    pairs: Sequence[Pair],
    names: tuple[str, str],
    endpoint: Endpoint,
    out: str | Path,
    *,
    criteria: Sequence[str] = tuple(CRITERIA),
    workers: int = 4,
    max_tokens: int = 300,
    prices: tuple[float, float] | None = None,
    ratings: Sequence[HumanRating] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Judgement:
    """Asks about each pair in both orders and sums up.

    Every answer is added to ``out`` when it comes; what is there already is not asked again.

    Args:
        pairs: Of :func:`pairs_of`.
        names: Of the systems.
        endpoint: The judge.
        out: JSON lines, one an answer: ``pair``, ``order``, ``choices`` (None where unreadable), ``answer`` and tokens.
        criteria: Keys of ``CRITERIA``.
        workers: Questions under way at once.
        max_tokens: Of an answer.
        prices: Of a million prompt and completion tokens.
        ratings: People's choices.
        progress: Called with the answers there and those wanted.

    Raises:
        ConfigError: Unknown criterion, or a number below 1.
        DataError: ``out`` holds answers of another model, question or pair; or no answer can be read.
        EndpointError: The judge cannot be asked; what came before is kept in ``out``.
    """
    for name in criteria:
        if name not in CRITERIA:
            known = list(CRITERIA)
            raise ConfigError(f"unknown criterion {name!r}.{nearest(name, known)} Known: {', '.join(known)}.")
    if not criteria or workers < 1 or max_tokens < 1:
        raise ConfigError(
            f"{len(criteria)} criteria, {workers} workers, {max_tokens} tokens; accepted: 1 or more of each."
        )
    path, prompt = Path(out), prompt_hash(criteria)
    asked = [pair for pair in pairs if not pair.is_identical]
    rows = _kept(path, {pair.id: pair for pair in asked}, endpoint.model, prompt)
    todo: list[tuple[Pair, Order]] = [
        (pair, order) for pair in asked for order in ORDERS if (pair.id, order) not in rows
    ]
    if todo:
        path.open("ab").close()  # where it cannot be written, nothing is asked
        for row in _ask_all(todo, endpoint, criteria, prompt, workers, max_tokens, path):
            append_line(path, json.dumps(row, ensure_ascii=False))
            rows[row["pair"], row["order"]] = row
            if progress is not None:
                progress(len(rows), 2 * len(asked))
    return _summed_up(pairs, names, endpoint.model, prompt, rows, criteria, prices, ratings)


def _ask_all(
    todo: Sequence[tuple[Pair, Order]],
    endpoint: Endpoint,
    criteria: Sequence[str],
    prompt: str,
    workers: int,
    max_tokens: int,
    path: Path,
) -> Iterator[dict[str, Any]]:
    """Rows as they come; the first failure ends it after what is under way."""
    pool = ThreadPoolExecutor(workers)
    failure: EndpointError | None = None
    try:
        futures: list[Future[dict[str, Any]]] = [
            pool.submit(_ask, pair, order, endpoint, criteria, prompt, max_tokens) for pair, order in todo
        ]
        for future in as_completed(futures):
            if future.cancelled():
                continue
            try:
                yield future.result()
            except EndpointError as error:
                failure = failure or error
                for other in futures:
                    other.cancel()
    finally:
        pool.shutdown(cancel_futures=True)
    if failure is not None:
        told = str(failure).rstrip(".")
        raise EndpointError(f"{told}. The answers so far are in {path}; repeat the command to continue.")


def _ask(
    pair: Pair, order: Order, endpoint: Endpoint, criteria: Sequence[str], prompt: str, max_tokens: int
) -> dict[str, Any]:
    """One question; an answer that cannot be read is asked for once more."""
    first, second = (pair.a, pair.b) if order == "ab" else (pair.b, pair.a)
    messages = messages_for(pair.context, first, second, criteria)
    answer = endpoint.ask(messages, max_tokens=max_tokens)
    answers = [answer]
    choices = read_choices(answer.text, criteria)
    if choices is None:
        answer = endpoint.ask(asked_again(messages, answer.text), max_tokens=max_tokens)
        answers.append(answer)
        choices = read_choices(answer.text, criteria)
    return {
        "pair": pair.id,
        "order": order,
        "choices": choices,
        "answer": answer.text,
        "finish": answer.finish,
        "model": endpoint.model,
        "served": answer.model,
        "prompt": prompt,
        "material": pair.fingerprint,
        "prompt_tokens": sum(each.prompt_tokens for each in answers),
        "completion_tokens": sum(each.completion_tokens for each in answers),
        "tries": sum(each.tries for each in answers),
    }


def _kept(path: Path, pairs: Mapping[str, Pair], model: str, prompt: str) -> dict[tuple[str, Order], dict[str, Any]]:
    """Answers an earlier call left, checked; a last line that a kill cut short counts as none."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file, e.g. {path / 'judged.jsonl'}.")
    if not path.absolute().parent.is_dir():
        raise DataError(f"the folder {path.absolute().parent} does not exist; create it first.")
    if not path.is_file():
        return {}
    found: dict[tuple[str, Order], dict[str, Any]] = {}
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n") and not is_whole_line(line, path):
                break
            try:
                row = parse_json(line)
                key, made = (str(row["pair"]), row["order"]), (row["model"], row["prompt"])
                fingerprint, choices = row["material"], row["choices"]
                tokens = {name: int(row[name]) for name in ("prompt_tokens", "completion_tokens")}
            except (ValueError, KeyError, TypeError, OverflowError):
                raise DataError(f"{path}:{number}: not an answer of a judge; name another file with --out.") from None
            if made != (model, prompt):
                raise DataError(
                    f"{path}:{number}: answers of {made[0]!r} to question {made[1]}, this is {model!r} and {prompt};"
                    " name another file with --out."
                )
            pair = pairs.get(key[0])
            if pair is None:  # of a larger draw
                continue
            if pair.fingerprint != fingerprint:
                raise DataError(f"{path}:{number}: pair {key[0]} had other replies; name another file with --out.")
            found.setdefault(key, row | {"choices": choices} | tokens)
    return found


def _summed_up(
    pairs: Sequence[Pair],
    names: tuple[str, str],
    model: str,
    prompt: str,
    rows: Mapping[tuple[str, Order], Mapping[str, Any]],
    criteria: Sequence[str],
    prices: tuple[float, float] | None,
    ratings: Sequence[HumanRating],
) -> Judgement:
    verdicts: dict[str, dict[str, Verdict]] = {name: {} for name in criteria}
    choices: dict[str, list[Choice]] = {name: [] for name in criteria}
    n_identical = n_unreadable = 0
    for pair in pairs:
        if pair.is_identical:
            n_identical += 1
            for name in criteria:
                verdicts[name][pair.id] = Verdict("tie", "identical")
            continue
        ab, ba = (rows[pair.id, order]["choices"] for order in ORDERS)
        if ab is None or ba is None:
            n_unreadable += 1
            continue
        for name in criteria:
            verdicts[name][pair.id] = verdict_of(ab[name], ba[name])
            choices[name] += [ab[name], ba[name]]
    if n_unreadable and not any(verdicts.values()):
        _check_not_cut_off(rows.values())
    tokens, cost = _usage(rows.values(), prices)
    results = tuple(summarise(verdicts, choices, f"{model}, {prompt}"))
    agreed = tuple(agreement(verdicts, ratings)) if ratings else ()
    counts = (len(pairs), n_identical, n_unreadable)
    return Judgement(*names, model, prompt, *counts, results, tokens, cost, agreed)


def _check_not_cut_off(rows: Iterable[Mapping[str, Any]]) -> None:
    """Raises a DataError if whatever could not be read was cut off."""
    if all(row.get("finish") == "length" for row in rows if row["choices"] is None):
        raise DataError(
            "no answer could be read: all were cut off; call again with a larger --max-tokens and another --out."
        )


def _usage(
    rows: Collection[Mapping[str, Any]], prices: tuple[float, float] | None
) -> tuple[dict[str, int], float | None]:
    """Tokens asked and answered, and what they cost; prices are those of a million."""
    tokens = {kind: sum(int(row[f"{kind}_tokens"]) for row in rows) for kind in ("prompt", "completion")}
    if prices is None:
        return tokens, None
    return tokens, (tokens["prompt"] * prices[0] + tokens["completion"] * prices[1]) / 1e6
