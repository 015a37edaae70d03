"""Generative emotion estimator (GEE; Kim, Kim and Kim 2021, section 3): emotion and cause words by Bayes' rule.

A language model learns ``P(text | emotion)`` from sentence labels alone. Scoring a text under every label gives the
emotion (``P(emotion | text)``) and, position by position, the words that carry it (``P(word | emotion)``).
The arithmetic is in ``cause_evidence.py``. Any encoder-decoder or causal model of transformers serves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedConfig,
)
from transformers.modeling_outputs import BaseModelOutput
from transformers.utils import ModelOutput

from empatheia.analysis.questions import Place, labels_meant
from empatheia.errors import CheckpointError, ConfigError
from empatheia.reading import Json
from empatheia.taxonomy import EMOTIONS, IGNORED
from empatheia.text.batching import BucketBatchSampler
from empatheia_research.layers.aligned import AlignedModel
from empatheia_research.pretrained import build_pretrained, load_pretrained
from empatheia_research.understanding.encoders import whole_in
from empatheia_research.understanding.labels.classifier import label_fields, label_names, pad_rows, read_model
from empatheia_research.understanding.words.estimator_pieces import EstimatorReader, TextPieces
from empatheia_research.understanding.words.evidence import (
    Evidence,
    cause_probabilities,
    emotion_joint,
    informative_probabilities,
    remembered,
)

CELLS = 2**23  # log-probabilities held at once: 32 MB, few enough to stay fast on a processor
_ENCODERS_AS_DECODERS = ("bert", "roberta", "electra", "xlm-roberta", "camembert")


class EmotionEstimatorConfig(PreTrainedConfig):
    """What the estimator is built on and how it explains.

    Args:
        backbone_config: The language model's own configuration as a dict with its ``model_type``; None only for the
            empty configuration that transformers builds internally.
        labels: Emotions by index; sets ``id2label``.
        label_form: What the model reads of a label; ``{}`` is the label (released: ``__{}__``).
        max_pieces: Most pieces of a text with what its tokenizer puts around it.
        backbone_dropout: Replaces every dropout rate in ``backbone_config``; None = as the backbone has them.
        evidence: ``repo3`` or ``all``; see :class:`Evidence`, also for the next four.
        top_emotions: 1 or 2.
        length_norm: Mean or sum of log-probabilities.
        memory: 0 to 1.
        explains: ``label`` or ``any``.
        log_prior: Log-probability of each label before anything is read (nats); None = uniform.
    """

    model_type = "emotion_estimator"

    def __init__(
        self,
        backbone_config: dict[str, Json] | PreTrainedConfig | None = None,
        labels: Sequence[str] | None = None,
        label_form: str = "__{}__",
        max_pieces: int = 128,
        backbone_dropout: float | None = None,
        evidence: Literal["repo3", "all"] = "repo3",
        top_emotions: int = 2,
        length_norm: bool = True,
        memory: float = 0.0,
        explains: Literal["label", "any"] = "label",
        log_prior: list[float] | None = None,
        **kwargs: Any,
    ) -> None:
        Evidence(evidence, top_emotions, length_norm, memory, explains)
        if "{}" not in label_form:
            raise ConfigError(f"emotion_estimator: label_form is {label_form!r}; accepted: a text with {{}} in it.")
        if max_pieces < 4:
            raise ConfigError(f"emotion_estimator: max_pieces is {max_pieces}; accepted: 4 or more.")
        if labels is not None:
            kwargs |= label_fields(labels, "emotion_estimator")
        self.backbone_config = None if backbone_config is None else _plain(backbone_config, backbone_dropout)
        positions = whole_in(self.backbone_config, "max_position_embeddings") or max_pieces
        if max_pieces > positions:
            raise ConfigError(
                f"emotion_estimator: max_pieces is {max_pieces}, but the backbone has {positions} positions; accepted:"
                f" up to {positions}."
            )
        self.label_form = label_form
        self.max_pieces = max_pieces
        self.backbone_dropout = backbone_dropout
        self.evidence = evidence
        self.top_emotions = top_emotions
        self.length_norm = length_norm
        self.memory = memory
        self.explains = explains
        self.log_prior = log_prior
        super().__init__(**kwargs)
        if labels is not None:
            self.settings().check(len(labels))
        if log_prior is not None and len(log_prior) != self.num_labels:
            raise ConfigError(f"emotion_estimator: {len(log_prior)} values in log_prior for {self.num_labels} labels.")

    def settings(self) -> Evidence:
        """How it explains unless another way is asked for."""
        return Evidence(
            cast(Any, self.evidence), self.top_emotions, self.length_norm, self.memory, cast(Any, self.explains)
        )


@dataclass
class EmotionEstimatorOutput(ModelOutput):
    """What a training pass gives.

    Attributes:
        loss: Sum of ``losses``; None without labels.
        losses: ``text``: mean cross-entropy of the target pieces, their end included (nats).
        counts: Over how many pieces that mean runs.
        logits: Shape: (batch, positions, vocabulary).
    """

    loss: Tensor | None = None
    losses: dict[str, Tensor] | None = None
    counts: dict[str, Tensor] | None = None
    logits: Tensor | None = None


class EmotionEstimator(AlignedModel):
    """``P(text | emotion)`` of a language model.

    Args:
        config: ``config.backbone_config`` says which model to build (no weights are loaded).
    """

    config_class = EmotionEstimatorConfig
    base_model_prefix = "backbone"
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    _supports_sdpa = True
    _supports_flash_attn = True
    config: EmotionEstimatorConfig
    features: ClassVar[tuple[str, ...]] = ("input_ids", "attention_mask", "decoder_input_ids", "labels")

    def __init__(self, config: EmotionEstimatorConfig) -> None:
        super().__init__(config)
        self.backbone = _build(config.backbone_config)
        self._encoded: dict[tuple[int, ...], Tensor] = {}
        self._encoded_with: tuple[Any, ...] = ()
        self.post_init()

    @property
    def start(self) -> int | None:
        """Piece the decoder of an encoder-decoder starts from; None for a causal model."""
        return start_piece(self.backbone.config)

    @classmethod
    def from_backbone(
        cls, folder: str, labels: Sequence[str] = EMOTIONS, **kwargs: Any
    ) -> tuple[Self, EstimatorReader]:
        """An estimator that starts from a pretrained language model, and its reader.

        An encoder such as BERT becomes a causal model: its attention looks back only and its output layer is new.

        Args:
            folder: Folder (or hub id) of an encoder-decoder, a causal model, or a BERT-like encoder.
            labels: Emotions by index.
            **kwargs: Fields of :class:`EmotionEstimatorConfig`.

        Raises:
            CheckpointError: The folder cannot be read, or lacks weights below the output layer.
            ConfigError: Its tokenizer gives no offsets.
        """
        problem = f"cannot read a language model and its tokenizer from {str(folder)!r}"
        auto, described = _auto_class(load_pretrained(AutoConfig, folder, problem))
        source, info = load_pretrained(
            auto, folder, problem, config=described, dtype=torch.float32, output_loading_info=True
        )
        tokenizer = load_pretrained(AutoTokenizer, folder, problem)
        inner = f"{source.base_model_prefix}."
        if missing := sorted(name for name in info["missing_keys"] if name.startswith(inner) and "pooler" not in name):
            raise CheckpointError(f"backbone {str(folder)!r} lacks {len(missing)} weights, first {missing[0]!r}.")
        model = cls(EmotionEstimatorConfig(source.config, labels, **kwargs))
        model.backbone.load_state_dict(source.state_dict(), strict=False)
        return model, EstimatorReader(tokenizer, model.config, model.start)

    @classmethod
    def open(cls, folder: str | Path) -> tuple[Self, EstimatorReader]:
        """A trained model and its reader from the folder training saved.

        Raises:
            CheckpointError: Weights or tokenizer are missing.
        """
        model = read_model(cls, folder)
        return model, EstimatorReader.open(folder, model.config, model.start)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        labels: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> EmotionEstimatorOutput:
        """Scores texts given emotions; see :meth:`EstimatorReader.collate`.

        Args:
            input_ids: The label, or for a causal model label and text. Shape: (batch, source), int64.
            attention_mask: True = keep; None keeps all. Shape: (batch, source).
            decoder_input_ids: The text, one step late; encoder-decoders only. Shape: (batch, target), int64.
            labels: What each position must say, -100 = not supervised. Shape: (batch, target) or (batch, source).
            return_dict: Accepted for the Trainer; the answer is always an ``EmotionEstimatorOutput``.
        """
        keep = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        extra = {} if decoder_input_ids is None else {"decoder_input_ids": decoder_input_ids}
        logits = self.backbone(input_ids=input_ids, attention_mask=keep.long(), use_cache=False, **extra).logits
        if labels is None:
            return EmotionEstimatorOutput(logits=logits)
        count = labels.ne(IGNORED).sum()
        total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum")
        mean = total / count.clamp(min=1)
        return EmotionEstimatorOutput(loss=mean, losses={"text": mean}, counts={"text": count}, logits=logits)

    @classmethod
    def count_items(cls, batch: Mapping[str, Tensor], config: EmotionEstimatorConfig) -> dict[str, Tensor]:
        """How many pieces the loss of ``batch`` is a mean over, without running the model."""
        labels = batch.get("labels")
        return {} if labels is None else {"text": labels.ne(IGNORED).sum()}

    def encoded_labels(self, sources: Sequence[tuple[int, ...]]) -> list[Tensor]:
        """Encoder states of labels, computed once as long as the weights stay as they are.

        Args:
            sources: Pieces of each label, or of labels read as one.

        Returns:
            One tensor a source. Shape: (pieces, width).
        """
        weights = tuple((p.data_ptr(), 0 if p.is_inference() else p._version) for p in self.backbone.parameters())
        if weights != self._encoded_with:
            self._encoded, self._encoded_with = {}, weights
        if new := [source for source in dict.fromkeys(sources) if source not in self._encoded]:
            ids = pad_rows(new, 0).to(self.device)
            lengths = torch.tensor([len(source) for source in new], device=ids.device)
            keep = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
            states = self.backbone.get_encoder()(input_ids=ids, attention_mask=keep.long()).last_hidden_state
            self._encoded |= {source: row[: len(source)] for source, row in zip(new, states, strict=True)}
        return [self._encoded[source] for source in sources]

    def train(self, mode: bool = True) -> EmotionEstimator:
        """Training mode; what was computed once is forgotten."""
        if mode:
            self._encoded, self._encoded_with = {}, ()
        return super().train(mode)

    def score_rows(
        self, reader: EstimatorReader, sources: Sequence[tuple[int, ...]], texts: Sequence[TextPieces]
    ) -> Tensor:
        """Log-probability of each piece of each text given its source, in one call of the model.

        Args:
            reader: The model's own.
            sources: Pieces of the label of each row.
            texts: The text of each row.

        Returns:
            Nats; 0 beyond a text's end. Shape: (rows, longest text), float32.
        """
        if not max((len(text.ids) for text in texts), default=0):
            return torch.zeros(len(texts), 0)
        targets = pad_rows([text.ids for text in texts], reader.padding).to(self.device)  # (rows, n)
        keep = torch.arange(targets.shape[1]) < torch.tensor([len(text.ids) for text in texts])[:, None]
        logits = self.row_logits(reader, sources, texts)
        picked = logits.gather(-1, targets[..., None]).squeeze(-1) - logits.logsumexp(-1)  # (rows, n)
        return picked.cpu() * keep

    def row_logits(
        self, reader: EstimatorReader, sources: Sequence[tuple[int, ...]], texts: Sequence[TextPieces]
    ) -> Tensor:
        """Scores of every piece of the vocabulary at each place of each text, given what stands before it there.

        Args:
            reader: The model's own.
            sources: Pieces of the label of each row.
            texts: The text of each row; at least one piece in one of them.

        Returns:
            Unnormalised; anything beyond a text's end. Shape: (rows, longest text, vocabulary), float32.
        """
        before, n = reader.target.before, max(len(text.ids) for text in texts)
        if reader.start is not None:
            inputs = pad_rows([[reader.start, *before, *text.ids][: n + len(before)] for text in texts], reader.padding)
            states = self.encoded_labels(sources)
            padded: Any = pad_sequence(states, batch_first=True)  # (rows, source, width)
            encoder = BaseModelOutput(last_hidden_state=padded)
            lengths = torch.tensor([len(state) for state in states])
            logits = self.backbone(
                encoder_outputs=encoder,
                attention_mask=(torch.arange(int(lengths.max())) < lengths[:, None]).long().to(self.device),
                decoder_input_ids=inputs.to(self.device),
                use_cache=False,
            ).logits[:, len(before) : len(before) + n]  # (rows, n, vocabulary)
        else:
            rows = [[*source, *text.ids] for source, text in zip(sources, texts, strict=True)]
            ids = pad_rows(rows, reader.padding).to(self.device)
            lengths = torch.tensor([len(row) for row in rows])
            mask = torch.arange(ids.shape[1]) < lengths[:, None]
            found = self.backbone(input_ids=ids, attention_mask=mask.long().to(self.device), use_cache=False).logits
            first = torch.tensor([len(source) - 1 for source in sources], device=self.device)
            at = (first[:, None] + torch.arange(n, device=self.device)).clamp(max=ids.shape[1] - 1)  # (rows, n)
            logits = found[torch.arange(len(rows), device=self.device)[:, None], at]  # (rows, n, vocabulary)
        return logits.float()


# -- texts under every label -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Likelihoods:
    """What the 32 passes over one text gave.

    Attributes:
        text: Its pieces.
        values: log P(w_t | w_<t, e) in nats. Shape: (n_labels, pieces), float64.
    """

    text: TextPieces
    values: Tensor


@dataclass(frozen=True)
class Estimate:
    """What the estimator says of one text.

    Attributes:
        joint: M(e), unnormalised (nats). Shape: (n_labels,).
        explained: Indices of the labels the pieces' probabilities are about, best first; with ``explains: any`` the
            most likely label, beside others.
        pieces: Start, end and probability of each piece; probabilities sum to 1.
    """

    joint: np.ndarray
    explained: tuple[int, ...]
    pieces: tuple[tuple[int, int, float], ...]

    @property
    def posterior(self) -> np.ndarray:
        """P(emotion | text): the softmax of ``joint``. Flat when M is a mean over pieces."""
        values = np.exp(self.joint - self.joint.max())
        return values / values.sum()

    @property
    def places(self) -> tuple[Place, ...]:
        """Characters of the pieces."""
        return tuple((start, end) for start, end, _ in self.pieces)


@torch.inference_mode()
def likelihoods(
    model: EmotionEstimator, reader: EstimatorReader, texts: Sequence[str], *, batch_size: int = 32
) -> list[Likelihoods]:
    """Every text under every label: one call of the model for a batch of texts times all labels.

    Args:
        model: Put into evaluation mode.
        reader: The model's own.
        texts: What was said.
        batch_size: Most texts in one pass; fewer where the vocabulary is large.
    """
    model.eval()
    pieces = reader.pieces(texts)
    sources = [tuple(reader.label_ids([label])) for label in label_names(model.config)]
    out: list[Likelihoods | None] = [None] * len(texts)
    for indices in _batches(model, pieces, batch_size, len(sources)):
        rows = [pieces[i] for i in indices for _ in sources]  # the texts, each repeated for all labels
        scores = model.score_rows(reader, sources * len(indices), rows).double()
        scores = scores.view(len(indices), len(sources), scores.shape[-1])
        for own, i in zip(scores, indices, strict=True):
            out[i] = Likelihoods(pieces[i], own[:, : len(pieces[i].ids)])
    return [found for found in out if found is not None]


@torch.inference_mode()
def explain(
    model: EmotionEstimator,
    reader: EstimatorReader,
    found: Sequence[Likelihoods],
    emotions: Sequence[str | None] | None = None,
    evidence: Evidence | None = None,
    *,
    batch_size: int = 32,
) -> list[Estimate]:
    """Emotion and cause pieces of texts whose likelihoods are known.

    Args:
        model: Reads two labels as one if ``top_emotions`` is 2: one more pass a text.
        reader: The model's own.
        found: From :func:`likelihoods`.
        emotions: What to explain, one of the labels or of RECCON's six a text; None = the most likely, or any.
        evidence: None = the model's own.
        batch_size: Most texts in one pass.

    Raises:
        DataError: An emotion is no label.
        ConfigError: There are too few labels for this evidence.
    """
    evidence = evidence or model.config.settings()
    labels = label_names(model.config)
    evidence.check(len(labels))
    prior = _log_prior(model.config)
    joints = [emotion_joint(own.values, prior, evidence.length_norm) for own in found]
    orders = [
        _ordered(joint, None if emotion is None else labels_meant(emotion, labels), evidence)
        for joint, emotion in zip(joints, emotions or [None] * len(found), strict=True)
    ]
    tops: list[Tensor | None] = [None] * len(found)
    if evidence.top_emotions == 2:
        chosen = {i: [labels[e] for e in order[:n]] for i, (order, n) in enumerate(orders) if n > 1}
        for i, scores in _read_as_one(model, reader, found, chosen, batch_size):
            tops[i] = scores
    return [
        _estimate(own, joint, order, n_top, top, evidence, prior)
        for own, joint, (order, n_top), top in zip(found, joints, orders, tops, strict=True)
    ]


def _read_as_one(
    model: EmotionEstimator,
    reader: EstimatorReader,
    found: Sequence[Likelihoods],
    chosen: Mapping[int, Sequence[str]],
    batch_size: int,
) -> Iterator[tuple[int, Tensor]]:
    """Log-likelihoods of texts under their chosen labels read as one, with the place of each; texts have pieces."""
    places = [i for i in chosen if found[i].text.ids]
    texts = [found[i].text for i in places]
    sources = [tuple(reader.label_ids(list(chosen[i]))) for i in places]
    for indices in _batches(model, texts, batch_size, 1):
        scores = model.score_rows(reader, [sources[k] for k in indices], [texts[k] for k in indices]).double()
        for own, k in zip(scores, indices, strict=True):
            yield places[k], own[: len(texts[k].ids)]


def estimate(
    model: EmotionEstimator,
    reader: EstimatorReader,
    texts: Sequence[str],
    emotions: Sequence[str | None] | None = None,
    evidence: Evidence | None = None,
    *,
    batch_size: int = 32,
) -> list[Estimate]:
    """:func:`likelihoods` and :func:`explain` in one."""
    found = likelihoods(model, reader, texts, batch_size=batch_size)
    return explain(model, reader, found, emotions, evidence, batch_size=batch_size)


def _estimate(
    own: Likelihoods,
    joint: Tensor,
    order: list[int],
    n_top: int,
    together: Tensor | None,
    evidence: Evidence,
    prior: Tensor,
) -> Estimate:
    """``together``: likelihoods of the first labels read as one; None = each was read alone."""
    weights = joint if evidence.kind == "repo3" else prior
    others = order[-2:] if evidence.kind == "repo3" else order[n_top:]
    values = remembered(own.values, evidence.memory)
    if not n_top:
        return Estimate(joint.numpy(), tuple(order[:1]), _with_places(own, informative_probabilities(values, prior)))
    if together is not None:
        top, weight = remembered(together, evidence.memory), weights[order[:n_top]].logsumexp(0)
    else:
        top, weight = (values[order[:n_top]] + weights[order[:n_top], None]).logsumexp(0), weights.new_zeros(())
    probabilities = cause_probabilities(top, weight, values[others], weights[others])
    return Estimate(joint.numpy(), tuple(order[:n_top]), _with_places(own, probabilities))


def _with_places(own: Likelihoods, probabilities: Tensor) -> tuple[tuple[int, int, float], ...]:
    return tuple((start, end, p) for (start, end), p in zip(own.text.places, probabilities.tolist(), strict=True))


def _ordered(joint: Tensor, meant: Sequence[int] | None, evidence: Evidence) -> tuple[list[int], int]:
    """Labels by M, those that are meant first, and how many of the first are explained; 0 = any."""
    values = joint.tolist()
    order = sorted(range(len(values)), key=lambda e: (meant is not None and e not in meant, -values[e], e))
    if evidence.explains == "any":
        return order, len(meant or ())
    return order, evidence.top_emotions if meant is None else min(evidence.top_emotions, len(meant))


def _batches(model: EmotionEstimator, texts: Sequence[TextPieces], batch_size: int, n_labels: int) -> list[list[int]]:
    """Indices in batches of like length that keep the logits within ``CELLS``."""
    lengths = [len(text.ids) for text in texts]
    vocabulary = model.backbone.config.vocab_size
    out: list[list[int]] = []
    for batch in BucketBatchSampler(lengths, batch_size, shuffle=False):
        room = max(1, CELLS // (n_labels * vocabulary * max(1, *(lengths[i] for i in batch))))
        out += [batch[k : k + room] for k in range(0, len(batch), room)]
    return out


def _log_prior(config: EmotionEstimatorConfig) -> Tensor:
    """Shape: (n_labels,), float64; normalised."""
    values = config.log_prior or [0.0] * int(config.num_labels or 0)
    return torch.tensor(values, dtype=torch.float64).log_softmax(-1)


# -- backbones -----------------------------------------------------------------------------------------------


def start_piece(config: PreTrainedConfig) -> int | None:
    """Piece an encoder-decoder's decoder starts from; None for other models.

    Raises:
        ConfigError: It has none.
    """
    if not config.is_encoder_decoder:
        return None
    for name in ("decoder_start_token_id", "pad_token_id", "bos_token_id"):  # T5's decoder starts from its padding
        if getattr(config, name, None) is not None:
            return int(getattr(config, name))
    raise ConfigError(f"backbone {config.model_type!r} has no decoder_start_token_id; set it in its configuration.")


def _plain(config: Mapping[str, Any] | PreTrainedConfig, dropout: float | None) -> dict[str, Any]:
    """A language model's whole configuration as plain values, with every dropout rate replaced unless it is None."""
    values = (_described(config) if isinstance(config, Mapping) else config).to_dict()
    rates = [name for name, value in values.items() if "drop" in name and "layer" not in name and value is not None]
    return values if dropout is None else values | dict.fromkeys(rates, dropout)


