"""TRS and Multi-TRS: the family's plain members."""

from contract import Case

TINY_BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 60, "max_position_embeddings": 64,
}  # fmt: skip
SMALL = {"attention_width": 24, "ffn_width": 24}

CASES = {
    "trs": Case("multi_trs", {**SMALL, "emotion_head": False}, steps=60),
    "multi_trs": Case("multi_trs", SMALL, steps=60),
    "multi_trs repo": Case("multi_trs", {**SMALL, "variant": "repo"}, sees_padding=True, steps=60),
    "multi_trs pretrained": Case(
        "multi_trs", {**SMALL, "encoder_config": TINY_BERT}, unused=("pooler.", "token_type_embeddings"), steps=60
    ),
}
