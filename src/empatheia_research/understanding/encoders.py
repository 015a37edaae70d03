"""Pretrained encoders as parts of a classifier: built from a configuration, or read from a folder.

:class:`EncoderModel` is what classifiers on one encoder share: the encoder, its word table, reading without regard to
padding, heads that start with Xavier weights, and starting from pretrained weights.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers import initialization as init
from transformers.models.auto.modeling_auto import MODEL_MAPPING

from empatheia.errors import CheckpointError, ConfigError
from empatheia.reading import Json
from empatheia_research.layers.aligned import AlignedModel
from empatheia_research.pretrained import build_pretrained, check_pieces, load_pretrained, model_type_of
from empatheia_research.understanding import UNDERSTANDERS

_LATE_POSITIONS = ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer")
"""Encoders whose positions start after the padding index."""
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")


def encoder_settings(
    config: Mapping[str, Json] | PreTrainedConfig, dropout: float | None = None, owner: str = "classifier"
) -> dict[str, Json]:
    """An encoder's whole configuration as plain values.

    Args:
        config: As an object, or as a dict with its ``model_type`` in which defaults may be left out.
        dropout: Replaces every dropout rate; None = as they are.
        owner: Who asks, for messages.

    Raises:
        ConfigError: The ``model_type`` is missing or unknown, or it is an encoder-decoder.
    """
    values = encoder_config(config, owner).to_dict() if isinstance(config, Mapping) else config.to_dict()
    values.pop("_name_or_path", None)  # where it was read from is no part of what it is
    return values if dropout is None else {**values, **{name: dropout for name in DROPOUTS if name in values}}


def encoder_config(settings: Mapping[str, Json] | None, owner: str) -> PreTrainedConfig:
    """A configuration object from plain values; see :func:`encoder_settings` for errors."""
    values = dict(settings or {})
    model_type = values.pop("model_type", None)
    if not model_type:
        raise ConfigError(
            f"{owner}: encoder_config has no 'model_type'; give the encoder's configuration as a dict, or a pretrained"
            " encoder by folder or name."
        )
    try:
        config = AutoConfig.for_model(str(model_type), **values)
    except ValueError:
        raise ConfigError(
            f"{owner}: encoder_config has model_type {model_type!r}, which transformers does not know;"
            " e.g. bert, roberta, distilbert."
        ) from None
    if config.is_encoder_decoder:
        raise ConfigError(f"{owner}: {model_type!r} is an encoder-decoder; accepted: an encoder, e.g. bert or roberta.")
    return config


def build_encoder(settings: Mapping[str, Json] | None, owner: str) -> PreTrainedModel:
    """The encoder a configuration describes, with fresh weights and without a pooler.

    Args:
        settings: The encoder's configuration with its ``model_type``.
        owner: Who asks, for messages.

    Raises:
        ConfigError: See :func:`encoder_settings`.
    """
    config = encoder_config(settings, owner)
    return build_pretrained(AutoModel, config, **_without_pooler(config))


def load_encoder(folder: str, tokenizer_folder: str | None = None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A pretrained encoder (float32) and its tokenizer.

    Args:
        folder: Folder (or hub id) of a Hugging Face encoder, or of a model trained here; see :func:`plain_encoder`.
        tokenizer_folder: Folder of its tokenizer, if it lies elsewhere.

    Raises:
        CheckpointError: The folder holds no encoder that transformers can read, or lacks weights.
    """
    problem = f"cannot read an encoder and its tokenizer from {str(folder)!r}"
    if (system := model_type_of(folder)) in UNDERSTANDERS:
        UNDERSTANDERS.get(system)  # its import tells transformers how to read it
    config = load_pretrained(AutoConfig, folder, problem)
    options: dict[str, Any] = {"dtype": torch.float32, "output_loading_info": True, **_without_pooler(config)}
    model, info = load_pretrained(AutoModel, folder, problem, **options)
    tokenizer = load_pretrained(AutoTokenizer, tokenizer_folder or folder, problem)
    if missing := sorted(info["missing_keys"]):
        raise CheckpointError(f"encoder {str(folder)!r} lacks {len(missing)} weights, first {missing[0]!r}.")
    check_pieces(len(tokenizer), model.get_input_embeddings().num_embeddings, tokenizer_folder or folder)
    return model, tokenizer


def plain_encoder(model: PreTrainedModel) -> PreTrainedModel:
    """The encoder inside a classifier on one encoder; any other model as it is.

    So a model may start from what another one learnt: ``encoder: runs/.../checkpoint`` in a recipe.
    """
    return model.encoder if isinstance(model, EncoderModel) else model


def start_from(encoder: PreTrainedModel, source: PreTrainedModel) -> None:
    """Copies the weights of one encoder to another of the same kind; what only the source has (a pooler) is left.

    Raises:
        CheckpointError: The source lacks weights.
    """
    missing, _ = encoder.load_state_dict(source.state_dict(), strict=False)
    if missing:
        name = str(getattr(source, "name_or_path", "") or "the encoder")
        raise CheckpointError(f"encoder {name!r} lacks {len(missing)} weights, first {missing[0]!r}.")


class HeadLinear(nn.Linear):
    """A linear map of a fresh head; :class:`EncoderModel` starts it with Xavier weights, so it learns at once."""


