"""Several contexts ("worlds") for each example, the true one first, read by a model side by side.

A world is a context in which words were exchanged; :class:`Worlds` holds the model inputs of all of them, example by
example, as any tokenizer's or collator's batch of ``batch * W`` texts. :class:`WorldReader` runs the distractors beside
``generate()``, with a cache of its own that follows the beams.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import ModelOutput

from empatheia.errors import DecodingError
from empatheia_research.decoding.models import GeneratingModel
from empatheia_research.layers.cache import CACHE_NAMES

_OF_TRANSFORMERS = ("input_ids", "attention_mask", "token_type_ids", "position_ids", "global_attention_mask")
_OURS = ("role_ids", "turn_ids", "turn_label_ids", "token_intensities", "cause_labels")
ALIGNED = frozenset((*_OF_TRANSFORMERS, *_OURS))
"""Inputs with one column a piece of the context."""
MOST_SCORES = 2**26  # numbers in one block of scores: 256 MiB
_CACHES = (*CACHE_NAMES, "cache_params", "state")  # of attention, Mamba, RWKV


class Worlds:
    """Model inputs of W contexts for each of B examples.

    Args:
        inputs: Tensors of ``B * W`` rows, example by example, each example's true context first: ``input_ids``,
            ``attention_mask`` (1 = keep) and what else the model reads. Encoder-decoders: padded on the right;
            decoders alone: on the left.
        n_worlds: W, at least 1.

    Raises:
        DecodingError: The number of rows is no multiple of W, or tensors differ in it.
    """

    def __init__(self, inputs: Mapping[str, Tensor], n_worlds: int) -> None:
        rows = {name: len(tensor) for name, tensor in inputs.items()}
        n = rows.get("input_ids", 0)
        if n == 0 or set(rows.values()) != {n} or n_worlds < 1 or n % n_worlds:
            raise DecodingError(
                f"{n_worlds} worlds with rows {rows}; accepted: input_ids and other tensors with the same number of"
                " rows, a multiple of the worlds, example by example with the true context first."
            )
        self.inputs = dict(inputs)
        self.n_worlds = n_worlds
        self.n_examples = n // n_worlds

    def true(self) -> dict[str, Tensor]:
        """Inputs of the true contexts, without columns that only longer distractors filled."""
        return self._rows(lambda row: row % self.n_worlds == 0)

    def distractors(self) -> dict[str, Tensor]:
        """Inputs of all others, example by example."""
        return self._rows(lambda row: row % self.n_worlds != 0)

    def _rows(self, keep: Callable[[int], bool]) -> dict[str, Tensor]:
        chosen = torch.tensor([row for row in range(self.n_examples * self.n_worlds) if keep(row)], dtype=torch.long)
        picked = {name: tensor[chosen.to(tensor.device)] for name, tensor in self.inputs.items()}
        return trimmed(picked)


def trimmed(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Inputs without the columns in which nobody has a piece.

    Only ``ALIGNED`` inputs have a column a piece; where another happens to be as wide, nothing is trimmed.
    """
    mask = inputs.get("attention_mask")
    if mask is None or mask.dim() != 2 or not len(mask):
        return inputs
    used = mask.bool().any(0).nonzero().flatten()
    width = mask.shape[1]
    if not len(used) or (int(used[0]) == 0 and int(used[-1]) == width - 1):
        return inputs
    wide = {name for name, tensor in inputs.items() if tensor.dim() >= 2 and tensor.shape[1] == width}
    if wide - ALIGNED:
        return inputs
    first, end = int(used[0]), int(used[-1]) + 1
    return {name: tensor[:, first:end] if name in wide else tensor for name, tensor in inputs.items()}


