"""A tiny plain Transformer and made-up items: what the training loop is tested on."""

from __future__ import annotations

import json
import random
from pathlib import Path

import torch

from empatheia_research.recipes.recipe import Recipe, StageConfig
from empatheia_research.responders.transformer import Transformer, TransformerConfig
from empatheia_research.text.collation import Collator, EncodedExample
from empatheia_research.training.stages import StageData, StageResult, run_stage

VOCABULARY = 40


def make_items(n: int, seed: int = 0, longest: int = 14) -> list[EncodedExample]:
    """Items of different lengths whose reply repeats the context's words, so that there is something to learn."""
    rng = random.Random(seed)
    items = []
    for i in range(n):
        words = [rng.randrange(6, VOCABULARY) for _ in range(rng.randint(2, longest))]
        source = [2, *words, 3]
        length = len(source)
        items.append(
            EncodedExample(
                source,
                turn_ids=[-1, *[0] * (length - 1)],
                role_ids=[0, *[1] * (length - 1)],
                starts=[0] * length,
                ends=[0] * length,
                word_ids=[-1] * length,
                labels=[*words[: rng.randint(1, 6)], 5],
                dialogue_id=f"item{i}",
            )
        )
    return items


def make_model(**fields: object) -> Transformer:
    torch.manual_seed(3)
    settings = {
        "width": 16,
        "n_encoder_layers": 1,
        "n_decoder_layers": 1,
        "n_heads": 2,
        "ffn_width": 32,
        "dropout": 0.0,
    }
    return Transformer(TransformerConfig(vocab_size=VOCABULARY, loss_reduction="mean", **(settings | fields)))


def make_data(n: int = 48, n_valid: int = 8) -> StageData:
    train, valid = make_items(n), make_items(n_valid, seed=1)

    def lengths(items: list[EncodedExample]) -> list[int]:
        return [max(len(item.input_ids), len(item.labels)) for item in items]

    collator = Collator(("input_ids", "attention_mask", "labels"), 0)
    return StageData(train, lengths(train), valid, lengths(valid), collator)


def make_stage(**fields: object) -> StageConfig:
    settings = {"losses": {"words": 1.0}, "learning_rate": 1e-2, "batch_examples": 8, "evaluations": 1, "epochs": 2}
    return StageConfig(**(settings | fields))


def train(folder: Path, model: Transformer | None = None, data: StageData | None = None, **fields: object):
    """Runs one stage in ``folder``; keywords are fields of the stage or of ``run_stage``."""
    options = {key: fields.pop(key) for key in ("deadline", "save_seconds", "seed", "track") if key in fields}
    model = make_model() if model is None else model
    result: StageResult = run_stage(
        model,
        make_stage(**fields),
        make_data() if data is None else data,
        folder=folder / "checkpoints",
        curves=folder / "curves.jsonl",
        show_progress=False,
        **{"seed": 1, **options},
    )
    return model, result, curve(folder)


def curve(folder: Path, name: str = "loss_words") -> list[tuple[int, float]]:
    """(step, value) of a logged loss."""
    rows = [json.loads(line) for line in (folder / "curves.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(row["step"], row[name]) for row in rows if name in row]


def tiny_recipe(**fields: object) -> Recipe:
    """The cause-gated system in two stages on the bundled sample, as small as it goes."""
    tree = {
        "name": "tiny",
        "system": "cause_gated",
        "size": "smoke",
        "seed": 7,
        "model": {
            "width": 16,
            "n_encoder_layers": 1,
            "n_decoder_layers": 1,
            "n_heads": 2,
            "attention_width": 16,
            "ffn_width": 16,
            "n_reasoner_heads": 2,
            "reasoner_attention_width": 16,
        },
        "tokenizer": {"kind": "bpe", "size": 320, "splits": ["train"]},
        "data": {"corpus": "sample", "causes": "sample", "causes_scope": "dialogue", "test_limit": 3, "valid_limit": 4},
        "stages": [
            {
                "name": "reasoner",
                "losses": {"emotion": 1.0, "cause": 1.0},
                "train": ["encoder.reasoner"],
                "max_steps": 6,
                "batch_examples": 8,
                "evaluations": 1,
            },
            {
                "name": "joint",
                "losses": {"words": 1.0, "emotion": 1.0, "cause": 1.0},
                "max_steps": 20,
                "batch_examples": 8,
                "evaluations": 2,
                "select": "words",
            },
        ],
        "decoding": {"max_new_tokens": 4},
    }
    return Recipe.model_validate(tree | fields)
