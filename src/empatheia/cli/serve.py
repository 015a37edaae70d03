"""``empatheia serve``: the listener over HTTP, and a page to talk to it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Optional

import typer

from empatheia.cli.guarding import CountryOption, NoCareOption, ResourcesOption, open_care
from empatheia.cli.opening import check_places
from empatheia.errors import ConfigError, MissingDependencyError

NEEDS = "empatheia serve needs the extra 'serve': pip install 'empatheia[serve]'"


def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 = all addresses of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 = any that is free.", min=0, max=65535)] = 8321,
    model: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="PLACE", help="Also serve this: a folder, run, system or listener.yaml. Repeatable."),
    ] = None,
    default: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="NAME", help="Default model, for requests that name none [default: five steps]."),
    ] = None,
    runs: Annotated[
        str, typer.Option(metavar="DIR", help="Run folders to look for systems given by --model.")
    ] = "runs",
    jobs: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="DIR",
            help="Folder of background analyses, so that they continue after a kill; without it they are "
            "deleted at the end.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes, each with its own models.", min=1, max=64)] = 1,
    queue: Annotated[int, typer.Option(help="Requests that may wait in each process; more get 429.", min=1)] = 64,
    batch: Annotated[int, typer.Option(help="Conversations in a batch, at most; 1 = no batches.", min=1)] = 32,
    upstream: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="URL", help="Answer with a language model at this address; our analysis goes into its prompt."
        ),
    ] = None,
    llm: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="NAME", help="With --upstream: the name under which it is served."),
    ] = None,
    key_env: Annotated[
        str, typer.Option(help="Environment variable with the upstream model's key.")
    ] = "EMPATHEIA_API_KEY",
    timeout: Annotated[float, typer.Option(help="Seconds to wait for output of the upstream model.", min=0.1)] = 60.0,
    fallback: Annotated[
        bool, typer.Option("--fallback", help="Answer with five steps if the upstream model fails.")
    ] = False,
    api_key_env: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="NAME", help="Require one of the keys in this environment variable (separated by commas)."
        ),
    ] = None,
    cors: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="ORIGIN", help="Allow pages of this origin, e.g. https://example.org. Repeatable."),
    ] = None,
    allowed_host: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="NAME", help="Accepted host name. Repeatable. [default on a loopback address: its names]"),
    ] = None,
    root_path: Annotated[str, typer.Option(help="Path that a proxy in front strips, e.g. /empatheia.")] = "",
    no_care: NoCareOption = False,
    country: CountryOption = None,
    resources: ResourcesOption = None,
    log_text: Annotated[bool, typer.Option("--log-text", help="Also log texts; by default no text is logged.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log only errors, not every request.")] = False,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Whether there are pages at / and /analyze.")] = True,
    opens: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
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
    _check_options(upstream, llm, fallback, root_path)
    root_path = root_path.rstrip("/")
    _check_installed()
    check_places(model or (), Path(runs))
    from empatheia.cli.output import say, show
    from empatheia.serve.listening import LOOPBACK, listening

    _tell_care(no_care, country, resources)
    if host not in LOOPBACK and api_key_env is None:
        say(f"listening on {host} without --api-key-env: whoever reaches it can ask.")
    if upstream is not None:
        say(f"conversations are sent to {upstream}")
    _log_requests(quiet)

    def told(address: str) -> None:
        show(address)
        sys.stdout.flush()
        if opens:
            import webbrowser

            webbrowser.open(address)

    with listening(host, port, root_path, "empatheia serve") as place:
        say(f"loading the models; then {place.address} answers")
        from empatheia.serve.run import Launch, run
        from empatheia.serve.settings import Batching, ServerSettings, Upstream

        settings = ServerSettings(
            models=tuple(model or ()),
            default=default,
            runs=runs,
            jobs=jobs,
            page=page,
            batching=Batching(queue=queue, size=batch),
            upstream=None
            if upstream is None or llm is None
            else Upstream(url=upstream, llm=llm, key_env=key_env, timeout=timeout, fallback=fallback),
            cors=tuple(cors or ()),
            hosts=accepted_hosts(host, allowed_host or ()),
            root_path=root_path,
            log_text=log_text,
        )
        launch = Launch(
            server=settings,
            workers=workers,
            care=not no_care,
            country=country,
            resources=None if resources is None else str(resources.absolute()),
            quiet=quiet,
            key_env=api_key_env,
        )
        run(launch, place, told)


def _tell_care(is_off: bool, country: str | None, resources: Path | None) -> None:
    """Says that no check stands before the answers, or what is old in its help lines, before torch is imported."""
    from empatheia.cli.output import say

    if is_off:
        open_care(is_off, country, resources)
        return
    from empatheia.care.resources import Resources

    for doubt in Resources.read(resources, country).outdated():
        say(f"warning: {doubt}.")


def _check_options(upstream: str | None, llm: str | None, fallback: bool, root_path: str) -> None:
    """Whether the options are known and go together.

    Raises:
        ConfigError: They do not; says what would.
    """
    if (upstream is None) != (llm is None):
        raise ConfigError("give both --upstream URL and --llm NAME, or neither.")
    if fallback and upstream is None:
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
    from empatheia.serve.listening import LOOPBACK

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
