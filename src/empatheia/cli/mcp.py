"""``empatheia mcp``: analysis and replies as tools for assistants."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from empatheia.cli.guarding import CountryOption, NoCareOption, ResourcesOption, check_resources
from empatheia.cli.opening import check_places
from empatheia.errors import MissingDependencyError

NEEDS = "empatheia mcp needs the extra 'mcp': pip install 'empatheia[mcp]'"


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Over HTTP at /mcp instead of stdin and stdout.")] = False,
    host: Annotated[str, typer.Option(help="With --http: address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="With --http: port; 0 = any that is free.", min=0, max=65535)] = 8322,
    model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="PLACE", help="Model that replies: a folder, run, system or listener.yaml, instead of five steps."
        ),
    ] = None,
    api_key_env: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="NAME", help="With --http: require one of the keys in this environment variable."),
    ] = None,
    no_care: NoCareOption = False,
    country: CountryOption = None,
    resources: ResourcesOption = None,
) -> None:
    r"""Offer tools to an assistant: analyze, rank, respond, check_care, score.

    Speaks the Model Context Protocol on stdin and stdout; --http is for assistants on other machines.

    \b
    empatheia mcp
    empatheia mcp --http --port 8322
    """
    try:
        import fastapi  # noqa: F401
        import mcp.server.mcpserver  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingDependencyError(NEEDS) from error
    check_resources(no_care, country, resources)
    check_places(() if model is None else (model,))
    from empatheia.cli.guarding import open_care
    from empatheia.cli.output import show
    from empatheia.serve.app import create_app
    from empatheia.serve.run import LOOPBACK, keys_of, run_app
    from empatheia.serve.settings import ServerSettings, WebSettings
    from empatheia.serve.tools import create_tools
    from empatheia.serve.web import protect

    care = open_care(no_care, country, resources)
    settings = ServerSettings(models=() if model is None else (model,), page=False)
    app = create_app(settings, care)
    if model is not None:
        app.state.service.shelf.default = app.state.service.shelf.named[0]
    server = create_tools(app)
    if not http:
        server.run("stdio")
        return
    keys = keys_of(api_key_env)
    outer = server.streamable_http_app(host=host)
    hosts = LOOPBACK if host in LOOPBACK else ()
    protect(outer, WebSettings(keys=keys, hosts=hosts), locked=("/mcp",))
    run_app(outer, host, port, lambda address: show(f"{address}/mcp"))
