"""A small network on a frozen sentence encoder, measured beside the linear segmenter: does meaning tell more?

Vectors ``a`` and ``b`` of the two sentences (all-MiniLM-L6-v2, mean over pieces), ``a, b, |a - b|, a * b``, and the
timing and punctuation features as an embedding bag; one hidden layer; three seeds averaged.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from empatheia_people.curation.labelled_pairs import LabelledPairs
from empatheia_people.curation.pair_features import FAMILIES, SLOTS
from empatheia_people.curation.segmenter_training import N_FOLDS, folds_of
from empatheia_research.understanding.vectors.texts import SentenceVectors

ENCODER = "minilm"
_WIDTH, _BAG_WIDTH, _BUCKETS = 96, 16, 1 << 12
_EPOCHS, _BATCH, _RATE, _DECAY, _DROPOUT = 4, 64, 1e-3, 1e-2, 0.3
_SEEDS = (0, 1, 2)


class PairNetwork(nn.Module):
    """Scores a pair; above 0 speaks for a new turn.

    Args:
        width: Of a sentence's vector.
        n_slots: Categories of a pair.
    """

    def __init__(self, width: int, n_slots: int) -> None:
        super().__init__()
        self.bag = nn.Embedding(_BUCKETS, _BAG_WIDTH)
        self.hidden = nn.Linear(4 * width + n_slots * _BAG_WIDTH, _WIDTH)
        self.out = nn.Linear(_WIDTH, 1)
        self.drop = nn.Dropout(_DROPOUT)

    def forward(self, first: Tensor, second: Tensor, slots: Tensor) -> Tensor:
        """Scores.

        Args:
            first: Vectors of the first sentences. Shape: (batch, width).
            second: As ``first``.
            slots: Categories, below the size of the bag. Shape: (batch, n_slots), int64.

        Returns:
            Shape: (batch,).
        """
        joined = torch.cat([first, second, (first - second).abs(), first * second], dim=-1)
        joined = torch.cat([joined, self.bag(slots).flatten(1)], dim=-1)  # (batch, 4 width + n_slots bag)
        return self.out(self.drop(torch.tanh(self.hidden(self.drop(joined))))).squeeze(-1)


def cross_validated_network(pairs: LabelledPairs) -> np.ndarray:
    """The score of each pair by networks that have seen nothing of its film. Shape: (n,).

    Raises:
        MissingResourceError: The encoder is not installed.
    """
    encoder = SentenceVectors.load(ENCODER)
    places: dict[str, int] = {}
    for pair in pairs.texts:
        for text in pair:
            places.setdefault(text, len(places))
    vectors = torch.from_numpy(np.asarray(encoder.encode(list(places)), np.float32))
    first, second = (torch.tensor([places[pair[k]] for pair in pairs.texts]) for k in (0, 1))
    columns = [SLOTS.index(name) for family in FAMILIES.values() for name in family]
    slots = torch.from_numpy((pairs.features[:, columns] % _BUCKETS).astype(np.int64))
    target = torch.from_numpy(pairs.is_new.astype(np.float32))
    folds, scores = folds_of(pairs.films, N_FOLDS), np.zeros(len(pairs))
    for fold in range(N_FOLDS):
        seen, held = (torch.from_numpy(np.flatnonzero(part)) for part in (folds != fold, folds == fold))
        for seed in _SEEDS:
            network = _fitted(vectors, first[seen], second[seen], slots[seen], target[seen], seed)
            with torch.inference_mode():
                out = network(vectors[first[held]], vectors[second[held]], slots[held])
            scores[folds == fold] += out.numpy() / len(_SEEDS)
    return scores


def _fitted(vectors: Tensor, first: Tensor, second: Tensor, slots: Tensor, target: Tensor, seed: int) -> PairNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PairNetwork(vectors.shape[-1], slots.shape[-1])
        optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=_DECAY)
        for _ in range(_EPOCHS):
            for batch in torch.randperm(len(target)).split(_BATCH):
                scores = network(vectors[first[batch]], vectors[second[batch]], slots[batch])
                loss = nn.functional.binary_cross_entropy_with_logits(scores, target[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return network.eval()
