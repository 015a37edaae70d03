"""IMAGINE: causes as a sequence of their own, commonsense by type."""

import torch
from contract import Case

TINY_BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 60, "max_position_embeddings": 64,
}  # fmt: skip
SMALL = {"attention_width": 24, "ffn_width": 24, "n_positions": 32}


def side(n, generator):
    """Causal turns, four sequences of knowledge (affect of the first example is empty), labels of mechanisms."""
    features = {}
    for name, shape in (("cause", (n, 8)), ("knowledge", (n, 4, 6))):
        ids = torch.randint(6, 60, shape, generator=generator)
        lengths = 1 + torch.randint(shape[-1], shape[:-1], generator=generator)
        lengths[0] = 3
        if name == "cause":
            ids[:, 0] = 2
        else:
            lengths[0, 0] = 0
        mask = torch.arange(shape[-1]) < lengths[..., None]
        features |= {f"{name}_ids": ids * mask, f"{name}_mask": mask}
    features["cause_role_ids"] = (1 + torch.randint(2, (n, 8), generator=generator)) * features["cause_mask"]
    features["mechanism_labels"] = torch.randint(2, (n, 3), generator=generator)
    features["mechanism_labels"][n // 2] = -100 if n > 1 else 1
    return features


def alone(features):
    """The first example's, without the padding of the batch."""
    return {
        name: tensor[:1] if name == "mechanism_labels" else tensor[:1, ..., :3] for name, tensor in features.items()
    }


def case(**fields):
    sees_padding = fields.get("variant") == "repo"
    return {"fields": {**SMALL, **fields}, "side": side, "alone": alone, "sees_padding": sees_padding, "steps": 60}


CASES = {
    "imagine": Case("imagine", **case()),
    "imagine repo": Case("imagine", **case(variant="repo")),
    "imagine corpus": Case("imagine", **case(frequencies="corpus")),
    "imagine w/o cm": Case("imagine", **case(mechanisms=False)),
    "imagine w/o know": Case("imagine", **case(knowledge=False)),
    "imagine choices": Case(
        "imagine",
        **case(
            cm_signal="vector", tie_encoders=True, share_affect=False, mlp_per_type=True, mlp_width=20,
            memory_projection=True,
        ),
    ),
    "imagine emotion of causes": Case("imagine", **case(emotion_input="cause")),
    "imagine pretrained": Case(
        "imagine", **case(encoder_config=TINY_BERT), unused=("pooler.", "token_type_embeddings")
    ),
}  # fmt: skip
