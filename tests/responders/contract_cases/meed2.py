"""Xie and Pu 2021: MEED2, its plain Transformer, the released loss, and MEED2 on a pretrained encoder."""

import torch
from contract import Case

TINY_BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 60, "max_position_embeddings": 64,
}  # fmt: skip
TINY_ROBERTA = {**TINY_BERT, "model_type": "roberta", "type_vocab_size": 1, "pad_token_id": 0}


def side(n, generator):
    labels = torch.randint(-1, 41, (n, 11), generator=generator)
    labels[0, 6:] = -1
    reply = torch.randint(0, 41, (n,), generator=generator)
    reply[-1] = -1
    return {
        "turn_label_ids": labels,
        "reply_label_ids": reply,
        "gold_reply_label_ids": torch.randint(0, 41, (n,), generator=generator),
    }


def alone(features):
    first = {name: value[:1] for name, value in features.items()}
    return {**first, "turn_label_ids": first["turn_label_ids"][:, :6]}


def case(**fields):
    return Case("meed2", {"n_positions": 16, **fields}, side=side, alone=alone)


CASES = {
    "meed2": case(),
    "meed2 plain": case(turn_labels=False, reply_label=False, segments=False),
    "meed2 context labels only": case(reply_label=False),
    "meed2 repo": case(variant="repo"),
    "meed2 tied": case(tie_words=True, loss_reduction="sum"),
    "meed2 pretrained": case(encoder_config=TINY_BERT),
    "meed2 pretrained, one type": case(encoder_config=TINY_ROBERTA),
}
