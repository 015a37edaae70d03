"""One case of the contract suite; each system lists its own in ``contract_cases/<system>.py``."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from empatheia_research.responders import RESPONDERS

SIZES = {"vocab_size": 60, "width": 24, "n_encoder_layers": 1, "n_decoder_layers": 2, "n_heads": 2, "ffn_width": 48}


def nothing(n: int, generator: torch.Generator) -> dict[str, Any]:
    """The system reads nothing beside the context."""
    return {}


@dataclass(frozen=True)
class Case:
    """A configuration of a system.

    Attributes:
        system: Name in ``RESPONDERS``.
        fields: Of its configuration, laid on ``SIZES``.
        unused: Parts of the names of parameters that get no gradient, as the paper has it or a head is idle.
        side: Side inputs of ``n`` examples (called with ``n`` and a generator), for ``batch(n)``.
        alone: The side inputs of the first example without the batch's padding, from those of the batch; None = the
            first row as it is.
        steady: Makes a model that draws when it answers a function of its input.
        sees_padding: The released code's convolutions look at padding: alone and in a batch differ.
        losses: Names of those that must fall together; None = all.
        steps: Updates until the loss has fallen by 30 %.
        freeze: Prefix of what does not learn meanwhile.
    """

    system: str
    fields: dict[str, Any] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    side: Callable[[int, torch.Generator], dict[str, Any]] = nothing
    alone: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    steady: Callable[[Any], None] | None = None
    sees_padding: bool = False
    losses: tuple[str, ...] | None = None
    steps: int = 25
    freeze: str | None = None

    def build(self) -> Any:
        """The model, with random weights."""
        torch.manual_seed(3)
        model_class = RESPONDERS.get(self.system)
        return model_class(model_class.config_class(**{**SIZES, **self.fields}))

    def build_steady(self) -> Any:
        """In evaluation mode, a function of its input."""
        model = self.build().eval()
        if self.steady is not None:
            self.steady(model)
        return model

    def batch(self, n: int = 3, source: int = 11, target: int = 7) -> dict[str, Any]:
        """Everything a system may read, with padding and unknown labels; side inputs included."""
        generator = torch.Generator().manual_seed(5)
        ids = torch.randint(6, 60, (n, source), generator=generator)
        ids[:, 0] = 2
        mask = torch.ones(n, source, dtype=torch.bool)
        mask[0, 6:] = False
        labels = torch.randint(6, 60, (n, target), generator=generator)
        labels[:, -1] = 5
        labels[1, 4:] = -100
        roles = torch.where(torch.arange(source) < 5, 1, 2).expand(n, source).clone()
        roles[:, 0] = 0
        everything = {
            "input_ids": ids.masked_fill(~mask, 0),
            "attention_mask": mask,
            "role_ids": roles * mask,
            "emotion_labels": torch.arange(n) % 32,
            "cause_labels": torch.randint(0, 2, (n, source), generator=generator).masked_fill(~mask, -100),
            "labels": labels,
        }
        features = RESPONDERS.get(self.system).features
        wanted = {name: value for name, value in everything.items() if name in features}
        return {**wanted, **self.side(n, generator)}

    def inputs(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Of a batch, what is known before the reply."""
        gold = RESPONDERS.get(self.system).gold_features
        return {name: value for name, value in batch.items() if name not in gold}

    def first_alone(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The first example by itself, cut to its 6 pieces."""
        side = set(self.side(1, torch.Generator().manual_seed(5)))
        rows = {name: value[:1] for name, value in batch.items() if name not in side}
        for name in ("input_ids", "attention_mask", "role_ids", "cause_labels"):
            if name in rows:
                rows[name] = rows[name][:, :6]
        mine = {name: value for name, value in batch.items() if name in side}
        cut = self.alone or (lambda features: {name: value[:1] for name, value in features.items()})
        return {**rows, **(cut(mine) if mine else {})}


def all_cases() -> dict[str, Case]:
    """The cases of every file of ``contract_cases``, by name."""
    cases: dict[str, Case] = {}
    for path in sorted((Path(__file__).parent / "contract_cases").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"contract_cases_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert not set(cases) & set(module.CASES), path
        cases |= module.CASES
    return cases
