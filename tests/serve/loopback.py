"""A server behind uvicorn on a free loopback port, in a thread of this process; what tests send and read."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from empatheia.serve.listening import bound
from empatheia.serve.run import Launch, _config, _Telling

DOG = [{"role": "user", "content": "My dog ran away in the park."}]
THREE_TURNS = [
    {"role": "user", "content": "My dog ran away."},
    {"role": "assistant", "content": "Oh no. Where did it happen?"},
    {"role": "user", "content": "In the park, because of the fireworks. I am so worried."},
]


@contextmanager
def running(launch: Launch, application: Any) -> Iterator[str]:
    """A server in a thread of this process; gives its address and drains it at the end."""
    listening = bound("127.0.0.1", 0)
    ready = threading.Event()
    server = _Telling(_config(launch, application), ready.set)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        assert ready.wait(120)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()


def events_of(text: str) -> list[Any]:
    """The data of server-sent events; the last one of a chat is the text ``[DONE]``."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def until(is_so, seconds: float = 30.0) -> None:
    """Waits for something that happens in another thread."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
