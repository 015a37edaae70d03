"""From likelihoods to emotion and words: the arithmetic of the generative emotion estimator (Kim, Kim and Kim 2021).

    M(e)  = mean_t log P(w_t | w_<t, e) + log P(e)                     joint of text and emotion, unnormalised
    r_t   = J_t(top) - logsumexp over hypotheses of J_t                log P(emotion | w_t)
    p_t   = softmax_t r_t                                              P(w_t | emotion), uniform over positions

``J_t(h)`` is ``log P(w_t | w_<t, h)`` plus the weight of hypothesis h. ``repo3`` (released code): the two best labels
read as one against the two worst, weighted by M. ``all`` (the equation): one label against all, weighted by the prior.

Not in the paper: ``memory``. The equation's prior at each position is that of the label, as if nothing had been read
before; Bayes' rule has ``P(e | w_<t)`` there. With a memory m below 1 what was read fades:

    P(e | w_<=t) ~ P(e) prod_{s<=t} P(w_s | w_<s, e)^(m^(t-s))         r_t = log P(emotion | w_<=t)

and ``explains: any``, which rests on no recognised emotion: ``r_t = sum_e P(e | w_<=t) log P(e | w_<=t) / P(e)``, what
the text up to a piece says about the emotion, whichever it is (nats).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from empatheia.errors import ConfigError

EVIDENCE = ("repo3", "all")
EXPLAINS = ("label", "any")
MEMORY = 0.85  # chosen on RECCON's train and valid splits


@dataclass(frozen=True, slots=True)
class Evidence:
    """How likelihoods become words.

    Attributes:
        kind: ``repo3``: the top against the two least likely labels, weighted by M. ``all``: against every other label,
            weighted by the prior.
        top_emotions: Best labels read as one, 1 or 2.
        length_norm: Mean of the tokens' log-probabilities; False = their sum, the true posterior.
        memory: How much of what was read counts at the next piece, 0 to 1; 0 = nothing (published), 1 = all of it.
            ``all`` only.
        explains: Where no emotion is given: the most likely ``label`` (published), or ``any`` emotion. With ``any``,
            one of RECCON's six that is given is all its labels as one hypothesis. ``all`` with one top emotion only.
    """

    kind: Literal["repo3", "all"] = "repo3"
    top_emotions: int = 2
    length_norm: bool = True
    memory: float = 0.0
    explains: Literal["label", "any"] = "label"

    def __post_init__(self) -> None:
        if self.kind not in EVIDENCE:
            raise ConfigError(f"evidence is {self.kind!r}; accepted: {', '.join(EVIDENCE)}.")
        if self.top_emotions not in (1, 2):
            raise ConfigError(f"top_emotions is {self.top_emotions}; accepted: 1, 2.")
        if not 0 <= self.memory <= 1:
            raise ConfigError(f"memory is {self.memory}; accepted: 0 to 1.")
        if self.explains not in EXPLAINS:
            raise ConfigError(f"explains is {self.explains!r}; accepted: {', '.join(EXPLAINS)}.")
        if self.kind == "repo3" and self.memory:
            raise ConfigError(f"memory is {self.memory} with evidence repo3; accepted: 0, or evidence=all.")
        if self.explains == "any" and (self.kind != "all" or self.top_emotions != 1):
            raise ConfigError(
                f"explains=any with evidence {self.kind} and top_emotions={self.top_emotions}; it goes with"
                " evidence=all and top_emotions=1."
            )

    def check(self, n_labels: int) -> None:
        """Raises ConfigError if there are too few labels for this form."""
        needed = self.top_emotions + (2 if self.kind == "repo3" else 1)
        if n_labels < needed:
            raise ConfigError(
                f"{n_labels} labels; evidence {self.kind} with top_emotions={self.top_emotions} needs {needed} or more,"
                " or the best and the worst are the same ones."
            )


REPO = Evidence("repo3", 2, True)
"""The released code."""
PAPER = Evidence("all", 1, False)
"""The equations: all labels as evidence, one emotion, a true posterior."""
RUNNING = Evidence("all", 1, False, MEMORY, "any")
"""Ours: as the equations, with the fading posterior of what was read as prior, for any emotion."""


def emotion_joint(likelihoods: Tensor, log_prior: Tensor, length_norm: bool = True) -> Tensor:
    """M(e): log-joint of a text and each emotion, up to a constant.

    Args:
        likelihoods: log P(w_t | w_<t, e). Shape: (n_labels, pieces).
        log_prior: Shape: (n_labels,).
        length_norm: Mean over pieces (released code; flattens the posterior) or sum.

    Returns:
        Shape: (n_labels,); the prior for a text without pieces.
    """
    total = likelihoods.sum(-1)
    return (total / max(1, likelihoods.shape[-1]) if length_norm else total) + log_prior


def remembered(likelihoods: Tensor, memory: float) -> Tensor:
    """Log-likelihoods in which each piece also has the fading ones of the pieces before it.

    Args:
        likelihoods: Shape: (..., pieces).
        memory: Factor for each piece further back, 0 to 1.

    Returns:
        ``sum_{s<=t} memory^(t-s) likelihoods_s``. Shape: (..., pieces).
    """
    columns = list(likelihoods.unbind(-1))
    for t in range(1, len(columns)):
        columns[t] = columns[t] + memory * columns[t - 1]
    return torch.stack(columns, -1) if columns else likelihoods


def cause_probabilities(top: Tensor, top_weight: Tensor, others: Tensor, other_weights: Tensor) -> Tensor:
    """P(w_t | emotion) over the positions of one text.

    Args:
        top: log P(w_t | w_<t, emotion). Shape: (pieces,).
        top_weight: Log-weight of the emotion that is explained. Shape: ().
        others: Log-probabilities under the other hypotheses. Shape: (n_others, pieces).
        other_weights: Shape: (n_others,).

    Returns:
        Sums to 1. Shape: (pieces,).
    """
    joint = top + top_weight  # (pieces,)
    evidence = torch.cat([joint[None], others + other_weights[:, None]]).logsumexp(0)  # (pieces,)
    return (joint - evidence).softmax(-1)


def informative_probabilities(likelihoods: Tensor, log_prior: Tensor) -> Tensor:
    """How much each position tells of the emotion, whichever it is, as shares of the text.

    Args:
        likelihoods: Shape: (n_labels, pieces).
        log_prior: Normalised. Shape: (n_labels,).

    Returns:
        Softmax over positions of the divergence of the posterior from the prior; sums to 1. Shape: (pieces,).
    """
    posterior = (likelihoods + log_prior[:, None]).log_softmax(0)  # (n_labels, pieces)
    gained = posterior - log_prior[:, None]
    return (posterior.exp() * gained).sum(0).softmax(-1)
