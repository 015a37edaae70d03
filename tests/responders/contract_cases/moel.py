"""MoEL and what its code can switch."""

from contract import Case

TINY_BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 60, "max_position_embeddings": 64,
}  # fmt: skip
SMALL = {"attention_width": 24, "ffn_width": 24, "n_decoder_layers": 1}

CASES = {
    "moel": Case("moel", SMALL, steps=60),
    "moel repo": Case("moel", {**SMALL, "variant": "repo"}, sees_padding=True, steps=60),
    "moel all listeners": Case("moel", {**SMALL, "topk": 0, "softmax": False, "pooling": "mean"}, steps=60),
    "moel pretrained": Case(
        "moel",
        {**SMALL, "shared_listener": False, "n_decoder_layers": 2, "teacher_steps": 0, "encoder_config": TINY_BERT},
        unused=("pooler.", "token_type_embeddings"),
        steps=60,
    ),
}
