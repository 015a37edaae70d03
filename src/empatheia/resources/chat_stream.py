"""An answer of an OpenAI-compatible endpoint while it is written, piece by piece; nothing is tried twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from empatheia.errors import EndpointError
from empatheia.reading import parse_json
from empatheia.resources.chat_endpoint import LONGEST_BODY, SHOWN, ChatEndpoint
from empatheia.resources.http import Answer, StatusError, UnreachedError
from empatheia.text.model_text import ModelText

_LONGEST_LINE = 1 << 20
_MOST_CALLS = 127  # the highest index of a tool call


class SlowEndpointError(EndpointError):
    """A remote model took longer than it may."""


class RefusedError(EndpointError):
    """A remote model refused.

    Args:
        message: What was refused, and the server's own words.
        status: Of HTTP.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ChatStream:
    """Iterate once for the pieces of an answer; a server that does not stream gives its answer as one piece.

    Args:
        endpoint: Who is asked.
        messages: ``role`` and ``content``.
        **options: More fields of the request; None leaves a field out.

    Attributes:
        finish: Why it ended, empty as long as it has not.
        model: What the server says answers.
        tool_calls: What the model asks its caller to do, whole once it has ended.
    """

    def __init__(self, endpoint: ChatEndpoint, messages: Sequence[Mapping[str, Any]], **options: Any) -> None:
        self.endpoint = endpoint
        self.finish = self.model = ""
        self.tool_calls: list[dict[str, Any]] = []
        body = {"model": endpoint.model, "messages": [dict(m) for m in messages], "stream": True, **options}
        self._raw = json.dumps({name: value for name, value in body.items() if value is not None}).encode()

    def __iter__(self) -> Iterator[str]:
        """Pieces of what is said, none empty; thoughts and tokens of templates are left out.

        Raises:
            RefusedError: The server answered with an error.
            SlowEndpointError: It took too long, for a byte or for all.
            EndpointError: It cannot be reached, broke off, or answered what is no chat.
        """
        heard = ModelText(self.endpoint.begins_in_thought)
        for piece in self._written():
            if said := heard.next(piece):
                yield said
        if said := heard.end():
            yield said
        if heard.began_in_thought:
            self.endpoint.begins_in_thought = True

    def _written(self) -> Iterator[str]:
        """Pieces as the model writes them."""
        endpoint = self.endpoint
        try:
            with endpoint.opened(self._raw, "text/event-stream, application/json") as answer:
                is_stream = "event-stream" in answer.headers.get("Content-Type", "")
                yield from self._streamed(answer) if is_stream else self._whole(answer)
        except StatusError as error:
            said = endpoint.words_of(error)
            raise RefusedError(f"{endpoint.host} refused with {error.code}: {said}", error.code) from None
        except TimeoutError as error:
            raise SlowEndpointError(f"{endpoint.host}: {endpoint.lateness(error)}.") from None
        except UnreachedError as error:
            raise EndpointError(f"{endpoint.host} cannot be reached: {error.reason}.") from None
        except OSError as error:
            raise EndpointError(f"{endpoint.host} broke the connection ({error}).") from None

    def _streamed(self, answer: Answer) -> Iterator[str]:
        for line in answer.lines(_LONGEST_LINE):
            field, _, value = line.strip().partition(b":")
            value = value.strip()
            if field != b"data":
                continue
            if value == b"[DONE]":
                break
            yield from self._pieces(self._record(value), "delta")
        if not self.finish:
            raise EndpointError(f"{self.endpoint.host} broke off in the middle of its answer.")

    def _whole(self, answer: Answer) -> Iterator[str]:
        yield from self._pieces(self._record(answer.read(LONGEST_BODY)), "message")
        self.finish = self.finish or "stop"

    def _record(self, raw: bytes) -> dict[str, Any]:
        try:
            record = parse_json(raw)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            shown = self.endpoint.hidden(raw.decode("utf-8", "replace"))[:SHOWN]
            raise EndpointError(f"{self.endpoint.host} did not answer with a chat completion: {shown!r}.")
        if "error" in record:
            error = record["error"]
            said = error.get("message") if isinstance(error, dict) else error
            raise EndpointError(f"{self.endpoint.host}: {self.endpoint.hidden(str(said))[:SHOWN]}")
        return record

    def _pieces(self, record: dict[str, Any], part: str) -> Iterator[str]:
        """The text of one record; choices other than the first, and records without any, say nothing."""
        try:
            choice = next((one for one in record.get("choices") or () if not one.get("index")), None)
            text, finish = _said(choice or {}, part)
            self._collect((choice or {}).get(part) or {})
        except (AttributeError, TypeError, IndexError):
            choice, text, finish = None, None, None
        if not isinstance(text, str) or (choice is None and part == "message"):
            shown = self.endpoint.hidden(str(record))[:SHOWN]
            raise EndpointError(f"{self.endpoint.host} did not answer with a chat completion: {shown!r}.")
        self.model = str(record.get("model") or self.model)
        self.finish = str(finish or self.finish)
        if text:
            yield self.endpoint.hidden(text).encode("utf-8", "replace").decode()

    def _collect(self, message: Mapping[str, Any]) -> None:
        """Adds to the tool calls; in a stream each comes in parts, by its index."""
        for place, part in enumerate(message.get("tool_calls") or ()):
            place = part.get("index", place)
            while len(self.tool_calls) <= min(place, _MOST_CALLS):
                self.tool_calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
            call, function = self.tool_calls[place], part.get("function") or {}
            call["id"] = part.get("id") or call["id"]
            for name in ("name", "arguments"):
                call["function"][name] += self.endpoint.hidden(function.get(name) or "")


def _said(choice: Mapping[str, Any], part: str) -> tuple[Any, Any]:
    """The text of a choice, or its refusal, and why it ends there; unchecked."""
    message = choice.get(part) or {}
    return message.get("content") or message.get("refusal") or "", choice.get("finish_reason")
