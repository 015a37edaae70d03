"""A chat endpoint in this process: answers are made by a function, failures come from a list."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ChatServer:
    """``with ChatServer(answer) as server``: ``server.url`` is its base URL.

    Args:
        answer: From the request to the text of the reply.
        failures: What the first requests get, one entry each: a status code, (code, headers, body), bytes sent as they
            are with code 200, or a number of seconds to wait (as a float).
        finish: Why answers end.
    """

    def __init__(
        self, answer: Callable[[dict[str, Any]], str], failures: list[Any] | None = None, finish: str = "stop"
    ) -> None:
        self.answer, self.failures, self.finish = answer, list(failures or ()), finish
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()

    def __enter__(self) -> ChatServer:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer._lock:
                    outer.requests.append(body)
                    outer.headers.append({"path": self.path, **self.headers})
                    failure = outer.failures.pop(0) if outer.failures else None
                if isinstance(failure, float):
                    time.sleep(failure)
                    return
                if isinstance(failure, int):
                    failure = (failure, {}, json.dumps({"error": {"message": f"failure {failure}"}}).encode())
                if isinstance(failure, bytes):
                    failure = (200, {}, failure)
                self._send(*(failure or (200, {}, outer._completion(body))))

            def _send(self, code: int, headers: dict[str, str], raw: bytes) -> None:
                self.send_response(code)
                for name, value in {**headers, "Content-Length": str(len(raw))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _completion(self, body: dict[str, Any]) -> bytes:
        message = {"role": "assistant", "content": self.answer(body)}
        record = {
            "model": "served-model",
            "choices": [{"message": message, "finish_reason": self.finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }
        return json.dumps(record).encode()
