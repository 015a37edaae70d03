"""``empatheia serve``: the listener over HTTP, and a page to talk to it."""

from __future__ import annotations

import logging
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from empatheia.cli.guarding import tell_care
from empatheia.cli.opening import check_places
from empatheia.cli.options import CareOptions, with_options
from empatheia.cli.output import say, show
from empatheia.errors import ConfigError, MissingDependencyError
from empatheia.serve.listening import LOOPBACK, listening
from empatheia.serve.settings import Batching, ServerSettings, Upstream

NEEDS = "empatheia serve needs the extra 'serve': pip install 'empatheia[serve]'"


@dataclass(frozen=True)
class AddressOptions:
    """Where the server listens."""

    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 = all addresses of this machine.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, typer.Option(help="Port; 0 = any that is free.", min=0, max=65535)] = 8321


@dataclass(frozen=True)
class ModelOptions:
    """Which models it serves."""

    model: Annotated[
        list[str] | None,
        typer.Option(metavar="PLACE", help="Also serve this: a folder, run, system or listener.yaml. Repeatable."),
    ] = None
    default: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Default model, for requests that name none [default: five steps]."),
    ] = None
    runs: Annotated[str, typer.Option(metavar="DIR", help="Run folders to look for systems given by --model.")] = "runs"


@dataclass(frozen=True)
class WorkOptions:
    """How much it does at a time."""

    jobs: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder of background analyses, so that they continue after a kill; without it they are "
            "deleted at the end.",
        ),
    ] = None
    workers: Annotated[int, typer.Option(help="Processes, each with its own models.", min=1, max=64)] = 1
    queue: Annotated[int, typer.Option(help="Requests that may wait in each process; more get 429.", min=1)] = 64
    batch: Annotated[int, typer.Option(help="Conversations in a batch, at most; 1 = no batches.", min=1)] = 32


@dataclass(frozen=True)
class UpstreamOptions:
    """A language model that answers in place of ours."""

    upstream: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Answer with a language model at this address; our analysis goes into its prompt."
        ),
    ] = None
    llm: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --upstream: the name under which it is served.")
    ] = None
    key_env: Annotated[str, typer.Option(help="Environment variable with the upstream model's key.")] = (
        "EMPATHEIA_API_KEY"
    )
    timeout: Annotated[float, typer.Option(help="Seconds to wait for output of the upstream model.", min=0.1)] = 60.0
    fallback: Annotated[
        bool, typer.Option("--fallback", help="Answer with five steps if the upstream model fails.")
    ] = False


@dataclass(frozen=True)
class AccessOptions:
    """Who may ask."""

    api_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Require one of the keys in this environment variable (separated by commas)."
        ),
    ] = None
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Allow pages of this origin, e.g. https://example.org. Repeatable."),
    ] = None
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Accepted host name. Repeatable. [default on a loopback address: its names]"),
    ] = None
    root_path: Annotated[str, typer.Option(help="Path that a proxy in front strips, e.g. /empatheia.")] = ""


@dataclass(frozen=True)
class ConsoleOptions:
    """What it logs, and its page."""

    log_text: Annotated[bool, typer.Option("--log-text", help="Also log texts; by default no text is logged.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="Log only errors, not every request.")] = False
    page: Annotated[bool, typer.Option("--page/--no-page", help="Whether there are pages at / and /analyze.")] = True
    opens: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False


@with_options
def serve(
    address: AddressOptions,
    models: ModelOptions,
    work: WorkOptions,
    above: UpstreamOptions,
    access: AccessOptions,
    care: CareOptions,
    console: ConsoleOptions,
) -> None:
    r"""Answer over HTTP.

    POST /v1/chat/completions and /v1/responses speak OpenAI's protocol, plain and streamed; the answer also holds
    what was perceived. /v1/analyze, /v1/rank and /v1/score analyse. See docs/howto/serve.md. After
    Ctrl-C the server finishes open requests and exits. Every answer, the upstream model's too, passes the check of
    'empatheia care --help'.

    \b
    empatheia serve --open
    empatheia serve --model runs/gao2021/soft/full-seed1024 --model listener.yaml
    empatheia serve --upstream http://localhost:8000/v1 --llm NAME --fallback
    EMPATHEIA_KEYS=secret empatheia serve --host 0.0.0.0 --api-key-env EMPATHEIA_KEYS --workers 2
    """
    _check_options(above, access.root_path)
    root_path = access.root_path.rstrip("/")
    _check_installed()
    check_places(models.model or (), Path(models.runs))

    tell_care(care)
    if address.host not in LOOPBACK and access.api_key_env is None:
        say(f"listening on {address.host} without --api-key-env: whoever reaches it can ask.")
    if above.upstream is not None:
        say(f"conversations are sent to {above.upstream}")
    _log_requests(console.quiet)

    def show_address(url: str) -> None:
        show(url)
        sys.stdout.flush()
        if console.opens:
            webbrowser.open(url)

    with listening(address.host, address.port, root_path, "empatheia serve") as place:
        say(f"loading the models; then {place.address} answers")
        from empatheia.serve.run import Launch, run

        settings = ServerSettings(
            models=tuple(models.model or ()),
            default=models.default,
            runs=models.runs,
            jobs=work.jobs,
            page=console.page,
            batching=Batching(queue=work.queue, size=work.batch),
            upstream=None
            if above.upstream is None or above.llm is None
            else Upstream(
                url=above.upstream,
                llm=above.llm,
                key_env=above.key_env,
                timeout=above.timeout,
                fallback=above.fallback,
            ),
            cors=tuple(access.cors or ()),
            hosts=accepted_hosts(address.host, access.allowed_host or ()),
            root_path=root_path,
            log_text=console.log_text,
        )
        launch = Launch(
            server=settings,
            workers=work.workers,
            care=not care.no_care,
            country=care.country,
            resources=None if care.resources is None else str(care.resources.absolute()),
            quiet=console.quiet,
            key_env=access.api_key_env,
        )
        run(launch, place, show_address)


def _check_options(above: UpstreamOptions, root_path: str) -> None:
    """Whether the options are known and go together.

    Raises:
        ConfigError: They do not; says what would.
    """
    if (above.upstream is None) != (above.llm is None):
        raise ConfigError("give both --upstream URL and --llm NAME, or neither.")
    if above.fallback and above.upstream is None:
        raise ConfigError("--fallback goes with --upstream: without it the listeners here answer anyway.")
    if root_path and not root_path.startswith("/"):
        raise ConfigError(f"--root-path is {root_path!r}; accepted: a path that begins with /, e.g. /empatheia.")


def _check_installed() -> None:
    """Whether the packages of a server are here.

    Raises:
        MissingDependencyError: They are not; says how to get them.
    """
    if any(find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise MissingDependencyError(NEEDS)


def accepted_hosts(host: str, names: Sequence[str]) -> tuple[str, ...]:
    """The host names given and, on a loopback address, all of its own."""
    own = LOOPBACK if host in LOOPBACK else ()
    return (*names, *(name for name in own if name not in names))


def _log_requests(quiet: bool) -> None:
    """One line a request, and what uvicorn has to tell, where all our messages go."""
    ours = logging.getLogger("empatheia")
    logging.getLogger("empatheia.serve").setLevel(logging.WARNING if quiet else logging.INFO)
    theirs = logging.getLogger("uvicorn")
    theirs.setLevel(logging.WARNING)
    if not theirs.hasHandlers():
        theirs.handlers = ours.handlers
