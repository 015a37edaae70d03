"""A language model as listener: any causal or encoder-decoder model of transformers, as it is or tuned by LoRA.

The baseline of our days beside the published systems: the conversation becomes a prompt
(:mod:`empatheia.text.prompts`), zero-shot or with our analysis shown, and the model writes the listener's turn.
Tuning adds low-rank matrices ``W + (alpha / r) B A`` to the linear layers and teaches nothing else (LoRA, Hu et al.,
ICLR 2022, section 4.1), by the likelihood of the reply alone: ``L = -sum_t log p(y_t | prompt, y_<t)``. A model behind
an endpoint is asked in :mod:`empatheia.voices.language_endpoint`.

A saved model holds what it learnt (adapters) and the name of the model it stands on, which is not copied.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
)

from empatheia.errors import CheckpointError, ConfigError, MissingDependencyError
from empatheia.registry import nearest
from empatheia.resources import resolve_weights
from empatheia.resources.quiet import quiet_loading
from empatheia.taxonomy import IGNORED
from empatheia.text.batching import TokenBatchSampler
from empatheia.text.prompts import Wording
from empatheia_research.layers.stepping import giving_way
from empatheia_research.pretrained import build_pretrained, load_pretrained, load_weights
from empatheia_research.responders.seq2seq import ResponderOutput
from empatheia_research.text.prompt_pieces import FORMS, Form, PromptItem, PromptReader

WEIGHTS = "model.safetensors"
LORA: Mapping[str, Any] = {"r": 8, "alpha": 16, "dropout": 0.05, "targets": "all-linear"}
"""Settings of ``lora`` and their defaults."""
_NEEDS_PEFT = "LoRA needs the package peft, which is not installed. Install it with: pip install 'empatheia[lora]'"


class LanguageModelConfig(PreTrainedConfig):
    """What answers and how it is asked.

    Args:
        form: ``causal``, ``seq2seq``, or ``endpoint`` (a served model; nothing is loaded).
        base: Folder, GGUF file or name of the model; None = built with random weights from ``base_config``.
        base_config: Configuration of a model to build, with its ``model_type``.
        dtype: Of the weights: ``float32``, ``bfloat16`` or ``float16``.
        lora: Tune by LoRA: ``r``, ``alpha``, ``dropout``, ``targets`` (names of layers, or ``all-linear``); None =
            all weights learn where a recipe trains.
        wording: Texts of the prompt that differ from :class:`empatheia.text.prompts.Wording`.
        max_source: Most pieces of a prompt.
        endpoint: Address up to ``/v1`` (form ``endpoint``); None = EMPATHEIA_BASE_URL. The key is never stored.
        llm: Name under which the endpoint serves the model.
        request: More fields of every request, e.g. ``{"top_p": 0.9}``; null leaves one out.
        workers: Requests under way at once.
        tuned: The weights of the base were trained further; without ``lora`` they are then saved.

    Raises:
        ConfigError: A value is none of these.
    """

    model_type = "empatheia_language_model"

    def __init__(
        self,
        form: str = "causal",
        base: str | None = None,
        base_config: dict[str, Any] | None = None,
        dtype: str | None = "float32",
        lora: dict[str, Any] | None = None,
        wording: dict[str, str] | None = None,
        max_source: int = 512,
        endpoint: str | None = None,
        llm: str | None = None,
        request: dict[str, Any] | None = None,
        workers: int = 4,
        tuned: bool = False,
        **kwargs: Any,
    ) -> None:
        accepted = (*FORMS, "endpoint")
        if form not in accepted:
            raise ConfigError(f"form is {form!r}.{nearest(form, list(accepted))} Accepted: {', '.join(accepted)}.")
        for name in lora or ():
            if name not in LORA:
                raise ConfigError(f"lora: no setting {name!r}.{nearest(name, list(LORA))} Accepted: {', '.join(LORA)}.")
        if form == "endpoint" and not llm:
            raise ConfigError("form endpoint needs llm: the name under which the endpoint serves the model.")
        Wording.of(wording)
        self.form = form
        self.base = base
        self.base_config = base_config
        self.lora = None if lora is None else {**LORA, **lora}
        self.wording = wording
        self.max_source = max_source
        self.endpoint = endpoint
        self.llm = llm
        self.request = request
        self.workers = workers
        self.tuned = tuned
        kwargs.setdefault("is_encoder_decoder", form == "seq2seq")
        super().__init__(dtype=str(dtype or "float32").removeprefix("torch."), **kwargs)


class LanguageModel(PreTrainedModel):
    """A model of transformers, perhaps with adapters, that scores and writes replies.

    Args:
        config: What it is.
        network: The loaded model it stands on; None = built from ``config.base_config`` with random weights.

    Raises:
        ConfigError: There is nothing to build.
        MissingDependencyError: ``config.lora`` is set and peft is not installed.
    """

    config_class = LanguageModelConfig
    config: LanguageModelConfig
    base_model_prefix = "network"
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    features: ClassVar[tuple[str, ...]] = ("input_ids", "attention_mask", "labels")
    gold_features: ClassVar[frozenset[str]] = frozenset(("labels", "decoder_input_ids"))
    side_inputs: ClassVar[tuple[str, ...]] = ()
    has_emotion_head: ClassVar[bool] = False

    def __init__(self, config: LanguageModelConfig, network: Any = None) -> None:
        super().__init__(config)
        if config.form != "endpoint":
            self.network = _built(config) if network is None else network
            self.network.generation_config = GenerationConfig(**_marks(self.network.generation_config))
            if config.lora is not None:
                _add_adapters(self.network, config.lora, config.form)
            own = set(self.own_names())
            self._keys_to_ignore_on_save = [name for name in self.state_dict() if name not in own]  # Trainer asks

    # -- making and keeping ----------------------------------------------------------------------------------

    @classmethod
    def build(cls, config: LanguageModelConfig, device: str | None = None) -> LanguageModel:
        """The model a configuration names, with the weights of its base.

        Raises:
            MissingResourceError: The base is not on this machine and cannot be fetched.
            CheckpointError: It is there and is no model of that form.
        """
        if config.base is None or config.form == "endpoint":
            return cls(config)
        return cls(config, load_base(config.base, config.form, str(config.dtype).removeprefix("torch."), device))

    @classmethod
    def from_pretrained(cls, folder: Any, *_: Any, **options: Any) -> Any:
        """Reads what :meth:`save_pretrained` wrote: the base by its name, and the weights that were learnt.

        Args:
            folder: A model folder.
            **options: ``output_loading_info`` as in transformers; others are not read.

        Raises:
            CheckpointError: The weights do not fit.
            MissingResourceError: The base is not on this machine.
        """
        config = load_pretrained(LanguageModelConfig, folder)
        model = cls.build(config)
        if (file := Path(folder) / WEIGHTS).is_file():
            model.load_own(load_weights(file))
        elif model.own_names():
            raise CheckpointError(f"{folder} has no {WEIGHTS}; train it again, or copy the whole folder.")
        model.eval()
        return (model, {}) if options.get("output_loading_info") else model

    def own_names(self) -> list[str]:
        """Parameters a saved model holds: what its base does not have, which is the adapters; all without a base."""
        names = [name for name, _ in self.named_parameters()]
        if self.config.base is None or (self.config.tuned and self.config.lora is None):
            return names
        return [name for name in names if is_adapter(name)]

    def learns(self, name: str) -> bool:
        """Whether training may change a parameter: with LoRA only the adapters."""
        return self.config.lora is None or is_adapter(name)

    def save_pretrained(self, save_directory: Any, state_dict: Any = None, **_: Any) -> None:
        """Writes ``config.json``, and the weights that its base does not have (none for a model as it came)."""
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        self.config.save_pretrained(folder)
        weights = self.state_dict() if state_dict is None else state_dict
        kept = {name: weights[name].detach().cpu().contiguous().clone() for name in self.own_names()}
        if kept:
            save_file(kept, folder / WEIGHTS, {"format": "pt"})

    def tie_weights(self, *args: Any, **kwargs: Any) -> None:
        """The network's own tables; they never come apart."""

    def load_own(self, weights: Mapping[str, Tensor]) -> None:
        """Takes over saved weights.

        Raises:
            CheckpointError: One is missing, of another shape, or belongs to nothing here.
        """
        state = self.state_dict()
        missing = sorted(set(self.own_names()) - set(weights))
        foreign = sorted(name for name in weights if name not in state or state[name].shape != weights[name].shape)
        if missing or foreign:
            raise CheckpointError(
                f"the weights do not fit the model: {len(missing)} missing, {len(foreign)} foreign or of another shape,"
                f" e.g. {(missing or foreign)[0]}. Use the base the weights were trained on ({self.config.base})."
            )
        self.load_state_dict(dict(weights), strict=False)

    # -- scoring ---------------------------------------------------------------------------------------------

    @classmethod
    def count_items(cls, batch: Mapping[str, Tensor], config: Any) -> dict[str, Tensor]:
        """Pieces of replies in a batch: what the loss is a mean over."""
        return {"words": batch["labels"].ne(IGNORED).sum()}

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        labels: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        **_: Any,
    ) -> ResponderOutput:
        """Scores replies given their prompts.

        Args:
            input_ids: Prompt and reply (causal), or the prompt (seq2seq). Shape: ``(batch, pieces)``.
            attention_mask: True = keep. Shape: ``(batch, pieces)``.
            labels: -100 outside the reply. Shape: ``(batch, pieces)``, or ``(batch, target)`` for seq2seq.
            decoder_input_ids: For seq2seq: the reply from its start piece, one behind. Shape: ``(batch, target)``.

        Returns:
            ``losses["words"]``: mean nats a piece of reply, and their count; ``logits`` of what predicts the
            (shifted) labels: of the last pieces, shape ``(batch, kept, vocabulary)``, or of the pieces of replies
            alone, shape ``(pieces of replies, vocabulary)``, where the model allows that.
        """
        if labels is not None and self._has_plain_head:
            logits, targets = self._scored_replies(input_ids, attention_mask, labels)
        else:
            logits, targets = self._scored(input_ids, attention_mask, labels, decoder_input_ids)
        if targets is None:
            return ResponderOutput(logits=logits)
        rows = logits.float().reshape(-1, logits.shape[-1])
        nll = F.cross_entropy(rows, targets.flatten(), ignore_index=IGNORED, reduction="sum")
        n = targets.ne(IGNORED).sum()
        losses = {"words": nll / n.clamp_min(1)}
        return ResponderOutput(loss=losses["words"], losses=losses, counts={"words": n}, logits=logits)

    def _scored(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None, decoder_input_ids: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Logits and the labels they predict, side by side, of the positions from the first reply piece on."""
        known = {"input_ids": input_ids, "attention_mask": attention_mask.long(), "use_cache": False}
        if self.config.form == "seq2seq":
            return self.network(**known, decoder_input_ids=decoder_input_ids).logits, labels
        if labels is None:
            return self.network(**known).logits, None
        first = int(labels.ne(IGNORED).any(0).float().argmax())  # no reply begins before this column
        targets = labels[:, max(1, first) :]
        n_kept = targets.shape[1] + 1  # the last position predicts nothing
        known |= {"logits_to_keep": n_kept} if self._keeps_last else {}
        return self.network(**known).logits[:, -n_kept:-1], targets

    def _scored_replies(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and labels of the pieces of replies alone: the output layer is a good part of a small model."""
        body = getattr(self.network, self.network.base_model_prefix)
        states = body(input_ids=input_ids, attention_mask=attention_mask.long(), use_cache=False).last_hidden_state
        targets = labels[:, 1:]
        learnt = targets.ne(IGNORED)
        return self.network.get_output_embeddings()(states[:, :-1][learnt]), targets[learnt]

    @cached_property
    @torch.no_grad()
    def _has_plain_head(self) -> bool:
        """Whether logits are the output layer of the last states and nothing else (some models scale or cap them)."""
        body = getattr(self.network, str(getattr(self.network, "base_model_prefix", "")), None)
        head = self.network.get_output_embeddings() if self.config.form == "causal" else None
        if body is None or body is self.network or head is None:
            return False
        was_training = self.network.training
        self.network.eval()
        try:
            known = {"input_ids": torch.tensor([[0, 1, 2]], device=self.device), "use_cache": False}
            logits, states = self.network(**known).logits, body(**known).last_hidden_state
            return bool(torch.allclose(head(states).float(), logits.float(), rtol=1e-3, atol=1e-3))
        finally:
            self.network.train(was_training)

    @property
    def _keeps_last(self) -> bool:
        return "logits_to_keep" in inspect.signature(self.network.forward).parameters

    @torch.inference_mode()
    def nats(
        self, reader: PromptReader, items: Sequence[PromptItem], max_pieces: int = 4096
    ) -> list[tuple[float, int]]:
        """Teacher-forced cost of each item's gold reply, the prompt not counted.

        Args:
            reader: Makes the batches.
            items: Each with a reply.
            max_pieces: Padded pieces a batch.

        Returns:
            Nats and scored pieces of each reply, in the order of the items.
        """
        out: list[tuple[float, int]] = [(0.0, 0)] * len(items)
        for indices in _batches(items, max_pieces):
            batch = reader.learning_batch([items[i] for i in indices])
            batch = {name: tensor.to(self.device) for name, tensor in batch.items()}
            logits, targets = self._scored(
                batch["input_ids"], batch["attention_mask"], batch["labels"], batch.get("decoder_input_ids")
            )
            assert targets is not None  # a learning batch has labels
            costs = F.cross_entropy(
                logits.float().transpose(1, 2), targets, ignore_index=IGNORED, reduction="none"
            )  # (batch, kept)
            sums, counts = costs.double().sum(-1).tolist(), targets.ne(IGNORED).sum(-1).tolist()
            for i, nll, n in zip(indices, sums, counts, strict=True):
                out[i] = (nll, n)
        return out

    # -- answering -------------------------------------------------------------------------------------------

    def answers(
        self,
        reader: PromptReader,
        items: Sequence[PromptItem],
        settings: Callable[[Sequence[int]], Mapping[str, Any]],
        batch_size: int = 16,
        **extra: Any,
    ) -> Iterator[tuple[int, list[int]]]:
        """Index and reply pieces of each item, batch by batch; an item gets the same alone or among others.

        Args:
            reader: Makes the batches.
            items: Prompts; gold replies are not read.
            settings: Keyword arguments of ``generate()`` for the items of the given indices.
            batch_size: Most prompts in a batch.
            **extra: Further arguments of ``generate()``.
        """
        for indices in _batches(items, 4096, batch_size):
            batch = reader.answering_batch([items[i] for i in indices])
            rows = self.continue_batch(reader, batch, **settings(indices), **extra)
            yield from zip(indices, rows, strict=True)

    @torch.inference_mode()
    def continue_batch(self, reader: PromptReader, batch: Mapping[str, Tensor], **settings: Any) -> list[list[int]]:
        """Pieces written after each prompt of an answering batch, up to the end piece.

        Args:
            reader: Made the batch.
            batch: ``input_ids`` and ``attention_mask``. Shape: ``(batch, source)``.
            **settings: Keyword arguments of ``generate()``.
        """
        ids, mask = batch["input_ids"].to(self.device), batch["attention_mask"].to(self.device).long()
        known = set(GenerationConfig().to_dict()) | {"max_new_tokens"}
        generation = self._generation(reader, {name: value for name, value in settings.items() if name in known})
        others = {name: value for name, value in settings.items() if name not in known}
        others["stopping_criteria"] = giving_way(others.get("stopping_criteria"))
        made = self.network.generate(input_ids=ids, attention_mask=mask, generation_config=generation, **others)
        start = ids.shape[1] if self.config.form == "causal" else 1
        rows = made[:, start:].tolist()
        ends = set(reader.ends)
        return [row[: next((i for i, piece in enumerate(row) if piece in ends), len(row))] for row in rows]

    def _generation(self, reader: PromptReader, settings: Mapping[str, Any]) -> GenerationConfig:
        marks = {"eos_token_id": reader.ends, "pad_token_id": reader.pad_id}
        if self.config.form == "seq2seq":
            marks["decoder_start_token_id"] = reader.decoder_start
        return GenerationConfig(**{**_marks(self.network.generation_config), **marks, **settings})


def _marks(generation: Any) -> dict[str, Any]:
    """Start, end and forced pieces of a base; its own sampling settings are not taken over unasked."""
    names = ("bos", "eos", "pad", "decoder_start", "forced_bos", "forced_eos")
    found = {f"{name}_token_id": getattr(generation, f"{name}_token_id", None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def make_reader(config: LanguageModelConfig, model: Any, tokenizer: Any) -> PromptReader:
    """How a model reads prompts.

    Args:
        config: Its configuration.
        model: The :class:`LanguageModel`.
        tokenizer: Its tokenizer.

    Raises:
        CheckpointError: The tokenizer cannot end a reply.
    """
    network = model.network
    generation = getattr(network, "generation_config", None)
    ends = getattr(generation, "eos_token_id", None)
    starts = [getattr(own, "decoder_start_token_id", None) for own in (network.config, generation)]
    started = next((start for start in starts if start is not None), tokenizer.pad_token_id or 0)
    room = getattr(network.config, "max_position_embeddings", None)
    max_source = config.max_source
    if config.form == "causal" and isinstance(room, int) and room > 0:
        max_source = min(max_source, max(8, room - min(128, room // 2)))  # the reply needs positions, too
    return PromptReader(
        tokenizer,
        form=cast(Form, config.form),  # of an endpoint no reader is made
        wording=Wording.of(config.wording),
        max_source=max_source,
        decoder_start=int(started),
        further_ends=[ends] if isinstance(ends, int) else list(ends or ()),
    )


def load_base(name: str, form: str, dtype: str = "float32", device: str | None = None) -> Any:
    """A pretrained model by folder, GGUF file or name; quantised GGUF weights are expanded to ``dtype``.

    Raises:
        MissingResourceError: It is not on this machine and cannot be fetched.
        MissingDependencyError: It is a GGUF file and the package gguf is not installed.
        CheckpointError: It is there and is no model of that form.
    """
    folder, options = _source(name)
    kind: Any = AutoModelForSeq2SeqLM if form == "seq2seq" else AutoModelForCausalLM
    problem = f"{name} cannot be loaded as a {form} language model"
    with quiet_loading(expands="gguf_file" in options):
        network = load_pretrained(kind, folder, problem, dtype=getattr(torch, dtype), **options)
    return network if device is None else network.to(device)


def load_tokenizer(name: str | Path) -> Any:
    """The tokenizer of a model by folder, GGUF file or name.

    Raises:
        MissingResourceError: It is not on this machine and cannot be fetched.
        MissingDependencyError: It is a GGUF file and the package gguf is not installed.
        CheckpointError: There is none in its folder, or it cannot be read.
    """
    folder, options = _source(name)
    return load_pretrained(AutoTokenizer, folder, f"the tokenizer of {name} cannot be read", **options)


def form_of(name: str | Path) -> str:
    """Whether a model is ``causal`` or ``seq2seq``, by its configuration.

    Raises:
        MissingResourceError: It is not on this machine and cannot be fetched.
        MissingDependencyError: It is a GGUF file and the package gguf is not installed.
        CheckpointError: Its configuration cannot be read.
    """
    folder, options = _source(name)
    config = load_pretrained(AutoConfig, folder, f"{name} is no model transformers can read", **options)
    return "seq2seq" if config.is_encoder_decoder else "causal"


def _source(name: str | Path) -> tuple[Path, dict[str, str]]:
    """A model's folder, and what transformers must be told to read it."""
    folder, file = resolve_weights(name)
    return folder, {} if file is None else {"gguf_file": file}


def is_adapter(name: str) -> bool:
    """Whether a parameter belongs to a LoRA adapter."""
    return "lora_" in name


def _built(config: LanguageModelConfig) -> Any:
    if config.base_config is None:
        raise ConfigError("neither base nor base_config is given; name a model by folder or name with base.")
    settings = dict(config.base_config)
    kind = AutoModelForSeq2SeqLM if config.form == "seq2seq" else AutoModelForCausalLM
    try:
        base = AutoConfig.for_model(settings.pop("model_type"), **settings)
        return build_pretrained(kind, base)
    except (KeyError, ValueError) as problem:
        reason = " ".join(str(problem).split())[:200]
        raise ConfigError(f"base_config gives no {config.form} language model: {reason}") from None


def _add_adapters(network: Any, settings: Mapping[str, Any], form: str) -> None:
    """Puts LoRA matrices beside the chosen linear layers, in place."""
    try:
        from peft import LoraConfig, TaskType, inject_adapter_in_model
    except ImportError:
        raise MissingDependencyError(_NEEDS_PEFT) from None
    lora = LoraConfig(
        r=settings["r"],
        lora_alpha=settings["alpha"],
        lora_dropout=settings["dropout"],
        target_modules=settings["targets"],
        task_type=TaskType.SEQ_2_SEQ_LM if form == "seq2seq" else TaskType.CAUSAL_LM,
    )
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="fan_in_fan_out")  # it finds the right value itself
            inject_adapter_in_model(lora, network)
    except ValueError as problem:
        raise ConfigError(f"lora: {' '.join(str(problem).split())[:200]}") from None


def _batches(items: Sequence[PromptItem], max_pieces: int, most: int | None = None) -> Iterator[list[int]]:
    """Indices of items of like length."""
    for batch in TokenBatchSampler([len(item) for item in items], max_pieces, shuffle=False):
        for start in range(0, len(batch), most or len(batch)):
            yield list(batch[start : start + (most or len(batch))])
