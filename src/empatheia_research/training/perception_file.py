"""A trained perception, and the danger reader on the same encoder, written as one file for ONNX Runtime.

One base, both low-rank updates stacked: the scalar input ``task`` says which of the two reads. ``half`` keeps weights
in half precision; ``mixed`` keeps the word table in blocks of 32 numbers of eight bits instead, with a scale of half
precision each. The arithmetic is float32 always, so an answer does not depend on what else is in its batch.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from empatheia.errors import CheckpointError, ConfigError
from empatheia.perceive.model_file import (
    FACTS,
    FEELINGS,
    FORMAT,
    GRAPH,
    INPUTS,
    OPSET,
    OUTPUTS,
    TOKENIZER,
    PerceptionFacts,
    PerceptionFile,
)
from empatheia.perceive.perception import Perception
from empatheia.perceive.pieces import Pieces
from empatheia.reading import read_record
from empatheia.resources import resolve_model
from empatheia.taxonomy import EMOTIONS, SIDES
from empatheia.writing import save_folder
from empatheia_research.care.encoder import MAX_PIECES, EncoderClassifier
from empatheia_research.corpora import everyday
from empatheia_research.layers.low_rank import LowRankLinear
from empatheia_research.understanding.affect.reader import AffectReader
from empatheia_research.understanding.affect.turns import AffectOfTurns

Weights = Literal["full", "half", "mixed"]
_LICENCES = {"minilm": " (all-MiniLM-L6-v2, Apache-2.0)"}
BLOCK = 32
"""Numbers of the word table that share a scale."""


class _Linear(nn.Module):
    """A linear map, its two updates side by side; which one counts is said by ``chosen``.

    Args:
        base: The map both updates belong to.
        updates: Of feelings and of danger; None where that one has none.
        dtype: In which its weights are kept.
    """

    def __init__(self, base: nn.Linear, updates: tuple[LowRankLinear | None, ...], dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("weight", base.weight.detach().to(dtype))
        self.register_buffer("bias", base.bias.detach().to(dtype))
        self.chosen: Tensor | None = None
        rank = max((own.down.out_features for own in updates if own is not None), default=0)
        self.is_updated = rank > 0
        down = torch.zeros(len(updates), base.in_features, max(1, rank))
        up = torch.zeros(len(updates), max(1, rank), base.out_features)
        for number, own in enumerate(updates):
            if own is not None:
                own_rank = own.down.out_features
                down[number, :, :own_rank] = own.down.weight.detach().T
                up[number, :own_rank] = own.factor * own.up.weight.detach().T
        self.register_buffer("down", down.to(dtype))
        self.register_buffer("up", up.to(dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Shape of ``x``: (..., in_features); of the answer: (..., out_features)."""
        weight, bias = cast(Tensor, self.weight), cast(Tensor, self.bias)
        out = x @ weight.float().T + bias.float()
        if self.is_updated and self.chosen is not None:
            down, up = cast(Tensor, self.down)[self.chosen].float(), cast(Tensor, self.up)[self.chosen].float()
            out = out + (x @ down) @ up
        return out


