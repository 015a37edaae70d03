"""KEMP, its ablations, the released code's faults, a pretrained encoder; and its earlier name."""

import torch
from contract import Case

TINY_BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 60, "max_position_embeddings": 64,
}  # fmt: skip
SMALL = {"attention_width": 24, "ffn_width": 24, "graph_dropout": 0.0}
TOKENS = ("token_intensities",)


def side(n, generator):
    """Concepts (the first example has two behind SEP, the second none) and intensities."""
    ids = torch.randint(6, 60, (n, 4), generator=generator)
    ids[:, 0] = 3
    heads = torch.randint(1, 6, (n, 4), generator=generator)
    heads[:, 0] = -1
    mask = torch.ones(n, 4, dtype=torch.bool)
    mask[0, 3:] = False
    mask[1:2] = False
    eta = torch.rand(n, 4, generator=generator) * mask
    eta[:, 0] = 0.0
    return {
        "concept_ids": ids.masked_fill(~mask, 0),
        "concept_mask": mask,
        "concept_heads": heads.masked_fill(~mask, -1),
        "concept_intensities": eta,
        "token_intensities": torch.rand(n, 11, generator=generator),
    }


def alone(features):
    """The first example: 6 tokens, SEP and two concepts."""
    return {name: value[:1, : 6 if name in TOKENS else 3] for name, value in features.items()}


def case(fields, system="kemp", **settings):
    return Case(system, {**SMALL, **fields}, side=side, alone=alone, steps=60, **settings)


CASES = {
    "kemp": case({}),
    "kemp w/o ECE": case({"graph": False}),
    "kemp w/o EDD": case({"signal": False}),
    "kemp no copy": case({"copies": False}),
    "kemp repo": case({"variant": "repo"}, sees_padding=True),
    "kemp pretrained": case({"encoder_config": TINY_BERT}, unused=("pooler.", "token_type_embeddings")),
    "mk_edg": case({}, system="mk_edg"),
}
