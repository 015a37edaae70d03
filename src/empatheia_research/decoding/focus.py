"""Focus: any model's replies, written so that a listener can tell what they answer (Kim et al. 2021, section 4.2).

``focused_generate`` is ``model.generate`` with one more argument, the
:class:`~empatheia_research.decoding.worlds.Worlds`: the true context and others in which its cause words were
exchanged. It works with any encoder-decoder or decoder of transformers and any way of decoding that adds one piece at a
time, and for :mod:`empatheia_research.responders` likewise. The equations are
:mod:`empatheia_research.decoding.pragmatics`; given replies are scored the same way by
:mod:`empatheia_research.decoding.given_replies`.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import get_ident
from typing import Any

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle
from transformers import LogitsProcessor, LogitsProcessorList

from empatheia.errors import DecodingError
from empatheia.voices.decoding import ALPHA, BETA, Prior, check_rationality
from empatheia_research.decoding import pragmatics
from empatheia_research.decoding.models import GeneratingModel, Made
from empatheia_research.decoding.pragmatics import listener_loss, log_sums
from empatheia_research.decoding.worlds import MOST_SCORES, WorldReader, Worlds, check_readable, limits_told, parents_of

_IN_CACHE = 2**19  # numbers worked on at once by a processor: 2 MiB stay in its cache
_TWO_AT_ONCE = ("assistant_model", "prompt_lookup_num_tokens", "assistant_early_exit", "guidance_scale")


class FocusProcessor(LogitsProcessor):
    """Turns a model's scores into those of the pragmatic speaker, at every step of one ``generate()``.

    Use it as a context manager: it watches the model for the scores of the true contexts before anything changed them
    (minimum lengths, blocked n-grams), which is what the listener hears. What others forbade stays forbidden.

    Args:
        model: The one that generates, in evaluation mode.
        worlds: What it may tell apart.
        alpha: How rational the speaker is.
        beta: How rational the listener is.
        prior: How the listener's belief goes on; see :mod:`empatheia_research.decoding.pragmatics`.
        use_cache: For the distractors.
        eos_token_id: End marks of this ``generate()``; None = those of the model's own ``generation_config``.

    Raises:
        DecodingError: A value is out of range, a context is empty, or the model is in training mode.
    """

    def __init__(
        self,
        model: GeneratingModel[object],
        worlds: Worlds,
        alpha: float = ALPHA,
        beta: float = BETA,
        prior: Prior = "L0",
        *,
        use_cache: bool = True,
        eos_token_id: int | list[int] | None = None,
    ) -> None:
        check_rationality(alpha, beta, prior, worlds.n_worlds)
        check_readable(model, worlds)
        self.model = model
        self.worlds = worlds
        self.alpha, self.beta = alpha, beta
        self.prior: Prior = prior
        self.ends = getattr(model.generation_config, "eos_token_id", None) if eos_token_id is None else eos_token_id
        self.reader = WorldReader(model, worlds.distractors(), worlds.n_worlds - 1, use_cache=use_cache)
        self.n_prompt = 0 if model.config.is_encoder_decoder else worlds.true()["input_ids"].shape[1]
        self.n_given = 0  # pieces no one said: a decoder's start
        self.log_prior = torch.empty(0)  # what the listener believes: (rows, W)
        self._raw: dict[int, Tensor] = {}  # of each thread that uses the model
        self._is_reading = False
        self._before: Tensor | None = None  # pieces of the last call
        self._true = self._others = self._log_z = torch.empty(0)  # of the last call, raw: (rows, V), (rows, W - 1, V)
        self._hook: RemovableHandle | None = None

    def __enter__(self) -> FocusProcessor:
        if self._before is not None:
            raise DecodingError("a FocusProcessor is made for one generate(); make a new one.")
        self._hook = self.model.register_forward_hook(self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        if self._hook is not None:
            self._hook.remove()
        self._hook = None
        self._raw.clear()

    def _watch(self, model: object, inputs: object, output: Any) -> None:
        if not self._is_reading and getattr(output, "logits", None) is not None:
            self._raw[get_ident()] = output.logits[:, -1]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """``log S1`` of the next piece.

        Args:
            input_ids: Pieces so far. Shape: ``(rows, length)``.
            scores: As other processors left them. Shape: ``(rows, vocabulary)``.

        Returns:
            Tensor of the shape of ``scores``, 32 bits, normalised.

        Raises:
            DecodingError: Called outside ``with``, or rows do not continue those of the last call.
        """
        raw = self._raw.pop(get_ident(), None)
        if self._hook is None or raw is None:
            raise DecodingError("a FocusProcessor watches its model: use it as `with FocusProcessor(...) as focus:`.")
        said = input_ids[:, self.n_prompt :]
        self._is_reading = True
        try:
            if not self.reader.is_open:
                self.reader.start(len(input_ids), self.worlds.n_examples)
            parents = None if self._before is None else parents_of(said, self._before, self.worlds.n_examples)
            others = self.reader.scores(said, parents)
        finally:
            self._is_reading = False
        if parents is None:
            self.n_given = said.shape[1]
            self.log_prior = torch.zeros(len(said), self.worlds.n_worlds, device=others.device).log_softmax(-1)
        else:
            self._listen(said, parents)
        self._before, self._true, self._others = said, raw.float(), others
        most = max(1, (_IN_CACHE if said.device.type == "cpu" else MOST_SCORES) // others[0].numel())
        parts = [self._speak(slice(i, i + most), scores) for i in range(0, len(said), most)]
        self._log_z, log_s1 = parts[0] if len(parts) == 1 else map(torch.cat, zip(*parts, strict=True))
        return log_s1

    def _speak(self, rows: slice, scores: Tensor) -> tuple[Tensor, Tensor]:
        """``log Z`` of each world and ``log S1`` of some rows. Shapes: ``(rows, W)``, ``(rows, vocabulary)``."""
        true, others, scores = self._true[rows], self._others[rows], scores[rows].float()
        log_z = torch.cat((log_sums(true).unsqueeze(1), log_sums(others)), 1)
        weight = self.log_prior[rows] - self.beta * log_z
        loss = listener_loss(true, others, weight[:, 1:] - weight[:, :1], self.beta)
        return log_z, _normalised(torch.sub(scores, loss, alpha=self.alpha), scores)

    def _listen(self, said: Tensor, parents: Tensor) -> None:
        """The listener hears the newest piece of each row."""
        if self.prior == "uniform":
            return
        prior, newest = self.log_prior[parents], said[:, -1]
        heard = self._true[parents, newest][:, None], self._others[parents, :, newest]
        log_said = torch.cat(heard, 1) - self._log_z[parents]
        every = None
        if self.prior == "L1":
            every = torch.cat((self._true.unsqueeze(1), self._others), 1).sub_(self._log_z.unsqueeze(-1))[parents]
        after = pragmatics.next_prior(prior, log_said, self.beta, self.prior, every)
        if self.ends is not None:  # finished rows go on with padding, which says nothing
            ends = torch.as_tensor(self.ends, device=said.device)
            ended = torch.isin(said[:, self.n_given : -1], ends).any(-1, keepdim=True)
            after = torch.where(ended, prior, after)
        self.log_prior = after


def _normalised(raised: Tensor, scores: Tensor) -> Tensor:
    log_s1 = raised.log_softmax(-1)
    lost = log_s1[:, 0].isnan()  # of all that others allow, the model itself would say nothing: left to them
    if bool(lost.any()):
        log_s1[lost] = scores[lost].log_softmax(-1).nan_to_num(nan=-torch.inf)
    return log_s1


def focused_generate(
    model: GeneratingModel[Made],
    worlds: Worlds,
    alpha: float = ALPHA,
    beta: float = BETA,
    prior: Prior = "L0",
    **options: Any,
) -> Made:
    """``model.generate`` of the true contexts, focused on what sets them apart from the distractors.

    Args:
        model: Any encoder-decoder or decoder with ``generate()``, in evaluation mode.
        worlds: The true contexts and their distractors.
        alpha: 0 = the model itself, ``generate()`` called as it is.
        beta: 0 = likewise.
        prior: ``L0``, ``uniform`` or ``L1``.
        **options: Of ``generate()``.

    Returns:
        What ``generate()`` returns; with beams, ``sequences_scores`` are sums of ``log S1``.

    Raises:
        DecodingError: A value is out of range; there is no distractor; the way of decoding writes several pieces at
            once.
    """
    check_rationality(alpha, beta, prior, worlds.n_worlds)
    for name in _TWO_AT_ONCE:
        if _setting(model, options, name) not in (None, False, 1):
            raise DecodingError(
                f"{name}: focus needs one piece at a time and one reading of the context; leave it out, or answer"
                " without focus."
            )
    true = worlds.true()
    with limits_told(model, worlds):
        if alpha == 0.0 or beta == 0.0:
            check_readable(model, worlds)
            return model.generate(**true, **options)
        use_cache, ends = options.get("use_cache") is not False, _setting(model, options, "eos_token_id")
        focus = FocusProcessor(model, worlds, alpha, beta, prior, use_cache=use_cache, eos_token_id=ends)
        own = LogitsProcessorList([*(options.pop("logits_processor", None) or []), focus])
        with focus:
            return model.generate(**true, logits_processor=own, **options)


def _setting(model: GeneratingModel[object], options: Mapping[str, Any], name: str) -> Any:
    """What ``generate()`` will go by."""
    for value in (options.get(name), getattr(options.get("generation_config"), name, None)):
        if value is not None:
            return value
    return getattr(model.generation_config, name, None)
