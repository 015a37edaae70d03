"""Gao et al. 2021 and the plain Transformer."""

from contract import Case


def _steady(model):
    model.encoder.draws_at_evaluation = False


TINY_BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 60, "max_position_embeddings": 64,
}  # fmt: skip

CASES = {
    "transformer": Case("transformer", {"attention_width": 24}),
    "transformer roles": Case("transformer", {"attention_width": 24, "role_embedding": True, "scale_words": True}),
    "soft": Case("cause_gated"),
    "hard": Case("cause_gated", {"gate": "hard"}),
    "w/o el": Case("cause_gated", {"emotion_embedding": False}),
    "w/o ec": Case("cause_gated", {"gate": "none"}),
    "repo soft": Case("cause_gated", {"variant": "repo"}, steps=60),  # label smoothing slows it
    # its -1e18 bias sends gradients of that size into the gates; its recipe freezes the reasoner
    "repo hard": Case(
        "cause_gated", {"variant": "repo", "gate": "hard"}, steady=_steady, losses=("words",), steps=60,
        freeze="encoder.reasoner",
    ),
    "own blocks": Case(
        "cause_gated",
        {"n_reasoner_layers": 2, "n_reasoner_heads": 2, "reasoner_positions": True, "emotion_pooling": "mean",
         "role_embedding": True, "loss_reduction": "mean"},
    ),
    "pretrained encoder": Case(
        "cause_gated", {"encoder_config": TINY_BERT}, unused=("pooler.", "token_type_embeddings")
    ),
}  # fmt: skip
