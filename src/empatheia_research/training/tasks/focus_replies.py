"""What one system of task ``focus`` says: its replies, and the gold replies' cost under it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers.trainer_utils import set_seed

from empatheia.records.dialogue import Dialogue
from empatheia.voices.decoding import Prior
from empatheia_research.checkpoints.contexts import Contexts
from empatheia_research.decoding.distractors import Contrast
from empatheia_research.decoding.focus import focused_generate
from empatheia_research.decoding.focus_scores import Judged
from empatheia_research.decoding.given_replies import focused_score
from empatheia_research.decoding.world_inputs import worlds_of
from empatheia_research.decoding.worlds import Worlds
from empatheia_research.recipes.data import FocusData
from empatheia_research.recipes.recipe import DecodingConfig
from empatheia_research.training.tasks.focus_contexts import FocusContexts
from empatheia_research.training.tasks.focus_speakers import Speaker

S0 = "S0"
ROWS = 32
"""Most hypotheses in one world of a decoding step."""


@dataclass(frozen=True, slots=True)
class Point:
    """One focused system.

    Attributes:
        kind: Of its distractors.
        alpha, beta: How rational speaker and listener are.
    """

    kind: str
    alpha: float
    beta: float

    @property
    def name(self) -> str:
        """E.g. ``gee, alpha 6, beta 0.9``."""
        return f"{self.kind}, alpha {self.alpha:g}, beta {self.beta:g}"


def points_of(data: FocusData) -> list[Point]:
    """The focused systems of a recipe, kind by kind."""
    return [Point(kind, alpha, beta) for kind in data.distractors for alpha, beta in data.grid]


@dataclass(frozen=True)
class Spoken:
    """What a system said; plain data.

    Attributes:
        replies: As a person reads them.
        words: Lower-case words with blanks between.
        nll: Nats of each gold reply.
        n_pieces: Its scored pieces.
        seconds: Decoding took.
        judged: What models say of the replies.
    """

    replies: list[str]
    words: list[str]
    nll: list[float]
    n_pieces: list[int]
    seconds: float
    judged: Judged = field(default_factory=Judged)


def speak(
    speaker: Speaker,
    contexts: FocusContexts,
    decoding: DecodingConfig,
    prior: Prior,
    point: Point | None = None,
    plain: Spoken | None = None,
    *,
    advance: Callable[[int], object] = lambda _: None,
) -> Spoken:
    """Decodes a reply to each context and scores its gold reply.

    Args:
        speaker: Who.
        contexts: What is answered, with distractors.
        decoding: How; draws are seeded here, so a system says the same in a run that was stopped before it.
        prior: Of the imagined listener.
        point: How focused; None = S0.
        plain: S0's, which is also said where a context has no distractors; needed with ``point``.
        advance: Called with the number of contexts just finished.
    """
    reader = speaker.contexts
    network = reader.network
    n = len(contexts.examples)
    contrasts: Sequence[Contrast | None] = [None] * n if point is None else contexts.contrasts[point.kind]
    out = Spoken([""] * n, [""] * n, [0.0] * n, [0] * n, 0.0) if plain is None else _copied(plain)
    asked = _asked(contexts, None if point is None else contrasts)
    advance(n - len(asked))
    fixed = {"num_beams": 1, "no_repeat_ngram_size": 0}  # else those of the model's own settings would count
    options = {**fixed, **decoding.generate_settings(), **reader.marks}
    most = max(1, ROWS // options["num_beams"])
    strength = (0.0, 1.0) if point is None else (point.alpha, point.beta)
    set_seed(decoding.seed)
    seconds = 0.0
    for start in range(0, len(asked), most):
        indices = asked[start : start + most]
        dialogues = [contexts.dialogues[i] for i in indices]
        begun = time.perf_counter()
        with torch.no_grad():
            if point is None:
                worlds, rows = _plain(reader, dialogues, options)
            else:
                worlds = worlds_of(dialogues, [contrasts[i] for i in indices], reader)
                rows = focused_generate(network, worlds, point.alpha, point.beta, prior, **options)
        seconds += time.perf_counter() - begun
        prompt = 0 if network.config.is_encoder_decoder else worlds.true()["input_ids"].shape[1]
        for i, row in zip(indices, rows[:, prompt:].tolist(), strict=True):
            out.replies[i], out.words[i] = reader.read(row)
        scores = focused_score(network, worlds, reader.labels([contexts.gold[i] for i in indices]), *strength, prior)
        costs: Tensor = -scores.log_s1[:, reader.n_given :].double().sum(-1)
        for i, nats, pieces in zip(indices, costs.tolist(), scores.n_pieces.tolist(), strict=True):
            out.nll[i], out.n_pieces[i] = nats, pieces - reader.n_given
        advance(len(indices))
    return Spoken(out.replies, out.words, out.nll, out.n_pieces, seconds)


def _asked(contexts: FocusContexts, contrasts: Sequence[Contrast | None] | None) -> list[int]:
    """Places of the contexts to be answered, the shortest first: all, or with contrasts those that have one."""
    n = len(contexts.examples)
    found = range(n) if contrasts is None else [i for i in range(n) if contrasts[i] is not None]
    return sorted(found, key=lambda i: (sum(len(turn.text) for turn in contexts.examples[i].context), i))


def _plain(reader: Contexts, dialogues: Sequence[Dialogue], options: Mapping[str, Any]) -> tuple[Worlds, Tensor]:
    """Replies that are not focused; nothing is to be told from: alpha 0 scores a reply as it is."""
    inputs = dict(reader(dialogues))
    rows = reader.network.generate(**inputs, **options)
    return Worlds({name: tensor.repeat_interleave(2, 0) for name, tensor in inputs.items()}, 2), rows


def _copied(plain: Spoken) -> Spoken:
    return Spoken(list(plain.replies), list(plain.words), list(plain.nll), list(plain.n_pieces), 0.0)
