"""CEM: commonsense by relation."""

import torch
from contract import Case

TINY_BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 60, "max_position_embeddings": 64,
}  # fmt: skip
SMALL = {"attention_width": 24, "ffn_width": 24}


def knowledge(n, generator, n_sequences=5, empty=4, longest=6):
    """Sequences of different lengths; the first example's are short, and that of ``empty`` has nothing."""
    ids = torch.randint(6, 60, (n, n_sequences, longest), generator=generator)
    lengths = 1 + torch.randint(longest, (n, n_sequences), generator=generator)
    lengths[0] = 3
    lengths[0, empty] = 0
    mask = torch.arange(longest) < lengths[..., None]
    return {"knowledge_ids": ids * mask, "knowledge_mask": mask}


def alone(features):
    """The first example's, without the padding of the batch."""
    return {name: tensor[:1, :, :3] for name, tensor in features.items()}


def case(**fields):
    sees_padding = fields.get("variant") == "repo"
    return {"fields": {**SMALL, **fields}, "side": knowledge, "alone": alone, "sees_padding": sees_padding, "steps": 60}


CASES = {
    "cem": Case("cem", **case()),
    "cem corpus": Case("cem", **case(frequencies="corpus", label_smoothing=0.1)),
    "cem repo": Case("cem", **case(variant="repo")),
    "cem w/o aff": Case("cem", **case(affection=False)),
    "cem w/o cog": Case("cem", **case(cognition=False)),
    "cem pretrained": Case("cem", **case(encoder_config=TINY_BERT), unused=("pooler.", "token_type_embeddings")),
}