def _described(settings: Mapping[str, Any] | None) -> PreTrainedConfig:
    values = dict(settings or {})
    model_type = values.pop("model_type", None)
    if not model_type:
        raise ConfigError(
            "emotion_estimator: backbone_config has no 'model_type'; give a language model's configuration as a dict,"
            " or a pretrained one by folder or name."
        )
    try:
        return AutoConfig.for_model(model_type, **values)
    except ValueError:
        raise _no_language_model(model_type) from None


def _no_language_model(model_type: str) -> ConfigError:
    return ConfigError(f"emotion_estimator: no language model of model_type {model_type!r}; e.g. bart, t5, gpt2.")


def _auto_class(config: PreTrainedConfig) -> tuple[Any, PreTrainedConfig]:
    if config.is_encoder_decoder:
        return AutoModelForSeq2SeqLM, config
    if config.model_type in _ENCODERS_AS_DECODERS:
        config.is_decoder = True
    return AutoModelForCausalLM, config


def _build(settings: Mapping[str, Any] | None) -> Any:
    auto, config = _auto_class(_described(settings))
    try:
        return build_pretrained(auto, config)
    except ValueError:
        raise _no_language_model(config.model_type) from None


AutoConfig.register(EmotionEstimatorConfig.model_type, EmotionEstimatorConfig, exist_ok=True)
AutoModel.register(EmotionEstimatorConfig, EmotionEstimator, exist_ok=True)
