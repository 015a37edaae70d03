"""A language model behind an OpenAI-compatible endpoint as listener: many conversations, several at once, in order.

What is said to it is that of :mod:`empatheia.text.prompts`; retries, pauses and limits are the client's
(:mod:`empatheia.resources.chat_endpoint`). Every answer may go to a journal when it comes; what stands there under the
same prompt, model and settings is not asked (nor paid) again.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from empatheia.errors import ConfigError, DataError, EndpointError
from empatheia.reading import Json, parse_json
from empatheia.records.dialogue import Example
from empatheia.resources.chat_endpoint import ChatAnswer, ChatEndpoint, Ledger, Message, Prices, Usage, in_order
from empatheia.text.prompts import Hints, Wording, messages_of, read_reply
from empatheia.writing import append_line, is_whole_line


class EndpointConfig(Protocol):
    """Where a language model is served and how it is asked, as a model folder of form ``endpoint`` holds it.

    Attributes:
        llm: Name under which it is served.
        endpoint: Address up to ``/v1``; None = EMPATHEIA_BASE_URL.
        wording: Texts of the prompt that differ from :class:`~empatheia.text.prompts.Wording`.
        request: More fields of every request.
        workers: Requests under way at once.
    """

    llm: str | None
    endpoint: str | None
    wording: dict[str, str] | None
    request: dict[str, Any] | None
    workers: int


class Endpoint(Protocol):
    """What is asked: a :class:`~empatheia.resources.chat_endpoint.ChatEndpoint` or anything like it."""

    model: str

    def ask(self, messages: Sequence[Message], **options: Any) -> ChatAnswer:
        """One answer to a conversation."""
        ...


@dataclass(frozen=True, slots=True)
class EndpointReply:
    """One answer.

    Attributes:
        reply: Its text as a listener's turn; empty if it held none.
        finish: Why it ended, as the server says.
        served: What the server says answered.
        usage: What it took by itself; an answer from the journal took what it took when it was asked, and nothing the
            second time.
        is_kept: It came from the journal.
    """

    reply: str
    finish: str
    served: str
    usage: Usage
    is_kept: bool = False


class EndpointReplies:
    """Answers conversations.

    Args:
        endpoint: Who is asked.
        wording: Texts of the prompt; None = the standard ones.
        prices: For the cost; None = tokens alone.
        request: More fields of every request; None as a value leaves a field out.
        workers: Requests under way at once.
        journal: File to which every answer is added as it comes, one JSON object a line; it may be there already.

    Attributes:
        ledger: Tokens and cost of each conversation (by id) and in total, the kept answers' included. An answer that
            served several conversations is booked with the first.

    Raises:
        DataError: The journal is no journal, or its folder is not there.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        wording: Wording | None = None,
        *,
        prices: Prices | None = None,
        request: Mapping[str, Json] | None = None,
        workers: int = 4,
        journal: str | Path | None = None,
    ) -> None:
        if workers < 1:
            raise ConfigError(f"workers is {workers}; accepted: 1 or more.")
        self.endpoint = endpoint
        self.wording = wording or Wording()
        self.request = dict(request or {})
        self.workers = workers
        self.ledger = Ledger(prices)
        self.journal = None if journal is None else Path(journal)
        self._kept = {} if self.journal is None else _read_journal(self.journal)
        self._booked: set[str] = set()
        self._under_way: dict[str, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._limit_name = "max_tokens"

    def reply(self, example: Example, hints: Hints | None = None, **options: Any) -> EndpointReply:
        """One answer.

        Args:
            example: A context that ends with a speaker turn; a reply or label in it is not read.
            hints: What is shown of an analysis.
            **options: Fields of the request: ``max_tokens``, ``temperature``, ``seed`` ...

        Raises:
            EndpointError: The server refused, or no try gave an answer.
        """
        messages = messages_of(example.context, hints, self.wording)
        body = {**options, **self.request}
        key = self._key(messages, body)
        row, is_kept = self._once(key, messages, body, example)
        with self._lock:
            is_booked = is_kept and key in self._booked
            self._booked.add(key)
        took = [0 if is_booked else int(row[name]) for name in ("prompt_tokens", "completion_tokens", "tries")]
        usage = self.ledger.add(example.dialogue_id, *took)
        return EndpointReply(read_reply(row["answer"]), row["finish"], row["served"], usage, is_kept)

    def stream(self, pairs: Iterable[tuple[Example, Hints | None]], **options: Any) -> Iterator[EndpointReply]:
        """Answers in the order of the conversations, ``workers`` at once.

        Args:
            pairs: Any number of contexts, each with what is shown of its analysis.
            **options: Fields of every request.

        Raises:
            EndpointError: One got no answer; what was answered is in the journal.
        """
        try:
            yield from in_order(lambda pair: self.reply(*pair, **options), pairs, self.workers)
        except EndpointError as error:
            if self.journal is None:
                raise
            told = str(error).rstrip(".")
            raise EndpointError(
                f"{told}. The answers so far are in {self.journal}; repeat the command to continue."
            ) from None

    def _once(
        self, key: str, messages: list[dict[str, str]], body: Mapping[str, Any], example: Example
    ) -> tuple[dict[str, Any], bool]:
        """The journal's row, or a new one; the same question is never under way twice."""
        mine: Future[dict[str, Any]] = Future()
        with self._lock:
            if key in self._kept:
                return self._kept[key], True
            waits_for = self._under_way.get(key)
            if waits_for is None:
                self._under_way[key] = mine
        if waits_for is not None:
            return waits_for.result(), True
        try:
            row = self._row(self._ask(messages, body), key, example)
            if self.journal is not None:
                with self._lock:
                    append_line(self.journal, json.dumps(row, ensure_ascii=False))
                    self._kept[key] = row
            with self._lock:
                self._booked.add(key)  # by who asked, so by nobody who waited
        except BaseException as error:  # who waits for this answer must not wait for ever
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._under_way[key]
        mine.set_result(row)
        return row, False

    def _ask(self, messages: list[dict[str, str]], body: Mapping[str, Any]) -> ChatAnswer:
        def named(name: str) -> dict[str, Any]:
            options = dict(body)
            if name != "max_tokens" and "max_tokens" in options:
                options[name] = options.pop("max_tokens")
            return options

        limit = self._limit_name
        try:
            return self.endpoint.ask(messages, **named(limit))
        except EndpointError as error:
            if limit != "max_tokens" or "max_completion_tokens" not in str(error) or "max_tokens" not in body:
                raise
        answer = self.endpoint.ask(messages, **named("max_completion_tokens"))  # newer servers' name for the same
        self._limit_name = "max_completion_tokens"
        return replace(answer, tries=answer.tries + 1)

    def _row(self, answer: ChatAnswer, key: str, example: Example) -> dict[str, Any]:
        return {
            "key": key,
            "id": example.dialogue_id,
            "turn": len(example.context),
            "answer": answer.text,
            "finish": answer.finish,
            "model": self.endpoint.model,
            "served": answer.model,
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "tries": answer.tries,
            "seconds": round(answer.seconds, 3),
        }

    def _key(self, messages: list[dict[str, str]], body: Mapping[str, Any]) -> str:
        """32 hexadecimal digits of everything that is asked, of whom, and how."""
        address = getattr(self.endpoint, "base_url", "")
        text = json.dumps([address, self.endpoint.model, messages, body], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def open_endpoint(
    config: EndpointConfig,
    *,
    prices: Prices | None = None,
    journal: str | Path | None = None,
    **client: Any,
) -> EndpointReplies:
    """The endpoint a configuration of form ``endpoint`` names.

    Args:
        config: E.g. the configuration of a language model's folder.
        prices: For the cost.
        journal: See :class:`EndpointReplies`.
        **client: Options of :class:`~empatheia.resources.chat_endpoint.ChatEndpoint`: ``timeout``, ``key_variable`` ...

    Raises:
        ConfigError: There is no or no usable address.
    """
    endpoint = ChatEndpoint(config.llm or "", config.endpoint, **client)
    wording = Wording.of(config.wording)
    return EndpointReplies(
        endpoint, wording, prices=prices, request=config.request, workers=config.workers, journal=journal
    )


def _read_journal(path: Path) -> dict[str, dict[str, Any]]:
    """Answers an earlier call left, by key; a last line that a kill cut short counts as none."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file, e.g. {path / 'answers.jsonl'}.")
    if not path.absolute().parent.is_dir():
        raise DataError(f"the folder {path.absolute().parent} does not exist; create it first.")
    if not path.is_file():
        return {}
    found: dict[str, dict[str, Any]] = {}
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n") and not is_whole_line(line, path):
                break
            try:
                row = parse_json(line)
                for name in ("key", "answer", "finish", "served"):
                    if not isinstance(row[name], str):
                        raise TypeError(name)
                for name in ("prompt_tokens", "completion_tokens", "tries"):
                    int(row[name])
            except (ValueError, KeyError, TypeError, OverflowError):
                raise DataError(f"{path}:{number}: not an answer of a language model; name another file.") from None
            found[row["key"]] = row
    return found