class _Table(nn.Module):
    """A word table in blocks of eight bits.

    Args:
        base: The table.
    """

    def __init__(self, base: nn.Embedding) -> None:
        super().__init__()
        n_words, width = base.weight.shape
        blocks = base.weight.detach().reshape(n_words, width // BLOCK, BLOCK)
        scales = (blocks.abs().amax(-1, keepdim=True) / 127).half()
        self.register_buffer("scales", scales)
        self.register_buffer("rounded", (blocks / scales.float().clamp(min=1e-12)).round().clamp(-127, 127).char())

    def forward(self, ids: Tensor) -> Tensor:
        """Shape: (batch, pieces) -> (batch, pieces, width)."""
        rows = cast(Tensor, self.rounded)[ids].float() * cast(Tensor, self.scales)[ids].float()
        return rows.flatten(-2)


class _HalfTable(nn.Module):
    """A word table in half precision.

    Args:
        base: The table.
    """

    def __init__(self, base: nn.Embedding) -> None:
        super().__init__()
        self.register_buffer("rows", base.weight.detach().half())

    def forward(self, ids: Tensor) -> Tensor:
        """Shape: (batch, pieces) -> (batch, pieces, width)."""
        return cast(Tensor, self.rows)[ids].float()


class _Graph(nn.Module):
    """What is written: plain tensors in and out.

    Args:
        affect: With its updates apart from the base.
        danger: Likewise, or None.
        weights: How weights are kept.
    """

    def __init__(self, affect: AffectReader, danger: EncoderClassifier | None, weights: Weights) -> None:
        super().__init__()
        self.affect = affect
        self.danger_head = None if danger is None else danger.head
        dtype = torch.float32 if weights == "full" else torch.float16
        self.maps: list[_Linear] = []
        others = {} if danger is None else dict(danger.encoder.named_modules())
        for name, part in list(affect.encoder.named_modules()):
            if isinstance(part, LowRankLinear):
                other = others.get(name)
                updates = (part, other if isinstance(other, LowRankLinear) else None)
                own = _Linear(part.base, updates[: 1 if danger is None else 2], dtype)
                owner, _, last = name.rpartition(".")
                setattr(affect.encoder.get_submodule(owner), last, own)
                self.maps.append(own)
        if weights != "full":
            table = cast(nn.Embedding, affect.get_input_embeddings())
            affect.set_input_embeddings(cast(Any, _Table(table) if weights == "mixed" else _HalfTable(table)))

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor, newest: Tensor, task: Tensor
    ) -> tuple[Tensor, ...]:
        for one in self.maps:
            one.chosen = task
        layers = self.affect.read_layers(input_ids, attention_mask, token_type_ids)
        emotion, side, words = self.affect.heads(layers, attention_mask, newest, token_type_ids)
        if self.danger_head is None:
            return emotion, side, words
        keep = attention_mask[..., None].to(layers[-1].dtype)
        return emotion, side, words, self.danger_head((layers[-1] * keep).sum(1) / keep.sum(1))


def export_perception(
    place: str | Path, target: Path, *, weights: Weights = "mixed", danger: bool = True, name: str | None = None
) -> PerceptionFacts:
    """Writes a folder that :class:`empatheia.perceive.perception.Perception` reads.

    Args:
        place: Folder or name of a perception on one encoder (``affect_reader``).
        target: New folder.
        weights: How they are kept; see the module.
        danger: With the danger reader of the package, which must stand on the same base.
        name: What the model calls itself; None = as before.

    Raises:
        CheckpointError: The model is another one, or its base is not that of the danger reader.
        MissingResourceError: Its base is not here.
    """
    folder = resolve_model(place)
    torch_model = AffectOfTurns.load(folder)
    affect = AffectReader.unmerged(folder)
    reader = EncoderClassifier.unmerged() if danger else None
    _check_bases(affect, reader)
    graph = _Graph(affect, reader, weights).eval()
    data = _written(graph)
    config = affect.config
    meta = read_record(folder / "empatheia.json") | {"name": name or torch_model.name, "weights": GRAPH}
    base = meta.pop("base", config.base)
    facts = PerceptionFacts(
        format=FORMAT,
        name=meta["name"],
        sha256=hashlib.sha256(data).hexdigest(),
        opset=OPSET,
        weights=weights,
        emotions=list(EMOTIONS),
        sides=list(SIDES),
        emotion_temperature=float(config.softmax_temperature),
        side_temperature=float(config.side_temperature),
        word_threshold=float(config.word_threshold),
        most_pieces=config.max_pieces,
        most_danger_pieces=MAX_PIECES,
        danger_thresholds=dict(reader.thresholds) if reader is not None else {},
        danger_notes=dict(reader.notes) if reader is not None else {},
        probe=[0.0] * (len(EMOTIONS) + len(SIDES)),
        licence=f"{meta.get('licence', '')}; the encoder inside has its own: {base}{_LICENCES.get(base, '')}",
        deviation=0.0,
    )

    tokenizer: Any = torch_model.reader.tokenizer

    def fill(made: Path) -> None:
        (made / GRAPH).write_bytes(data)
        for file in ("card.json", "recipe.yaml"):
            if (folder / file).is_file():
                shutil.copyfile(folder / file, made / file)
        if (folder / "README.md").is_file():
            (made / "README.md").write_text(_page(folder / "README.md", base, facts), encoding="utf-8")
        (made / "empatheia.json").write_text(json.dumps(meta, indent=2), encoding="utf-8")
        tokenizer.backend_tokenizer.save(str(made / TOKENIZER))
        _write(made, facts)
        opened = Perception(PerceptionFile(made), Pieces(made / TOKENIZER))
        probe = [float(p) for p in opened.probe()]
        _write(made, replace(facts, probe=probe, deviation=_deviation(torch_model, opened)))

    save_folder(target, fill)
    return Perception.open(target).file.facts


