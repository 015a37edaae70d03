"""A tiny EmpDG on made-up items: what alternating groups of parameters are tested on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tiny_training as bench
import torch

from empatheia_research.responders import empdg
from empatheia_research.responders.empdg import EmpDG, EmpDGConfig
from empatheia_research.text.collation import Collator, pad_rows
from empatheia_research.training.stages import StageData

CRITICS = {"critic_semantic": 1.0, "critic_emotion": 1.0}
GENERATOR = {"words": 1.0, "emotion": 1.0, "adversarial_semantic": 0.5, "adversarial_emotion": 0.5}
GROUPS = [
    {"train": ["discriminators"], "losses": CRITICS, "learning_rate": 3e-3},
    {"train": ["encoder", "decoder", "word_head", "emotion_input", "copy"], "losses": GENERATOR, "steps": 2},
]


def make_model() -> EmpDG:
    torch.manual_seed(3)
    sizes = {"width": 16, "n_heads": 2, "attention_width": 16, "ffn_width": 16, "n_sampled_words": 3}
    return EmpDG(EmpDGConfig(vocab_size=bench.VOCABULARY, **sizes))


def collate(items: list[Any]) -> dict[str, torch.Tensor]:
    """Of an item: its first two words are emotion words, its reply reversed is the next turn."""
    batch = Collator(("input_ids", "attention_mask", "role_ids", "labels"), 0)(items)
    felt = pad_rows([[3, *item.input_ids[1:3]] for item in items], 0)
    return {
        **batch,
        "emotion_word_ids": felt,
        "emotion_word_mask": felt.ne(0),
        "emotion_labels": torch.tensor([item.input_ids[1] % 32 for item in items]),
        "feedback_ids": pad_rows([item.labels[::-1] for item in items], -100),
        "emotion_vocabulary": torch.arange(bench.VOCABULARY) % 2 == 0,
    }


def make_data(n: int = 24) -> StageData:
    data = bench.make_data(n=n, n_valid=4)
    data.collator = collate
    return data


def train(folder: Path, **fields: Any):
    """As ``tiny_training.train``, with the two groups by turns."""
    settings: dict[str, Any] = {
        "model": make_model(), "data": make_data(), "losses": {"words": 1.0, "emotion": 1.0}, "alternate": GROUPS,
        "learning_rate": 1e-3, "max_grad_norm": 1.0,
    }  # fmt: skip
    return bench.train(folder, **(settings | fields))


def without_chance() -> None:
    """Makes draws and mixtures the same in every process and batch, so that processes can be compared."""
    empdg.gumbel_noise = torch.zeros_like
    empdg.mixing_shares = lambda states: states.new_full((len(states), 1, 1), 0.5)
