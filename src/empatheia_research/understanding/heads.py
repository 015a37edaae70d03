"""Heads on an encoder: what configurations, losses, counts and folders of all such classifiers have in common.

A model names its heads (:class:`HeadSpec`); from them follow the losses that training weights, and over how many items
each is a mean. Its configuration is a class of fields (:class:`HeadsConfig`), each checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedTokenizerBase
from transformers.utils import ModelOutput

from empatheia.errors import CheckpointError, ConfigError
from empatheia.reading import read_record
from empatheia.resources import resolve_model
from empatheia.taxonomy import IGNORED
from empatheia_research.layers.losses import total_of
from empatheia_research.understanding.encoders import EncoderModel, encoder_settings, load_encoder
from empatheia_research.understanding.labels.classifier import label_fields, read_model, read_tokenizer

Check = tuple[Callable[[Any], bool], str]
"""Whether a value is accepted, and which are."""
RATE: Check = (lambda value: 0 <= value < 1, "from 0 to below 1")
SHARE: Check = (lambda value: 0 <= value <= 1, "from 0 to 1")
POSITIVE: Check = (lambda value: value > 0, "above 0")


def at_least(least: int) -> Check:
    """A check of numbers."""
    return (lambda value: value >= least), f"{least} or more"


class FieldsConfig(PreTrainedConfig):
    """A configuration whose settings are the fields of its class.

    Attributes:
        labels: Names of the classes by index; sets ``id2label``, where a saved configuration has them.
        choices: Accepted values by field.
        checks: Other checks by field.

    Raises:
        ConfigError: A value is not accepted.
    """

    labels: InitVar[Sequence[str] | None] = None
    choices: ClassVar[Mapping[str, Sequence[str]]] = {}
    checks: ClassVar[Mapping[str, Check]] = {}

    def __post_init__(self, labels: Sequence[str] | None = None, **kwargs: Any) -> None:
        for name, accepted in self.choices.items():
            if (value := getattr(self, name)) not in accepted:
                raise ConfigError(f"{self.model_type}: {name} is {value!r}; accepted: {', '.join(accepted)}.")
        for name, (is_fine, text) in self.checks.items():
            if not is_fine(value := getattr(self, name)):
                raise ConfigError(f"{self.model_type}: {name} is {value}; accepted: {text}.")
        if labels is not None:
            for name, value in label_fields(labels, self.model_type).items():
                setattr(self, name, value)
        super().__post_init__(**kwargs)


class HeadsConfig(FieldsConfig):
    """What a model on an encoder reads and how it scores.

    Attributes:
        encoder_config: The encoder's own configuration as a dict with its ``model_type``; None only for the empty
            configuration that transformers builds internally.
        encoder_dropout: Replaces every dropout rate in ``encoder_config``; None = as the encoder has them.
    """

    encoder_config: Any = None
    encoder_dropout: float | None = None

    def __post_init__(self, labels: Sequence[str] | None = None, **kwargs: Any) -> None:
        if self.encoder_config is not None:
            self.encoder_config = encoder_settings(self.encoder_config, self.encoder_dropout, self.model_type)
        super().__post_init__(labels, **kwargs)


@dataclass
class HeadsOutput(ModelOutput):
    """What a model gives, beside logits.

    Attributes:
        loss: Sum of ``losses``; None without targets.
        losses: Unweighted means by head, in nats.
        counts: Over how many items each mean runs.
    """

    loss: Tensor | None = None
    losses: dict[str, Tensor] | None = None
    counts: dict[str, Tensor] | None = None


@dataclass
class LabelOutput(HeadsOutput):
    """What a classifier of one label gives.

    Attributes:
        logits: Divided by the configuration's temperature, so their softmax is the calibrated distribution.
            Shape: (batch, n_labels).
    """

    logits: Tensor | None = None


def supervised(target: Tensor) -> Tensor:
    """How many places of a target are not -100. Shape: ()."""
    return target.ne(IGNORED).sum()


@dataclass(frozen=True)
class HeadSpec:
    """A head: its loss and what that is taken against.

    Attributes:
        name: Of the loss, as stages weigh it.
        target: Key of the batch.
        loss: Sum over supervised places (nats), of the model, its logits and the target.
        count: How many places of a target are supervised.
        when: Whether a configuration has the head.
    """

    name: str
    target: str
    loss: Callable[[Any, Tensor, Tensor], Tensor]
    count: Callable[[Tensor], Tensor] = supervised
    when: Callable[[Any], bool] = lambda config: True


def class_loss(
    logits: Tensor, target: Tensor, weights: Sequence[float] | None = None, smoothing: float = 0.0
) -> Tensor:
    """Cross-entropy, summed over supervised places; -100 = not supervised.

    Args:
        logits: Shape: (..., n_classes).
        target: Indices. Shape: (...), int64.
        weights: One factor a class, or None.
        smoothing: Share of probability spread evenly over all classes, in [0, 1).
    """
    factors = None if weights is None else torch.tensor(weights, dtype=logits.dtype, device=logits.device)
    flat = logits.reshape(-1, logits.shape[-1])
    options: Any = {"ignore_index": IGNORED, "label_smoothing": smoothing, "reduction": "sum"}
    return F.cross_entropy(flat, target.reshape(-1), factors, **options)


def binary_loss(logits: Tensor, target: Tensor, positive_weight: float = 1.0) -> Tensor:
    """Binary cross-entropy, summed over supervised places; the loss of a positive counts ``positive_weight`` times."""
    weight = torch.tensor(positive_weight, dtype=logits.dtype, device=logits.device)
    gold = target.clamp(min=0).to(logits.dtype)
    each = F.binary_cross_entropy_with_logits(logits, gold, pos_weight=weight, reduction="none")
    return torch.where(target != IGNORED, each, 0.0).sum()


def _label_loss(model: Any, logits: Tensor, target: Tensor) -> Tensor:
    """With smoothing and weights of the configuration, in training alone."""
    config = model.config if model.training else None
    weights, smoothing = getattr(config, "label_weights", None), getattr(config, "label_smoothing", 0.0)
    return class_loss(logits, target, weights, smoothing)


LABEL = HeadSpec("label", "labels", _label_loss)
"""The head of a classifier of one label."""


class Heads:
    """A model with heads; mixed into one of transformers' models.

    Attributes:
        specs: What it learns.
        reader_class: Makes what its ``forward`` reads, from a tokenizer and the configuration.
        recipe: Makes such a model, for messages.
    """

    specs: ClassVar[tuple[HeadSpec, ...]] = (LABEL,)
    reader_class: ClassVar[Callable[..., Any]]
    recipe: ClassVar[str] = ""
    config_class: ClassVar[Any]

    def learn(self, logits: Mapping[str, Tensor | None], targets: Mapping[str, Tensor | None]) -> dict[str, Any]:
        """``loss``, ``losses`` and ``counts`` of the heads that have logits and a target.

        Args:
            logits: By head.
            targets: By key of the batch; the mean runs over places even where classes have weights.
        """
        losses, counts = {}, {}
        for head in self.specs:
            scored, target = logits.get(head.name), targets.get(head.target)
            if scored is not None and target is not None:
                count = counts[head.name] = head.count(target)
                losses[head.name] = head.loss(self, scored, target) / count.clamp(min=1)
        return {"loss": total_of(losses), "losses": losses or None, "counts": counts or None}

    @classmethod
    def count_items(cls, batch: Mapping[str, Tensor], config: Any) -> dict[str, Tensor]:
        """How many items each loss of ``batch`` is a mean over, without running the model."""
        return {
            head.name: head.count(batch[head.target])
            for head in cls.specs
            if batch.get(head.target) is not None and head.when(config)
        }

    @classmethod
    def make_reader(cls, tokenizer: PreTrainedTokenizerBase, config: Any) -> Any:
        """What makes rows and batches for a model."""
        return cls.reader_class(tokenizer, config)

    @classmethod
    def on_encoder(cls, source: Any, **fields: Any) -> Self:
        """A model that starts with the weights of an encoder, and fresh heads."""
        raise NotImplementedError(f"{cls.__name__} says how it starts from {source!r}")

    @classmethod
    def from_encoder(cls, folder: str, tokenizer_folder: str | None = None, **fields: Any) -> tuple[Self, Any]:
        """A model with a pretrained encoder and fresh heads, and its reader.

        Args:
            folder: Folder (or hub id) of a Hugging Face encoder.
            tokenizer_folder: Folder of its tokenizer, if it lies elsewhere.
            **fields: Of the model's configuration.

        Raises:
            CheckpointError: The folder holds no encoder that transformers can read, or lacks weights.
            ConfigError: More pieces are asked for than the encoder has positions.
        """
        source, tokenizer = load_encoder(folder, tokenizer_folder)
        model: Any = cls.on_encoder(source, **fields)
        return model, cls.make_reader(tokenizer, model.config)

    @classmethod
    def open(cls, folder: str | Path) -> tuple[Self, Any]:
        """A trained model and its reader from the folder training saved.

        Raises:
            CheckpointError: Weights or tokenizer are missing.
        """
        kind: Any = cls
        model = read_model(kind, folder)
        return model, cls.make_reader(read_tokenizer(folder, model), model.config)

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device | None = None) -> tuple[Self, Any, str]:
        """A trained model on a device, its reader, and its name.

        Args:
            folder: What training saved, or a name that ``resolve_model`` knows.
            device: Where the model runs; None = the processor.

        Raises:
            MissingResourceError: There is no such folder.
            CheckpointError: The folder holds another model, or lacks weights.
        """
        path = resolve_model(folder)
        try:
            found = read_record(path / "config.json").get("model_type")
        except (OSError, ValueError) as problem:
            raise CheckpointError(f"{path / 'config.json'}: {problem}; give the folder of a trained model.") from None
        if found != (own := cls.config_class.model_type):
            made = f", as `empatheia train {cls.recipe}` makes it" if cls.recipe else ""
            raise CheckpointError(f"{path}: model_type is {found!r}; accepted: {own}{made}.")
        model, reader = cls.open(path)
        placed: Any = model
        meta = path / "empatheia.json"
        return placed.to(device or "cpu"), reader, read_record(meta)["name"] if meta.is_file() else path.name


class EncoderHeads(EncoderModel, Heads):
    """Heads on one encoder."""
