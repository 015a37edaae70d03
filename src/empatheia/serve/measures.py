"""What a server counts, in the text form of Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3, 6, 12, 30, 60)

_METHODS = ("GET", "HEAD", "POST", "OPTIONS", "DELETE", "PUT", "PATCH")


class Measures:
    """Counters of one process; names and labels only, never a text.

    Attributes:
        requests: Answers by route, method and status.
        seconds: How long they took, by route.
        open: Requests that are being answered.
        queue: Requests that wait for the models.
        batch: Conversations computed together.
        tokens: Read and written, by model.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("empatheia_requests", "Answers.", ["route", "method", "status"], registry=self.registry)
        self.seconds = Histogram(
            "empatheia_request_seconds", "From the first byte in to the last byte out.", ["route"],
            buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.open = Gauge("empatheia_open", "Requests that are being answered.", registry=self.registry)
        self.queue = Gauge("empatheia_queue", "Requests that wait.", registry=self.registry)
        self.batch = Histogram(
            "empatheia_batch_size", "Conversations computed together.", buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=self.registry,
        )  # fmt: skip
        self.tokens = Counter("empatheia_tokens", "Tokens.", ["model", "direction"], registry=self.registry)

    def begun(self) -> None:
        """Counts a request that has come."""
        self.open.inc()

    def seen(self, route: str, method: str, status: int, seconds: float) -> None:
        """Counts an answer; 0 = the client left before there was one."""
        self.open.dec()
        self.requests.labels(route, method if method in _METHODS else "other", str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)