class WorldReader:
    """Next-piece scores of the distractors while ``generate()`` writes a reply to the true contexts.

    What it keeps is a function of an example and the pieces so far; so it follows greedy search, sampling and any beam
    search by finding, among the rows of the last call, the one a row continues.

    Args:
        model: Any with ``GenerationMixin``, in evaluation mode.
        inputs: Of :meth:`Worlds.distractors`.
        n_distractors: Of each example.
        use_cache: Keep keys and values; without, every step reads the whole reply again.
    """

    def __init__(
        self,
        model: GeneratingModel[object],
        inputs: Mapping[str, Tensor],
        n_distractors: int,
        *,
        use_cache: bool = True,
    ) -> None:
        self.model = model
        self.n = n_distractors
        self.is_encoder_decoder = bool(model.config.is_encoder_decoder)
        self.use_cache = use_cache
        self.prompts = inputs["input_ids"]
        self.kwargs = {name: tensor for name, tensor in inputs.items() if name != "input_ids"}
        self.is_open = False

    @torch.no_grad()
    def start(self, n_rows: int, n_examples: int) -> None:
        """Reads the contexts; each example's distractors serve all its rows (beams, returned sequences).

        Args:
            n_rows: Rows of ``generate()``: examples times beams times returned sequences.
            n_examples: B.
        """
        model, kwargs = self.model, dict(self.kwargs)
        example = torch.arange(n_rows, device=self.prompts.device) // (n_rows // n_examples)
        places = (example[:, None] * self.n + torch.arange(self.n, device=example.device)).flatten()  # (n_rows * n,)
        if self.is_encoder_decoder:
            names = (
                "_prepare_text_encoder_decoder_kwargs_for_generation",
                "_prepare_encoder_decoder_kwargs_for_generation",
            )
            prepare = next(getattr(model, name) for name in names if hasattr(model, name))  # the second before 5.20
            kwargs = prepare(self.prompts, kwargs, "input_ids", model.generation_config)
        elif takes(model, "position_ids"):
            count = getattr(model, "_prepare_position_ids_for_generation", None)  # before 5.20 made at every step
            kwargs |= {} if count is None else {"position_ids": count(self.prompts, kwargs)}
        self.kwargs = {name: _take(value, places) for name, value in kwargs.items()}
        self.kwargs["use_cache"] = self.use_cache
        self.kwargs |= {"logits_to_keep": 1} if takes(model, "logits_to_keep") else {}
        self.prompts = self.prompts[places]
        self.is_open = True

    @torch.no_grad()
    def scores(self, pieces: Tensor, parents: Tensor | None) -> Tensor:
        """Raw scores of the next piece in every distractor.

        Args:
            pieces: What is said so far: an encoder-decoder's ``decoder_input_ids``; a decoder's without the prompt.
                Shape: ``(rows, length)``.
            parents: For each row, the row of the last call it continues; None at the first.

        Returns:
            Tensor of shape ``(rows, n_distractors, vocabulary)``, 32 bits.
        """
        ids = pieces.repeat_interleave(self.n, 0)
        if not self.is_encoder_decoder:
            ids = torch.cat((self.prompts, ids), 1)
        if parents is not None:
            self._follow(parents)
        new = 1 if self.use_cache and parents is not None else None
        inputs = self.model.prepare_inputs_for_generation(
            ids, next_sequence_length=new, is_first_iteration=parents is None, **self.kwargs
        )
        outputs = self.model(**inputs, return_dict=True)
        self.kwargs = self.model._update_model_kwargs_for_generation(
            outputs, self.kwargs, is_encoder_decoder=self.is_encoder_decoder
        )
        return outputs.logits[:, -1].float().unflatten(0, (-1, self.n))

    def _follow(self, parents: Tensor) -> None:
        stays = torch.arange(len(parents), device=parents.device)
        name = next((name for name in _CACHES if self.kwargs.get(name) is not None), None)
        if name is None or torch.equal(parents, stays):
            return
        cache: Any = self.kwargs[name]
        places = (parents[:, None] * self.n + torch.arange(self.n, device=parents.device)).flatten()
        reorder = getattr(self.model, "_reorder_cache", None)
        if reorder is not None:  # as in transformers' beam search
            self.kwargs[name] = reorder(cache, places)
        elif isinstance(cache, EncoderDecoderCache):  # rows move within an example, whose contexts all of them share
            own: Any = cache.self_attention_cache
            own.reorder_cache(places)
        else:
            cache.reorder_cache(places)


