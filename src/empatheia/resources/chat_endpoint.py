"""A language model behind an OpenAI-compatible chat endpoint: one question in, one text out, with retries.

EMPATHEIA_BASE_URL   where the endpoint is, e.g. http://localhost:8000/v1 (there is no default)
EMPATHEIA_API_KEY    sent as a bearer token if set; never printed, never written

Nothing is sent unless an address was given. Redirects are not followed, so that the key goes nowhere else.
"""

from __future__ import annotations

import json
import logging
import math
import os
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from empatheia.errors import ConfigError, EndpointError
from empatheia.reading import parse_json
from empatheia.resources.http import Answer, StatusError, UnreachedError, opened
from empatheia.resources.lookup import is_offline
from empatheia.text.model_text import spoken

BASE_URL = "EMPATHEIA_BASE_URL"
API_KEY = "EMPATHEIA_API_KEY"
RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Status codes after which another try may succeed."""
UNREACHED_TRIES = 2
"""Tries where nobody listens at the address or its host is unknown: waiting seldom helps."""
LONGEST_WAIT = 60.0
"""Most seconds between two tries, whatever the server asks for."""
LONGEST_BODY = 16 << 20
"""Bytes of an answer."""
SHOWN = 200
"""Characters of what a server says that are repeated."""
_LOG = logging.getLogger(__name__)

_UNREACHED = (ConnectionRefusedError, socket.gaierror)

Message = Mapping[str, str]
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What came back.

    Attributes:
        text: Of the first choice, without thoughts and tokens of templates; may be empty.
        finish: Why it ended (``stop``, ``length``, ``content_filter`` ...), empty if not said.
        model: What the server says answered.
        prompt_tokens, completion_tokens: As the server counts them; 0 if it does not.
        tries: Requests it took.
        seconds: From the first request to the answer, pauses included.
    """

    text: str
    finish: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    tries: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, in the caller's currency; there is no built-in price.

    Args:
        prompt: Of prompt tokens.
        completion: Of completion tokens.

    Raises:
        ConfigError: One is below 0.
    """

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        if not (self.prompt >= 0 and self.completion >= 0):
            raise ConfigError(f"prices are {self.prompt} and {self.completion}; accepted: 0 or more a million tokens.")

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Of so many tokens.

        >>> Prices(0.5, 2.0).cost(1_000_000, 500_000)
        1.5
        """
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


