"""The sample's first replies as a batch for systems that read commonsense and causes; shared by their tests."""

from functools import cache

import pytest

from empatheia.taxonomy import EMOTIONS
from empatheia_research.corpora import sample
from empatheia_research.responders import RESPONDERS
from empatheia_research.side_inputs import make_side_inputs
from empatheia_research.text.collation import Collator, Layout, encode_examples
from empatheia_research.text.tokenizer import DialogueTokenizer

LEARNING = [
    pytest.param({"width": 60, "attention_width": 40, "ffn_width": 50}, 6e-3, 16, id="a fifth"),
    pytest.param({}, 1e-3, 4, id="published sizes", marks=pytest.mark.slow),
]
"""Sizes, and the rate at which so many examples are learnt by heart."""


@cache
def tokenizer():
    dialogues = sample.load("train").dialogues
    return DialogueTokenizer.train_words([turn.text for d in dialogues for turn in d.turns])


def sample_batch(system, n=16, **settings):
    """Features of ``n`` examples, side inputs included; mechanisms are made up from the reply's place."""
    model_class = RESPONDERS.get(system)
    examples = [e for d in sample.load("train").dialogues for e in d.examples()][:n]
    index = {name: i for i, name in enumerate(EMOTIONS)}
    items = encode_examples(examples, tokenizer(), Layout(separators=False), emotion_index=index)
    sides = make_side_inputs(model_class.side_inputs, settings, tokenizer())
    for side in sides:
        side.add(examples, items)
    for i, item in enumerate(items):
        item.extra["mechanism_labels"] = (i % 2, i // 2 % 2, i // 4 % 2)
    return Collator(model_class.features, tokenizer().pad_id, sides)(items)


def overfit(model, batch, steps, rate=1e-3):
    """Constant Adam until the words cost less than 0.1 nats and all emotions are right; the step, or None."""
    import torch

    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    model.train()
    for step in range(steps):
        optimizer.zero_grad()
        output = model(**batch)
        right = output.emotion_logits.argmax(-1).eq(batch["emotion_labels"]).all()
        if output.losses["words"] < 0.1 and right:
            return step
        sum(output.losses.values()).backward()
        optimizer.step()
    return None
