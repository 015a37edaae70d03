"""MIME, its attention fusion, and its parts left out."""

from contract import Case

TINY_BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 60, "max_position_embeddings": 64,
}  # fmt: skip
SMALL = {"attention_width": 24, "ffn_width": 24, "n_decoder_layers": 1}


def _steady(model):
    model.encoder.draws_at_evaluation = False


CASES = {
    "mime": Case("mime", SMALL, steps=60),
    "mime repo": Case("mime", {**SMALL, "variant": "repo"}, sees_padding=True, steady=_steady, steps=60),
    "mime parts left out": Case(
        "mime",
        {**SMALL, "fusion": "attention", "grouping": False, "mimicry": False, "stochastic": False},
        steps=60,
    ),
    "mime pretrained": Case(
        "mime", {**SMALL, "encoder_config": TINY_BERT}, unused=("pooler.", "token_type_embeddings"), steps=60
    ),
}
