"""Frequency-aware weights of words (FACE, Jiang et al. 2019), as CEM and IMAGINE use them: the commoner, the lighter.

Counts ``f_i``, ``N = sum f``, ``FQ_i = f_i / N``, ``a = -1 / max FQ``, ``w_i = a FQ_i + 1``, scaled to a mean of 1
(Chen et al. 2022, equations 20 and 21). The commonest word weighs 0. While all counts are equal, all
weights are 1.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

SOURCES = ("corpus", "predictions")


def frequency_weights(counts: Tensor) -> Tensor:
    """Weights in closed form, ``w_i = (1 - f_i / f_max) V / (V - N / f_max)``.

    Args:
        counts: How often each word was seen. Shape: ``(vocabulary,)``.

    Returns:
        At least 0, mean 1; all ones if all counts are equal (none seen, for one). Shape: ``(vocabulary,)``.

    >>> frequency_weights(torch.tensor([0, 1, 3, 4])).tolist()
    [2.0, 1.5, 0.5, 0.0]
    """
    f = counts.double()
    f_max = f.max()
    n_words = f.shape[0]
    total = n_words - f.sum() / f_max.clamp_min(1)  # sum of the weights before scaling
    weights = (1 - f / f_max.clamp_min(1)) * n_words / torch.where(total > 1e-9, total, 1.0)
    return torch.where((f_max > 0) & (total > 1e-9), weights, torch.ones_like(weights)).float()


def count_replies(words: Tensor, starts: Tensor, eos_id: int, bos_id: int) -> Tensor:
    """Which words of predicted replies count: those before a reply's first EOS, without a leading BOS.

    Args:
        words: Replies, one behind the other. Shape: ``(n,)``.
        starts: True where a reply begins; true at 0. Shape: ``(n,)``.
        eos_id: End mark.
        bos_id: Start mark.

    Returns:
        True = counts. Shape: ``(n,)``.
    """
    ends = words.eq(eos_id).long()
    before = ends.cumsum(0) - ends  # end marks in front of each word, over all replies
    first = torch.where(starts, before, torch.zeros_like(before)).cummax(0).values  # ... in front of its own reply
    return (before == first) & words.ne(eos_id) & ~(starts & words.eq(bos_id))


class WordFrequencies(nn.Module):
    """Running counts of words and the weights they give; the counts are saved with the model.

    Args:
        vocab_size: V.
        source: ``predictions`` counts what the model itself would say, in every training step before its loss is taken
            (CEM's code); ``corpus`` takes the counts of :meth:`set_corpus` (the papers' words).
        eos_id: End mark; never counted.
        bos_id: Start mark; not counted where a prediction begins with it.
        pad_id: Padding.
        counts_always: As CEM's code: evaluation counts too, and so do predictions at padding.

    Raises:
        ValueError: ``source`` is neither.
    """

    counts: Tensor

    def __init__(
        self, vocab_size: int, source: str, eos_id: int, bos_id: int, pad_id: int, counts_always: bool = False
    ) -> None:
        super().__init__()
        if source not in SOURCES:
            raise ValueError(f"source of the frequencies is {source!r}; accepted: {', '.join(SOURCES)}.")
        self.source = source
        self.eos_id = eos_id
        self.bos_id = bos_id
        self.pad_id = pad_id
        self.counts_always = counts_always
        self.register_buffer("counts", torch.zeros(vocab_size, dtype=torch.long))

    @torch.no_grad()
    def set_corpus(self, replies: Tensor) -> None:
        """Counts the words of a corpus, end marks and padding left out; does nothing unless ``source`` is ``corpus``.

        Args:
            replies: All words of all replies. Shape: ``(n,)``.
        """
        if self.source == "corpus":
            counted = torch.bincount(replies, minlength=self.counts.shape[0])
            counted[self.eos_id] = counted[self.pad_id] = 0
            self.counts.copy_(counted)

    def resize(self, vocab_size: int) -> None:
        """Makes room for ``vocab_size`` words; those behind the old ones were never seen."""
        self.counts = F.pad(self.counts[:vocab_size], (0, max(0, vocab_size - self.counts.shape[0])))

    @torch.no_grad()
    def see(self, logits: Tensor, labels: Tensor) -> None:
        """Counts the most probable words of a batch, over all processes; see the class for when.

        Args:
            logits: Shape: ``(batch, target, vocabulary)``; rows may hold several replies, each closed by EOS.
            labels: Words that should have been said, negative = padding. Shape: ``(batch, target)``.
        """
        if self.source != "predictions" or not (self.training or self.counts_always):
            return
        starts = torch.ones_like(labels, dtype=torch.bool)
        starts[:, 1:] = labels[:, :-1].eq(self.eos_id) & ~(self.counts_always & labels[:, 1:].lt(0))
        words, starts = logits.argmax(-1).flatten(), starts.flatten()
        counted = count_replies(words, starts, self.eos_id, self.bos_id)
        if not self.counts_always:
            counted &= labels.flatten().ge(0)
        new = torch.bincount(words[counted], minlength=self.counts.shape[0])
        if self.training and dist.is_available() and dist.is_initialized():
            dist.all_reduce(new)
        self.counts += new

    def forward(self, labels: Tensor) -> Tensor:
        """Weights of labels, 0 at padding. Shape: that of ``labels``."""
        weights = frequency_weights(self.counts)[labels.clamp_min(0)]
        return weights * labels.ge(0)