def _deviation(made_of: AffectOfTurns, opened: Perception) -> float:
    """The largest difference of a probability on the valid part of the everyday corpus."""
    texts = [item.dialogue.turns for item in everyday.items("valid")]
    pairs = zip(made_of.read(texts), opened.read(texts), strict=True)
    return max(float(np.abs(one.emotions - other.emotions).max()) for one, other in pairs)


def _page(page: Path, base: str, facts: PerceptionFacts) -> str:
    """The card's page, which says what is inside."""
    licence = _LICENCES.get(base, "")
    own = f"- **Base:** `{base}`, inside, with a licence of its own{licence}; weights kept {facts.weights}."
    if facts.danger_thresholds:
        own += " The danger reader of `empatheia.care` stands on the same base and is inside, too."
    return re.sub(r"^- \*\*Base:\*\*.*$", lambda _: own, page.read_text(encoding="utf-8"), flags=re.MULTILINE)


def _write(folder: Path, facts: PerceptionFacts) -> None:
    (folder / FACTS).write_text(json.dumps(asdict(facts), indent=1), encoding="utf-8")


def _check_bases(affect: AffectReader, danger: EncoderClassifier | None) -> None:
    if not affect.config.rank:
        raise ConfigError("this perception has no updates apart from its base; accepted: one with rank above 0.")
    if danger is None:
        return
    own, other = affect.encoder.state_dict(), danger.encoder.state_dict()
    shared = [key for key in own if key in other and ".up." not in key and ".down." not in key]
    odd = [key for key in shared if own[key].shape != other[key].shape or not torch.equal(own[key], other[key])]
    if odd or not shared:
        raise CheckpointError(
            "the danger reader stands on another encoder than this perception"
            f" (first at {(odd or ['all weights'])[0]!r}). Export without it: danger=False."
        )


def _written(graph: _Graph) -> bytes:
    """The graph for batches of any size and length."""
    import onnx

    ids = torch.tensor([[2, 5, 6, 3, 7, 3, 0, 0], [2, 5, 6, 7, 8, 9, 5, 3]])
    keep = torch.tensor([[True] * 6 + [False] * 2, [True] * 8])
    newest = torch.tensor([[False] * 4 + [True] * 2 + [False] * 2, [True] * 8])
    example = (ids, torch.zeros_like(ids), keep, newest, torch.tensor(FEELINGS))
    outputs = OUTPUTS if graph.danger_head is not None else OUTPUTS[:3]
    both = {0: "batch", 1: "pieces"}
    axes = {name: both for name in INPUTS if name != "task"} | {name: {0: "batch"} for name in outputs}
    stream = io.BytesIO()
    export: Callable[..., Any] = torch.onnx.export
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        export(
            graph,
            example,
            stream,
            input_names=list(INPUTS),
            output_names=list(outputs),
            dynamic_axes=axes | {"words": both},
            opset_version=OPSET,
            do_constant_folding=False,  # weights stay as small as they are kept
            dynamo=False,
        )
    model = onnx.load_from_string(stream.getvalue())
    for one in model.graph.initializer:
        values = onnx.numpy_helper.to_array(one)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise CheckpointError(f"weight {one.name!r} is not a number; train the model again.")
    return model.SerializeToString()
