"""What a server allows and how it is found: checked once, when it starts."""

from __future__ import annotations

from pydantic import Field, SecretStr

from empatheia.settings import Strict

MEGABYTE = 1 << 20


class Limits(Strict):
    """What one request may ask for, and how long anybody may take."""

    body: int = Field(default=MEGABYTE, ge=1024, description="Bytes of a request; more is answered with 413.")
    messages: int = Field(default=1000, ge=1, description="Messages of a conversation; more is answered with 422.")
    characters: int = Field(default=200_000, ge=1, description="Characters of a conversation; more: 422.")
    texts: int = Field(default=256, ge=1, description="Texts or conversations of one analysis; more: 422.")
    rows: int = Field(default=20_000, ge=1, description="Rows of an analysis in the background; more: 422.")
    row_bytes: int = Field(default=32 * MEGABYTE, ge=1024, description="Of such rows together; more: 413.")
    jobs: int = Field(default=32, ge=1, description="Such analyses held at once; more: 429.")
    job_seconds: float = Field(default=3600, gt=0, description="After which one that is done is deleted.")
    candidates: int = Field(default=64, ge=1, description="Replies that are ranked at once; more: 422.")
    choices: int = Field(default=8, ge=1, description="Largest `n`.")
    body_seconds: float = Field(default=15, gt=0, description="For a whole request to arrive; more: 408.")
    send_seconds: float = Field(default=30, gt=0, description="For a client to take the next part of an answer.")
    drain_seconds: float = Field(default=30, ge=0, description="For running answers when the server is told to end.")


class Batching(Strict):
    """How requests that wait are joined."""

    queue: int = Field(default=64, ge=1, description="Requests that may wait; more is answered with 429.")
    size: int = Field(default=32, ge=1, description="Conversations of a batch; 1 = every one alone.")
    wait: float = Field(
        default=0.004, ge=0, le=1, description="Seconds to wait for others where the last batch had several."
    )


class WebSettings(Strict):
    """What any of our servers needs to know of the world around it; pages of studies stand on it, too."""

    keys: tuple[SecretStr, ...] = Field(default=(), description="Bearer keys of the API; none = open.")
    cors: tuple[str, ...] = Field(default=(), description="Origins whose pages are allowed; none = closed.")
    hosts: tuple[str, ...] = Field(default=(), description="Accepted host names; none = any.")
    root_path: str = Field(default="", description="Path that a proxy in front strips, e.g. `/empatheia`.")
    log_text: bool = Field(default=False, description="Whether texts may be logged.")
    limits: Limits = Field(default_factory=Limits)


class Upstream(Strict):
    """A language model that answers in the place of ours, told what ours perceive."""

    url: str = Field(description="Address up to `/v1`.")
    llm: str = Field(description="Name under which it is served.")
    key_env: str = Field(default="EMPATHEIA_API_KEY", description="Environment variable that holds its key.")
    timeout: float = Field(default=60, gt=0, description="Seconds without a byte before it is given up.")
    fallback: bool = Field(default=False, description="The bundled listener answers if the upstream model fails.")


class ServerSettings(WebSettings):
    """A server of listeners."""

    models: tuple[str, ...] = Field(
        default=(), description="Models served besides those installed: model folders, runs, listener files, systems."
    )
    default: str | None = Field(
        default=None,
        description="Default model, for requests that name none; None = five steps, or the upstream model.",
    )
    upstream: Upstream | None = None
    runs: str = Field(default="runs", description="Where runs are looked for.")
    loaded: int = Field(default=3, ge=1, description="Models held at once; the least recently used one is unloaded.")
    jobs: str | None = Field(
        default=None, description="Folder of analyses in the background; None = a temporary one, deleted at the end."
    )
    page: bool = Field(default=True, description="Whether there is a page at `/`.")
    batching: Batching = Field(default_factory=Batching)
