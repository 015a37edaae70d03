"""The same for assistants: a server of the Model Context Protocol, whose tools ask the routes of this package.

Needs the extra ``mcp``. A tool's answer is that of its route, fault messages included.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import httpx2
from fastapi import FastAPI
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from empatheia import __version__
from empatheia.serve.analysis import AnalyzeAnswer
from empatheia.serve.caring import CareAnswer
from empatheia.serve.empathy import Empathy
from empatheia.serve.ranking import RankAnswer
from empatheia.serve.scores import ScoreAnswer

_ABOUT = (
    "Empathetic dialogue in English: what a person feels, which of their words say why, which of several replies fits"
    " best, and a reply. It is no therapy and no medical device; check_care finds signs of danger and misses some."
)
_READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


class Said(BaseModel):
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    content: str


Heard = Annotated[
    str | list[Said],
    Field(
        description="A text, or a conversation that ends with the user.",
        examples=["My dog ran away in the park.", [{"role": "user", "content": "My dog ran away."}]],
    ),
]
Replies = Annotated[
    list[str], Field(description="1 to 64 replies.", examples=[["Great!", "Oh no, where did you lose your dog?"]])
]


class Replied(BaseModel):
    """A reply and what it rests on."""

    reply: str
    empathy: Empathy


def create_tools(app: FastAPI) -> MCPServer:
    """A server with the tools ``analyze``, ``rank``, ``respond``, ``check_care`` and ``score``.

    Args:
        app: From :func:`empatheia.serve.create_app`; it is asked in this process.
    """
    server: MCPServer = MCPServer("empatheia", version=__version__, instructions=_ABOUT, log_level="WARNING")
    key = next((one.get_secret_value() for one in app.state.service.settings.keys), None)
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    async def ask(route: str, **fields: Any) -> Any:
        """The route's answer.

        Raises:
            ToolError: Its fault, in its own words.
        """
        body = {name: value for name, value in fields.items() if value is not None}
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
            answer = await client.post(f"/v1/{route}", json=body, timeout=None)
        found = answer.json()
        if answer.status_code != 200:
            raise ToolError(found["error"]["message"])
        return found

    @server.tool(annotations=_READS)
    async def analyze(input: Heard) -> AnalyzeAnswer:
        """What the person feels (32 emotions with probabilities) and which words say why, with character offsets."""
        return AnalyzeAnswer.model_validate(await ask("analyze", input=_plain(input)))

    @server.tool(annotations=_READS)
    async def rank(conversation: Heard, candidates: Replies) -> RankAnswer:
        """Which of several replies fits the conversation best; each with the terms of its score."""
        return RankAnswer.model_validate(await ask("rank", messages=_messages(conversation), candidates=candidates))

    @server.tool(annotations=_READS)
    async def respond(
        conversation: Heard,
        emotion: Annotated[str | None, Field(description="What the person feels, one of 32.", examples=["sad"])] = None,
        intent: Annotated[
            str | None, Field(description="What the reply should express or do, one of 41.", examples=["consoling"])
        ] = None,
        focus: Annotated[
            list[str] | None, Field(description="Words of the last message it must be about.", examples=[["dog"]])
        ] = None,
        seed: Annotated[int, Field(description="Another number, another wording.", ge=0)] = 0,
    ) -> Replied:
        """One empathetic reply, behind the check for danger, with what it rests on."""
        steer = {"explain": True, "emotion": emotion, "intent": intent, "focus": focus}
        answer = await ask("chat/completions", messages=_messages(conversation), seed=seed, empathy=steer)
        said = answer["choices"][0]["message"]["content"]
        return Replied.model_validate({"reply": said, "empathy": answer["empathy"]})

    @server.tool(annotations=_READS)
    async def check_care(input: Heard) -> CareAnswer:
        """Whether somebody seems in danger (suicide, self-harm, violence): none, concern or crisis. It misses some."""
        return CareAnswer.model_validate(await ask("care", input=_plain(input)))

    @server.tool(annotations=_READS)
    async def score(
        replies: Annotated[list[str], Field(description="Generated replies.", examples=[["Oh no, I am so sorry."]])],
        references: Annotated[
            list[str] | None, Field(description="The gold reply of each.", examples=[["I am so sorry to hear that."]])
        ] = None,
        metrics: Annotated[
            list[str] | None, Field(description="By name; none = the usual ones.", examples=[["bleu_sacre"]])
        ] = None,
        bootstrap: Annotated[int, Field(description="Resamples for 95 % intervals; 0 = none.", ge=0)] = 0,
    ) -> ScoreAnswer:
        """BLEU, ROUGE, Distinct and others, each with its unit and signature."""
        fields = {"replies": replies, "references": references, "metrics": metrics, "bootstrap": bootstrap}
        return ScoreAnswer.model_validate(await ask("score", **fields))

    return server


def _plain(given: str | list[Said]) -> Any:
    return given if isinstance(given, str) else [one.model_dump() for one in given]


def _messages(conversation: str | list[Said]) -> list[Any]:
    return [{"role": "user", "content": conversation}] if isinstance(conversation, str) else _plain(conversation)
