"""How much more everyday texts help: a linear layer on a frozen sentence encoder, learnt from ever more of them.

Vectors of the newest turn and of the whole conversation (all-MiniLM-L6-v2, mean pooling), multinomial logistic
regression with a fixed penalty; items are drawn at random, five draws a size. Counted on the valid part: a label that a
careful reader accepts. The bundled perception learns the encoder, too, and is better; a linear layer shows the slope
in a minute or two.

    python benchmarks/everyday_curve.py
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from empatheia.taxonomy import EMOTIONS
from empatheia_research.corpora import everyday
from empatheia_research.understanding.vectors.texts import SentenceVectors


def features(encoder, items):
    """Shape: (items, 2 * width)."""
    newest = encoder.encode([item.dialogue.turns[-1].text for item in items])
    whole = encoder.encode(["\n".join(turn.text for turn in item.dialogue.turns) for item in items])
    return torch.tensor(np.concatenate([newest, whole], 1))


def fit(x, y, penalty=1e-4):
    """Weights and bias with the least penalised log loss."""
    layer = torch.nn.Linear(x.shape[1], len(EMOTIONS))
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    steps = torch.optim.LBFGS(layer.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def loss():
        steps.zero_grad()
        value = torch.nn.functional.cross_entropy(layer(x), y) + penalty * layer.weight.pow(2).sum()
        value.backward()
        return value

    steps.step(loss)
    return layer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    encoder = SentenceVectors.load(options.encoder)
    train, valid = everyday.items("train"), everyday.items("valid")
    x, y = features(encoder, train), torch.tensor([EMOTIONS.index(i.dialogue.emotion) for i in train])
    seen = features(encoder, valid)
    accepted = [{EMOTIONS.index(name) for name in item.accepted} for item in valid]
    print("| texts | acceptable on valid, mean and deviation over draws |\n|---|---|")
    n = len(train)
    for size in [n // 32, n // 16, n // 8, n // 4, n // 2, n]:
        found = []
        for draw in range(options.draws if size < n else 1):
            chosen = torch.tensor(np.random.default_rng(draw).choice(n, size, replace=False))
            best = fit(x[chosen], y[chosen])(seen).argmax(-1).tolist()
            found.append(100 * np.mean([label in own for label, own in zip(best, accepted, strict=True)]))
        print(f"| {size:,} | {np.mean(found):.1f} ({np.std(found):.1f}) |", flush=True)


if __name__ == "__main__":
    main()
