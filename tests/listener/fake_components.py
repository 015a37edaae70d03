"""Components of every part without a model: what they say is a fixed function of the turns, so any mix-up shows."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from empatheia.analysis.component import COMPONENTS
from empatheia.analysis.questions import words_of
from empatheia.records.analysis import Inference, Mechanism, TurnLabels, WordScores
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span, Turn
from empatheia.taxonomy import EMOTIONS, LABELS_41, MECHANISMS, RELATIONS

DIALOGUE = Dialogue(
    "flat",
    (
        Turn("speaker", "My sister moved out while I was at work."),
        Turn("listener", "Oh no, that must hurt. Did you argue?"),
        Turn("speaker", "We argued about money, and now the flat is so quiet."),
        Turn("listener", "I am so sorry. Quiet rooms are hard."),
    ),
    emotion="joyful",  # gold; no component may see it
    situation="never to be read",
)


def distribution(text: str, labels: tuple[str, ...]) -> dict[str, float]:
    weights = [1 + zlib.crc32(f"{text}|{label}".encode()) % 97 for label in labels]
    weights[zlib.crc32(text.encode()) % len(labels)] += 40 * len(labels)
    return {label: weight / sum(weights) for label, weight in zip(labels, weights, strict=True)}


class Fake:
    """Answers conversation by conversation and counts what it was asked."""

    part = ""

    def __init__(self, name: str = "", **options):
        self.name = name or f"fake {self.part}"
        self.options = options
        self.n_calls = self.n_dialogues = 0

    def annotate(self, dialogues, *, batch_size=32, progress=None):
        self.n_calls += 1
        self.n_dialogues += len(dialogues)
        for dialogue in dialogues:
            assert dialogue.emotion is None and dialogue.situation is None and dialogue.source == ""
        found = [tuple(self.records(dialogue)) for dialogue in dialogues]
        if progress is not None:
            progress(len(dialogues))
        return found

    def records(self, dialogue):
        raise NotImplementedError


class FakeEmotion(Fake):
    part = "emotion"

    @classmethod
    def load(cls, folder, device=None):
        return cls(json.loads((Path(folder) / "empatheia.json").read_text())["name"])

    def records(self, dialogue):
        for i, turn in enumerate(dialogue.turns):
            if turn.role == "speaker":
                yield TurnLabels(i, distribution(turn.text, EMOTIONS))


class FakeIntent(Fake):
    part = "intent"

    @classmethod
    def load(cls, folder, device=None):
        return cls(json.loads((Path(folder) / "empatheia.json").read_text())["name"])

    def records(self, dialogue):
        for i, turn in enumerate(dialogue.turns):
            yield TurnLabels(i, distribution(turn.text, LABELS_41))


class FakeCauses(Fake):
    part = "causes"

    @classmethod
    def load(cls, folder, spans=None, *, emotion=None, device=None):
        name = "+".join(Path(place).name for place in (folder, spans) if place is not None)
        return cls(name, emotion=emotion, spans=spans)

    def records(self, dialogue):
        helper = self.options.get("emotion")
        felt = {r.turn: r.label for r in helper.annotate([dialogue])[0]} if helper else {}
        for target, turn in enumerate(dialogue.turns):
            if turn.role != "speaker":
                continue
            turns = tuple(range(0, target + 1, 2))
            spans = tuple(Span(i, *words_of(dialogue.turns[i].text)[1], 0.8) for i in turns)
            chances = tuple(0.9 if i in turns else 0.1 for i in range(target + 1))
            yield CauseAnnotation(dialogue.id, target, turns, spans, self.name, chances, felt.get(target))


class FakeWords(Fake):
    part = "words"

    def records(self, dialogue):
        for i, turn in enumerate(dialogue.turns):
            if turn.role == "speaker":
                words = tuple(Span(i, a, b, (b - a) / len(turn.text)) for a, b in words_of(turn.text))
                yield WordScores(i, "sad", words)


class FakeMechanisms(Fake):
    part = "mechanisms"

    def records(self, dialogue):
        for i, turn in enumerate(dialogue.turns):
            if i and turn.role == "listener" and dialogue.turns[i - 1].role == "speaker":
                for level, name in enumerate(MECHANISMS):
                    spans = (Span(i, 0, min(8, len(turn.text)), 0.7),) if level else ()
                    yield Mechanism(i, name, level, (0.2, 0.3, 0.5), spans)


class FakeInferences(Fake):
    part = "inferences"

    def records(self, dialogue):
        for i, turn in enumerate(dialogue.turns):
            if turn.role == "speaker":
                for relation in RELATIONS[:8]:
                    yield Inference(i, relation, (f"{relation} of turn {i}", "something else"), (0.6, 0.2), "PersonX x")


class FakeReaction(Fake):
    part = "reaction"

    @classmethod
    def load(cls, folder, labeller=None, device=None):
        return cls(Path(folder).name, labeller=labeller)

    def records(self, dialogue):
        for i, turn in enumerate(dialogue.turns):
            if turn.role == "speaker":
                yield TurnLabels(i, distribution(f"reply to {turn.text}", LABELS_41))


FAKES = {
    own.part: own
    for own in (FakeEmotion, FakeIntent, FakeCauses, FakeWords, FakeMechanisms, FakeInferences, FakeReaction)
}


def fake_components() -> dict[str, Fake]:
    return {part: own() for part, own in FAKES.items()}


def put_into_registry(patch: pytest.MonkeyPatch) -> None:
    """The fakes stand behind the registry; what the entry points join to it is read before, and is back afterwards."""
    COMPONENTS.names()
    patch.setattr(COMPONENTS, "_entries", {part: f"fake_components:{own.__name__}" for part, own in FAKES.items()})
