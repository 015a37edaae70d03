"""Rashkin et al. 2018, generation: Base, Multitask, prepended labels, ensembles, pre-norm, a pretrained encoder."""

import torch
from contract import Case

TINY_BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 60, "max_position_embeddings": 64,
}  # fmt: skip


def labels(n, generator):
    """Three label pieces each, the first example with one only."""
    ids = torch.randint(6, 60, (n, 3), generator=generator)
    ids[0, 1:] = 0
    return {"prepended_ids": ids}


def first_label(features):
    return {"prepended_ids": features["prepended_ids"][:1, :1]}


def vectors(n, generator):
    return {"external_vectors": torch.randn(n, 5, generator=generator)}


CASES = {
    "rashkin": Case("rashkin_generation"),
    "rashkin multitask": Case("rashkin_generation", {"emotion_head": True, "norm": "pre"}),
    "rashkin prepend": Case("rashkin_generation", {"emotion_head": True}, side=labels, alone=first_label),
    "rashkin ensemble": Case("rashkin_generation", {"external_width": 5}, side=vectors),
    "rashkin pretrained": Case(
        "rashkin_generation", {"encoder_config": TINY_BERT}, unused=("pooler.", "token_type_embeddings")
    ),
}  # fmt: skip