class EncoderModel(AlignedModel):
    """A classifier on one encoder.

    Args:
        config: Has ``encoder_config``, which says which encoder to build (no weights are loaded).

    Attributes:
        encoder: Without a pooler.
        width: Of its states.
        reads_types: Whether it tells two segments apart.
        pad_id: What padding is read as.
    """

    base_model_prefix = "encoder"
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    _supports_sdpa = True
    _supports_flash_attn = True

    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__(config)
        self.encoder = build_encoder(config.encoder_config, config.model_type)
        settings = self.encoder.config
        self.width: int = settings.hidden_size
        self.reads_types = (getattr(settings, "type_vocab_size", 0) or 0) >= 2
        self.pad_id = getattr(settings, "pad_token_id", None) or 0

    def _init_weights(self, module: nn.Module) -> None:
        """Normal weights and zero biases; Xavier weights in the heads."""
        super()._init_weights(module)
        if isinstance(module, HeadLinear):
            init.xavier_uniform_(module.weight)

    def get_input_embeddings(self) -> nn.Module:
        """The encoder's word table."""
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replaces the encoder's word table."""
        self.encoder.set_input_embeddings(value)

    @classmethod
    def on_encoder(cls, source: PreTrainedModel, **fields: Any) -> Self:
        """A model that starts with the weights of an encoder, and fresh heads.

        Args:
            source: A pretrained encoder, or a model on one.
            **fields: Fields of the model's configuration.

        Raises:
            CheckpointError: Weights are missing.
        """
        source = plain_encoder(source)
        config: Any = cls.config_class  # every subclass names its own
        model = cls(config(encoder_config=source.config, **fields))
        start_from(model.encoder, source)
        return model

    def read(self, input_ids: Tensor, keep: Tensor, types: Tensor | None) -> Tensor:
        """Encoder states; content under a false ``keep`` does not matter.

        Args:
            input_ids: Shape: (batch, source), int64.
            keep: Shape: (batch, source), bool.
            types: Segment ids, given on if the encoder has two or more; None = none. Shape: (batch, source), int64.

        Returns:
            Shape: (batch, source, width).
        """
        return self._encoded(input_ids, keep, types).last_hidden_state

    def read_layers(self, input_ids: Tensor, keep: Tensor, types: Tensor | None) -> tuple[Tensor, ...]:
        """As :meth:`read`: what the encoder begins with, then the states after each of its layers."""
        return self._encoded(input_ids, keep, types, output_hidden_states=True).hidden_states

    def _encoded(self, input_ids: Tensor, keep: Tensor, types: Tensor | None, **wanted: bool) -> Any:
        extra = {}
        if self.reads_types and types is not None:
            extra = {"token_type_ids": types.masked_fill(~keep, 0)}
        ids = input_ids.masked_fill(~keep, self.pad_id)
        return self.encoder(input_ids=ids, attention_mask=keep.long(), **extra, **wanted)


def special_ids(tokenizer: PreTrainedTokenizerBase) -> tuple[int, int, int]:
    """Ids of the pieces that open a sequence, close a turn, and pad.

    Raises:
        ConfigError: The tokenizer has no CLS (or BOS) or no SEP (or EOS) piece.
    """
    opening: Any = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
    closing: Any = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
    if opening is None or closing is None:
        raise ConfigError("the tokenizer has no CLS/BOS or no SEP/EOS piece; use an encoder's tokenizer.")
    padding: Any = tokenizer.pad_token_id
    return opening, closing, padding if padding is not None else closing


def pieces_of(
    tokenizer: PreTrainedTokenizerBase, texts: Iterable[str], clean: Callable[[str], str]
) -> dict[str, list[int]]:
    """Pieces of each different text, without special ones; a special piece typed by a user is text.

    Args:
        tokenizer: An encoder's.
        texts: Any; equal ones are cut once.
        clean: What is cut in place of a text.
    """
    ordered = sorted(set(texts))
    if not ordered:
        return {}
    options: dict[str, Any] = {"return_attention_mask": False, "return_token_type_ids": False, "verbose": False}
    cut: Any = tokenizer(list(map(clean, ordered)), add_special_tokens=False, split_special_tokens=True, **options)
    return dict(zip(ordered, cut["input_ids"], strict=True))


def whole_in(settings: Mapping[str, Json] | None, name: str) -> int:
    """A whole number of a model's configuration; 0 where it names none."""
    value = None if settings is None else settings.get(name)
    return value if isinstance(value, int) else 0


def check_positions(settings: Mapping[str, Json] | None, max_pieces: int) -> None:
    """Refuses sequences longer than the encoder has positions for.

    Args:
        settings: The encoder's configuration with its ``model_type``, or None.
        max_pieces: Most pieces in a sequence.

    Raises:
        ConfigError: They are more than the encoder's positions.
    """
    positions = whole_in(settings, "max_position_embeddings")
    if positions and settings is not None and settings.get("model_type") in _LATE_POSITIONS:
        positions -= whole_in(settings, "pad_token_id") + 1
    if positions and max_pieces > positions:
        raise ConfigError(
            f"max_pieces is {max_pieces}, but the encoder has {positions} positions; accepted: at most that."
        )


def _without_pooler(config: PreTrainedConfig) -> dict[str, bool]:
    """``add_pooling_layer=False`` if the class takes it: an unused pooler would never get a gradient."""
    model_class = MODEL_MAPPING.get(type(config), None)
    if model_class is None or "add_pooling_layer" not in inspect.signature(model_class.__init__).parameters:
        return {}
    return {"add_pooling_layer": False}
