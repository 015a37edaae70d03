"""EmpDG: with both discriminators, its ablations, the released code's faults, a pretrained encoder."""

import torch
from contract import Case

TINY_BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 60, "max_position_embeddings": 64,
}  # fmt: skip
SMALL = {"attention_width": 24, "ffn_width": 24, "n_sampled_words": 4}
REPLY = ("words", "emotion")
# with the same units open for both replies, a shift cancels in D(generated) - D(gold); test_empdg.py sees them learn
SHIFTS = ("semantic.bias.", "emotion.bias.", "hidden.bias")


def side(n, generator):
    """LAB and emotion words (the first example has two, the second none), next turns, an emotion vocabulary."""
    ids = torch.randint(6, 60, (n, 4), generator=generator)
    ids[:, 0] = 3
    mask = torch.ones(n, 4, dtype=torch.bool)
    mask[0, 3:] = False
    mask[1:2, 1:] = False
    feedback = torch.randint(6, 60, (n, 5), generator=generator)
    feedback[:1, 3:] = -100
    return {
        "emotion_word_ids": ids.masked_fill(~mask, 0),
        "emotion_word_mask": mask,
        "feedback_ids": feedback,
        "emotion_vocabulary": torch.arange(60) % 3 == 0,
    }


def alone(features):
    """The first example: its two emotion words, its next turn."""
    cut = {name: features[name][:1, :3] for name in ("emotion_word_ids", "emotion_word_mask") if name in features}
    rest = {name: value if value.dim() == 1 else value[:1] for name, value in features.items() if name not in cut}
    return cut | rest


def case(fields, unused=(), **settings):
    settings |= {"side": side, "alone": alone, "losses": REPLY, "steps": 60}
    return Case("empdg", {**SMALL, **fields}, unused=(*SHIFTS, *unused), **settings)


CASES = {
    "empdg": case({}),
    "empdg w/o D": case({"discriminators": "none"}),
    "empdg w/o G": case({"multi_resolution": False, "discriminators": "semantic"}),
    "empdg no copy": case({"copies": False}),
    "empdg repo": case({"variant": "repo"}, sees_padding=True),
    "empdg pretrained": case({"encoder_config": TINY_BERT}, unused=("pooler.", "token_type_embeddings")),
}
