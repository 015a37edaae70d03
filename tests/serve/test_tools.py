"""The tools for assistants, asked by the protocol's own client: in this process, over stdio, over HTTP."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest
from loopback import DOG, THREE_TURNS, running
from mcp import Client, StdioServerParameters

from empatheia.serve import WebSettings
from empatheia.serve.run import Launch
from empatheia.serve.tools import create_tools
from empatheia.serve.web import protect

CRISIS = "I want to kill myself tonight."


def told(server, *calls):
    """The tools' names, and what each call gives."""

    async def play():
        async with Client(server, read_timeout_seconds=120) as client:
            listed = await client.list_tools()
            return listed.tools, [await client.call_tool(name, fields) for name, fields in calls]

    return asyncio.run(play())


@pytest.fixture(scope="module")
def server(app):
    return create_tools(app)


@pytest.fixture(autouse=True)
def engine_of_its_own(app, monkeypatch):
    """The engine belongs to the event loop in which it was first asked; every test here has its own."""
    from empatheia.serve.engine import Engine

    service = app.state.service
    monkeypatch.setattr(service, "engine", Engine(service.settings.batching, service.measures))


def test_the_tools_have_types_and_examples(server):
    tools, _ = told(server)
    assert {tool.name for tool in tools} == {"analyze", "rank", "respond", "check_care", "score"}
    for tool in tools:
        assert tool.description and tool.output_schema
        assert "examples" in str(tool.input_schema)


@pytest.mark.parametrize(
    ("name", "fields", "route", "body", "part"),
    [
        ("analyze", {"input": THREE_TURNS}, "analyze", {"input": THREE_TURNS}, None),
        ("check_care", {"input": CRISIS}, "care", {"input": CRISIS}, None),
        (
            "rank",
            {"conversation": DOG[0]["content"], "candidates": ["Great!", "Oh no, your dog!"]},
            "rank",
            {"messages": DOG, "candidates": ["Great!", "Oh no, your dog!"]},
            None,
        ),
        (
            "respond",
            {"conversation": DOG, "focus": ["dog"], "seed": 2},
            "chat/completions",
            {"messages": DOG, "seed": 2, "empathy": {"focus": ["dog"]}},
            "empathy",
        ),
        (
            "score",
            {"replies": ["a b c d"], "references": ["a b c e"]},
            "score",
            {"replies": ["a b c d"], "references": ["a b c e"], "bootstrap": 0},
            None,
        ),
    ],
)
def test_a_tool_says_what_its_route_says(server, address, name, fields, route, body, part):
    import httpx2

    _, (result,) = told(server, (name, fields))
    assert not result.is_error, result.content
    over_http = httpx2.post(f"{address}/v1/{route}", json=body, timeout=120).json()
    if part is None:
        assert result.structured_content == over_http
    else:
        assert result.structured_content[part] == over_http[part]
        assert result.structured_content["reply"] == over_http["choices"][0]["message"]["content"]


def test_what_cannot_be_done_is_told_in_words(server):
    _, results = told(
        server,
        ("analyze", {"input": ""}),
        ("respond", {"conversation": DOG, "emotion": "saad"}),
        ("respond", {"conversation": []}),
        ("rank", {"conversation": "Hello.", "candidates": []}),
        ("score", {"replies": ["a"], "metrics": ["nope"]}),
        ("analyze", {}),
    )
    assert all(result.is_error for result in results)
    texts = [result.content[0].text for result in results]
    assert "Did you mean 'sad'?" in texts[1]
    assert not any("Traceback" in text for text in texts)


def test_over_stdio():
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "empatheia", "mcp", "--model", "gao2021-small"], env=dict(os.environ)
    )
    tools, (result,) = told(command, ("check_care", {"input": CRISIS}))
    assert len(tools) == 5
    assert result.structured_content["level"] == "crisis"


def test_over_http_with_a_key(server):
    import httpx2
    from mcp.client.streamable_http import streamable_http_client
    from pydantic import SecretStr

    outer = server.streamable_http_app()
    protect(outer, WebSettings(keys=(SecretStr("k"),)), locked=("/mcp",))
    with running(Launch(), outer) as where:
        assert httpx2.post(f"{where}/mcp", json={}, timeout=120).status_code == 401

        async def play():
            async with (
                httpx2.AsyncClient(headers={"Authorization": "Bearer k"}, timeout=120) as asking,
                Client(streamable_http_client(f"{where}/mcp", http_client=asking)) as client,
            ):
                return await client.call_tool("check_care", {"input": CRISIS})

        assert asyncio.run(play()).structured_content["level"] == "crisis"