_COUNTS = ("answers", "tries", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class Usage:
    """What answers took.

    Attributes:
        answers: How many came.
        tries: Requests sent for them.
        prompt_tokens, completion_tokens: As the server counts them.
        cost: In the currency of the prices; None without prices.
    """

    answers: int = 0
    tries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    def to_dict(self) -> dict[str, float | None]:
        """Plain JSON-ready data."""
        return asdict(self)

    def __add__(self, other: Usage) -> Usage:
        """Of both; the cost is that of what has prices.

        >>> str(Usage(1, 1, 10, 5, cost=0.5) + Usage(2, 3, 20, 7))
        '3 answers, 30 prompt and 12 completion tokens, cost 0.500000'
        """
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        counts = (getattr(self, name) + getattr(other, name) for name in _COUNTS)
        return Usage(*counts, cost=sum(costs) if costs else None)

    def __str__(self) -> str:
        cost = "" if self.cost is None else f", cost {self.cost:.6f}"
        tokens = f"{self.prompt_tokens:,} prompt and {self.completion_tokens:,} completion tokens"
        return f"{self.answers:,} answers, {tokens}{cost}"


class Ledger:
    """Tokens and cost of each conversation and of all; safe to use from several threads.

    Args:
        prices: None = tokens alone.
    """

    def __init__(self, prices: Prices | None = None) -> None:
        self.prices = prices
        self._rows: dict[str, list[int]] = {}
        self._lock = threading.Lock()

    def add(self, conversation: str, prompt_tokens: int, completion_tokens: int, tries: int = 1) -> Usage:
        """Books one answer, and says what it took by itself."""
        entry = [1, tries, prompt_tokens, completion_tokens]
        with self._lock:
            row = self._rows.setdefault(conversation, [0, 0, 0, 0])
            row[:] = [old + new for old, new in zip(row, entry, strict=True)]
        return self._usage(entry)

    @property
    def total(self) -> Usage:
        """Of all conversations."""
        with self._lock:
            return self._usage([sum(column) for column in zip(*self._rows.values(), strict=True)] or [0, 0, 0, 0])

    @property
    def conversations(self) -> dict[str, Usage]:
        """By conversation, in the order of their first answers."""
        with self._lock:
            return {name: self._usage(row) for name, row in self._rows.items()}

    def _usage(self, row: Sequence[int]) -> Usage:
        cost = None if self.prices is None else self.prices.cost(row[2], row[3])
        return Usage(*row, cost=cost)


class ChatEndpoint:
    """Asks a model; safe to use from several threads.

    Args:
        model: Name the server knows.
        base_url: Address up to ``/v1``; None = EMPATHEIA_BASE_URL.
        api_key: None = the environment variable ``key_variable``; empty sends none.
        key_variable: Where the key is.
        timeout: Seconds without a byte before a request is given up.
        longest: Seconds before it is given up however many bytes came.
        retries: Further tries after the first; each is told in the log. Where nobody listens there are
            :data:`UNREACHED_TRIES` at most.
        first_wait: Seconds before the second try; doubled for each further one, with up to a quarter more by chance.
        sleep: What waits; for tests.

    Attributes:
        begins_in_thought: An answer closed thoughts that it had not opened, so the next ones are taken to do the same.

    Raises:
        ConfigError: No or no usable address, or the offline switch is on and the address is another machine's.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        key_variable: str = API_KEY,
        timeout: float = 60.0,
        longest: float = 600.0,
        retries: int = 5,
        first_wait: float = 1.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model = model
        self.base_url = (base_url or os.environ.get(BASE_URL, "")).strip().rstrip("/")
        if not self.base_url:
            raise ConfigError(f"no endpoint: give --base-url, e.g. http://localhost:8000/v1, or set {BASE_URL}.")
        if not model.strip():
            raise ConfigError("no model: give the name under which the endpoint serves it.")
        if not _is_address(self.base_url):
            raise ConfigError(
                f"{_without_user(self.base_url)!r} is not the address of an endpoint; accepted: http:// "
                f"or https://, a host"
                " and a path, without user, password and query."
            )
        parts = urlsplit(self.base_url)
        self.host = parts.netloc
        if is_offline() and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise ConfigError(f"connections are switched off (EMPATHEIA_OFFLINE), so {self.host} cannot be asked.")
        if not (0 < timeout < math.inf and 0 < longest < math.inf and retries >= 0):
            raise ConfigError(
                f"timeout is {timeout:g}, longest {longest:g}, retries {retries}; accepted: above 0, and 0 or more."
            )
        self.timeout, self.retries, self.first_wait = timeout, retries, first_wait
        self.longest = max(longest, timeout)
        self._key = os.environ.get(key_variable, "").strip() if api_key is None else api_key
        if not self._key.isascii() or any(c.isspace() for c in self._key):
            raise ConfigError(f"the key in {key_variable} holds a blank or a character outside ASCII; set it again.")
        self._sleep = sleep
        self.begins_in_thought = False

    def __repr__(self) -> str:
        return f"ChatEndpoint({self.model!r}, {self.base_url!r})"

    def ask(self, messages: Sequence[Message], **options: Any) -> ChatAnswer:
        """One answer; temperature 0 unless ``options`` say otherwise.

        Args:
            messages: ``role`` and ``content``.
            **options: More fields of the request, e.g. ``max_tokens``; None leaves a field out.

        Raises:
            EndpointError: The server refused, or no try gave an answer that can be read.
        """
        body = {"model": self.model, "messages": [dict(m) for m in messages], "temperature": 0, **options}
        raw = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
        begun = time.monotonic()
        trouble, asked = "", None
        for attempt in range(self.retries + 1):
            if attempt:
                wait = self._wait(attempt, asked)
                told = (self.host, self.hidden(trouble)[:SHOWN], attempt + 1, self.retries + 1, wait)
                _LOG.warning("%s: %s; try %d of %d in %.0f s", *told)
                self._sleep(wait)
            try:
                with self.opened(raw) as answer:
                    body = answer.read(LONGEST_BODY)
                return self._without_key(_answer_of(body, attempt + 1, time.monotonic() - begun))
            except (OSError, _UnreadableError) as error:
                trouble, asked = self._trouble(error, attempt + 1)
        tries = f"{self.retries + 1} tries" if self.retries else "1 try"
        raise EndpointError(f"{self.host} gave no answer in {tries}; last: {self.hidden(trouble)[:SHOWN]}")

    def _trouble(self, error: OSError | _UnreadableError, tried: int) -> tuple[str, float | None]:
        """What went wrong in a try, and how many seconds the server asks to wait.

        Raises:
            EndpointError: Another try would not help.
        """
        if isinstance(error, StatusError):
            said, asked = self.words_of(error), _seconds(error.headers.get("Retry-After"))
            if error.code not in RETRIED:
                raise EndpointError(f"{self.host} refused with {error.code}: {said}{_remedy(error.code)}") from None
            return f"{error.code}: {said}", asked
        if isinstance(error, _UnreadableError):
            return str(error), None
        if isinstance(error, TimeoutError):
            return self.lateness(error), None
        if isinstance(error, UnreachedError):
            if tried >= UNREACHED_TRIES and isinstance(error.reason, _UNREACHED):
                raise EndpointError(self._unreached(error.reason)) from None
            return f"no connection ({error.reason})", None
        return f"the connection broke ({error})", None

    def _unreached(self, reason: OSError) -> str:
        why = "nobody listens there" if isinstance(reason, ConnectionRefusedError) else "its name is not known"
        return (
            f"{self.host} cannot be reached: {why} ({reason.strerror or reason}). Start the server, or correct the"
            f" address (--endpoint, --base-url or {BASE_URL}; now {self.base_url})."
        )

    def opened(self, raw: bytes, accept: str = "application/json") -> AbstractContextManager[Answer]:
        """The answer to a request, open, by one try; see :func:`empatheia.resources.http.opened`.

        Args:
            raw: The request as JSON.
            accept: The forms of an answer that are understood.
        """
        headers = {"Content-Type": "application/json", "Accept": accept}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        address, limits = f"{self.base_url}/chat/completions", {"timeout": self.timeout, "total": self.longest}
        return opened("POST", address, headers=headers, content=raw, follows=False, **limits)

    def _wait(self, attempt: int, asked: float | None) -> float:
        wait = self.first_wait * 2 ** (attempt - 1) if asked is None else asked
        return min(LONGEST_WAIT, wait * (1 + random.random() / 4))

    def lateness(self, error: TimeoutError) -> str:
        """Which of the two times went by."""
        return str(error) if "no complete answer" in str(error) else f"no answer within {self.timeout:g} s"

    def words_of(self, error: StatusError) -> str:
        """The server's own words, on one line, without the key."""
        text = error.body.decode("utf-8", "replace")
        try:
            found = parse_json(text)
            inner = found.get("error", found) if isinstance(found, dict) else found
            text = str(inner.get("message", text)) if isinstance(inner, dict) else str(inner)
        except ValueError:
            pass
        plain = "".join(character if character.isprintable() else " " for character in text)
        return self.hidden(" ".join(plain.split()))[:SHOWN] or error.reason

    def hidden(self, text: str) -> str:
        """The text without the key; to be called before a text is cut, lest a part of the key is left."""
        return text.replace(self._key, "(key)") if self._key else text

    def _without_key(self, answer: ChatAnswer) -> ChatAnswer:
        """A server may send back what it was sent."""
        return replace(answer, **{name: self.hidden(getattr(answer, name)) for name in ("text", "finish", "model")})


def in_order(work: Callable[[Item], Result], items: Iterable[Item], workers: int = 4) -> Iterator[Result]:
    """Results in the order of the items, several under way at once.

    At most twice as many items as workers are taken ahead of the result that is waited for. After the first failure,
    or when the caller leaves, nothing new is begun and what is under way comes to its end.

    Args:
        work: Called in other threads.
        items: Any number.
        workers: How many at once, 1 or more.

    Raises:
        ConfigError: ``workers`` is below 1.
        Exception: What ``work`` raised for the first item that failed.
    """
    if workers < 1:
        raise ConfigError(f"workers is {workers}; accepted: 1 or more.")
    pool = ThreadPoolExecutor(workers)
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


class _UnreadableError(Exception):
    """A body that is no chat completion."""


def _answer_of(raw: bytes, tries: int, seconds: float) -> ChatAnswer:
    """Reads a chat completion.

    Raises:
        _UnreadableError: It is none.
    """
    try:
        body = parse_json(raw)
        choice = body["choices"][0]
        message = choice["message"]
        text = message.get("content") or message.get("refusal") or ""
        usage = body.get("usage") or {}
        tokens = [max(0, int(usage.get(key) or 0)) for key in ("prompt_tokens", "completion_tokens")]
    except ValueError:
        raise _UnreadableError(f"the body is not JSON: {raw.decode('utf-8', 'replace')!r}") from None
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError):
        raise _UnreadableError(f"not a chat completion: {raw.decode('utf-8', 'replace')!r}") from None
    if not isinstance(text, str):
        raise _UnreadableError("the content of the message is not text")
    finish, model = str(choice.get("finish_reason") or ""), str(body.get("model") or "")
    text, finish, model = (own.encode("utf-8", "replace").decode() for own in (text, finish, model))  # half characters
    return ChatAnswer(spoken(text), finish, model, tokens[0], tokens[1], tries, seconds)


def _seconds(header: str | None) -> float | None:
    """A ``Retry-After`` header: seconds or a date."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def _remedy(code: int) -> str:
    if code in (401, 403):
        return f". Set the key in {API_KEY}, or name its variable with --key-env."
    if code == 404:
        return ". Check --base-url (it usually ends in /v1) and --model."
    return ". It redirects, which is not followed: give the final address." if 300 <= code < 400 else ""


def _is_address(url: str) -> bool:
    """Whether it is http(s), a host, perhaps a port and a path; no user, no password, no query."""
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets or a port that are none
        return False
    return is_whole and url.isascii() and url.isprintable() and not set("@? #") & set(url)


def _without_user(url: str) -> str:
    """The address without user and password."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
