"""``empatheia mcp``: analysis and replies as tools for assistants."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from empatheia.cli.guarding import check_resources, open_care
from empatheia.cli.opening import check_places
from empatheia.cli.options import CareOptions, with_options
from empatheia.cli.output import say, show
from empatheia.cli.serve import accepted_hosts
from empatheia.errors import MissingDependencyError
from empatheia.serve.listening import listening
from empatheia.serve.settings import ServerSettings, WebSettings

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.transport_security import TransportSecuritySettings

NEEDS = "empatheia mcp needs the extra 'mcp': pip install 'empatheia[mcp]'"


@with_options
def mcp(
    *,
    http: Annotated[bool, typer.Option("--http", help="Over HTTP at /mcp instead of stdin and stdout.")] = False,
    host: Annotated[str, typer.Option(help="With --http: address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="With --http: port; 0 = any that is free.", min=0, max=65535)] = 8322,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE", help="Model that replies: a folder, run, system or listener.yaml, instead of five steps."
        ),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --http: require one of the keys in this environment variable."),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="With --http: accepted host name, as of 'empatheia serve'. Repeatable."),
    ] = None,
    care: CareOptions,
) -> None:
    r"""Offer tools to an assistant: analyze, rank, respond, check_care, score.

    Speaks the Model Context Protocol on stdin and stdout; --http is for assistants on other machines.

    \b
    empatheia mcp
    empatheia mcp --http --port 8322
    """
    if any(find_spec(name) is None for name in ("fastapi", "mcp", "uvicorn")):
        raise MissingDependencyError(NEEDS)
    check_resources(care)
    check_places(() if model is None else (model,))
    if not http:
        _tools(model, care).run("stdio")
        return

    with listening(host, port, command="empatheia mcp --http") as place:
        say(f"loading the models; then {place.address}/mcp answers")
        from empatheia.serve.run import keys_of, run_there
        from empatheia.serve.web import protect

        keys = keys_of(api_key_env)
        server = _tools(model, care)
        hosts = accepted_hosts(host, allowed_host or ())
        outer = server.streamable_http_app(host=host, transport_security=_origins(hosts))
        protect(outer, WebSettings(keys=keys, hosts=hosts), locked=("/mcp",))
        run_there(outer, place, lambda address: show(f"{address}/mcp"))


def _tools(model: str | None, options: CareOptions) -> MCPServer:
    """The server of the tools, on the model that the options name."""
    from empatheia.serve.app import create_app
    from empatheia.serve.tools import create_tools

    care = open_care(options)
    app = create_app(ServerSettings(models=() if model is None else (model,), page=False), care)
    if model is not None:
        app.state.service.shelf.default = app.state.service.shelf.named[0]
    return create_tools(app)


def _origins(hosts: Sequence[str]) -> TransportSecuritySettings | None:
    """What the protocol's own server accepts: the same names, as pages of theirs; None = it decides."""
    from mcp.server.transport_security import TransportSecuritySettings

    if not hosts:
        return None
    names = [f"[{host}]" if ":" in host else host for host in hosts]
    names += [f"{name}:*" for name in names]
    origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in names]
    return TransportSecuritySettings(allowed_hosts=names, allowed_origins=origins)
