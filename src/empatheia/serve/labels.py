"""``GET /v1/labels``: the words that answers name and requests may give."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from empatheia.serve.asking import FAULTS
from empatheia.taxonomy import EMOTIONS, INTENTS, LABELS_41, POSITIVE_EMOTIONS, RELATION_TITLES

router = APIRouter(prefix="/v1", tags=["analysis"])


class EmotionLabel(BaseModel):
    """One of the 32 emotions."""

    name: str
    side: Literal["pleasant", "unpleasant"] = Field(description="Positive or negative in MIME (Majumder et al. 2020).")


class IntentLabel(BaseModel):
    """One of the 41 intents of a reply."""

    name: str
    kind: Literal["emotion", "act"] = Field(description="What it expresses, or what it does.")


class Labels(BaseModel):
    """All labels."""

    emotions: list[EmotionLabel]
    intents: list[IntentLabel]
    relations: dict[str, str] = Field(description="Relations of inferences, in a few words each.")


@router.get("/labels", response_model=Labels, responses=FAULTS, summary="The labels of emotions, intents, relations")
async def labels() -> Labels:
    """What `empathy.emotion` and `empathy.intent` accept and answers hold."""
    return Labels(
        emotions=[
            EmotionLabel(name=name, side="pleasant" if name in POSITIVE_EMOTIONS else "unpleasant") for name in EMOTIONS
        ],
        intents=[IntentLabel(name=name, kind="act" if name in INTENTS else "emotion") for name in LABELS_41],
        relations=dict(RELATION_TITLES),
    )