def check_readable(model: GeneratingModel[object], worlds: Worlds) -> None:
    """Refuses worlds that a model cannot go on from.

    Raises:
        DecodingError: It is in training mode, or a decoder's contexts are empty or padded on the right.
    """
    if model.training:
        raise DecodingError("the model is in training mode; call model.eval() first.")
    mask = worlds.inputs.get("attention_mask")
    if model.config.is_encoder_decoder or mask is None or bool(mask[:, -1].all()):
        return
    empty = (~mask.bool().any(-1)).nonzero().flatten().tolist()
    if empty:
        raise DecodingError(f"the contexts of rows {empty} are empty: a decoder has nothing to continue.")
    raise DecodingError(
        "contexts of a decoder are padded on the right; set tokenizer.padding_side = 'left', so that each ends where"
        " its reply begins."
    )


@contextmanager
def limits_told(model: GeneratingModel[object], worlds: Worlds) -> Iterator[None]:
    """Says what a table of positions or pieces was asked for that it does not have."""
    try:
        yield
    except IndexError as error:
        ids, config = worlds.inputs["input_ids"], model.config.get_text_config(decoder=True)
        tables = {name: getattr(config, name, None) for name in ("max_position_embeddings", "vocab_size")}
        raise DecodingError(
            f"the model has no such position or piece ({error}): the longest context has {ids.shape[1]} pieces, the"
            f" highest id is {int(ids.max())}, the model's tables are {tables}. Shorten the contexts (a decoder's reply"
            " counts, too) or use the model's own tokenizer."
        ) from error


def takes(model: GeneratingModel[object], name: str) -> bool:
    """Whether a model's ``forward`` has an argument."""
    return name in inspect.signature(model.forward).parameters


def parents_of(pieces: Tensor, before: Tensor, n_examples: int) -> Tensor:
    """Which row of the last call each row continues.

    Args:
        pieces: Now. Shape: ``(rows, length)``.
        before: At the last call. Shape: ``(rows, length - 1)``.
        n_examples: Rows of one example lie together.

    Returns:
        Row numbers. Shape: ``(rows,)``.

    Raises:
        DecodingError: A row continues none: the pieces were changed from outside, or a way of decoding writes several
            at once.
    """
    if pieces.shape[0] != before.shape[0] or pieces.shape[1] != before.shape[1] + 1:
        raise DecodingError(
            f"focus saw {tuple(pieces.shape)} pieces after {tuple(before.shape)}; it needs a way of decoding that adds"
            " one piece to every row at each step (greedy, sampling, beams), not assisted or speculative decoding."
        )
    width = pieces.shape[0] // n_examples
    now, then = pieces[:, :-1].view(n_examples, width, 1, -1), before.view(n_examples, 1, width, -1)
    same = (now == then).all(-1)  # (examples, width, width)
    if not bool(same.any(-1).all()):
        raise DecodingError("focus: a row continues none of the rows before it; the pieces were changed from outside.")
    own = torch.arange(width, device=pieces.device)
    stays = same[:, own, own]  # prefer itself: nothing then moves
    parent = torch.where(stays, own, same.int().argmax(-1))
    return (parent + torch.arange(n_examples, device=pieces.device)[:, None] * width).flatten()


def _take(value: Any, places: Tensor) -> Any:
    """Rows of a tensor, or of every tensor in a model's output."""
    if isinstance(value, Tensor):
        return value[places.to(value.device)] if value.dim() else value
    if isinstance(value, ModelOutput):
        return type(value)(**{name: _take(item, places) for name, item in value.items()})
    if isinstance(value, list | tuple):
        return type(value)(_take(item, places) for item in value)
    return value


def stack_worlds(texts: Sequence[Sequence[str]], tokenizer: PreTrainedTokenizerBase, **options: Any) -> Worlds:
    """Worlds of a Hugging Face tokenizer.

    Args:
        texts: For each example its worlds, the true context first; the same number for all.
        tokenizer: Its ``padding_side`` must be ``left`` for a decoder alone.
        **options: Of the tokenizer's call, such as ``truncation`` and ``max_length``.

    Raises:
        DecodingError: Examples differ in their number of worlds.
    """
    counts = sorted({len(worlds) for worlds in texts})
    if len(counts) != 1:
        raise DecodingError(f"the examples have {counts} worlds; all need the same number.")
    flat = [text for worlds in texts for text in worlds]
    batch = tokenizer(flat, padding=True, return_tensors="pt", return_token_type_ids=False, **options)
    return Worlds(dict(batch), counts[0])
