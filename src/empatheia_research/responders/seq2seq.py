"""What every encoder-decoder responder shares: word table, decoder, losses and the wiring to ``generate()``.

A system subclasses :class:`Seq2SeqResponder` and brings its own encoder; beams, sampling, caches, saving and
the Trainer come from transformers. The word table serves encoder, decoder and (transposed) the output layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
import torch.nn.functional as F
from torch import LongTensor, Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoConfig, AutoModelForSeq2SeqLM, GenerationMixin, PreTrainedConfig
from transformers import initialization as init
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.generation.utils import GenerateOutput
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.utils import ModelOutput

from empatheia.taxonomy import IGNORED
from empatheia_research.layers.aligned import AlignedModel, resize_pretrained
from empatheia_research.layers.attention import GateForm
from empatheia_research.layers.cache import CACHE, CACHE_NAMES
from empatheia_research.layers.convolutional import UnbiasedLayerNorm
from empatheia_research.layers.losses import total_of
from empatheia_research.layers.positions import sinusoidal_positions
from empatheia_research.layers.precision import wide
from empatheia_research.layers.smoothing import smoothed_cross_entropy
from empatheia_research.layers.stepping import giving_way
from empatheia_research.layers.transformer import Decoder, Encoder
from empatheia_research.text import auto_tokenizer as auto_tokenizer  # known to AutoTokenizer from here on

INNER_STATES = ("output_attentions", "output_hidden_states")
_OF_THE_LOOP = frozenset(("next_sequence_length", "is_first_iteration", "inputs_embeds"))


class Seq2SeqConfig(PreTrainedConfig):
    """Sizes every encoder-decoder responder has.

    Args:
        vocab_size: Pieces in the tokeniser.
        width: Width of words and states (paper family: 300).
        n_encoder_layers: Blocks of the encoder.
        n_decoder_layers: Blocks of the decoder.
        n_heads: Attention heads.
        attention_width: Total width of the heads; None = ``width`` rounded up to a multiple of ``n_heads``.
        ffn_width: Inner width of the feed-forward.
        dropout: In [0, 1).
        label_smoothing: Mass spread over the other classes in the word loss (PAD excluded).
        loss_reduction: ``sum`` adds a reply's token losses (as the equations print), ``mean`` averages over tokens.
        role_embedding: Add a vector for who speaks to each source position.
        scale_words: Multiply word vectors by sqrt(width) on input; wanted when they start from small random
            values instead of GloVe (whose values are large beside the positions').
        tie_words: The output layer is the transposed word table; False: a layer of its own, with bias.
        n_emotions: Emotion classes.
    """

    model_type = "empatheia_seq2seq"
    attribute_map: ClassVar[dict[str, str]] = {"hidden_size": "width", "num_hidden_layers": "n_decoder_layers"}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "__init__" not in vars(cls):  # transformers would generate one that knows nothing of these fields
            cls.__init__ = cls.__init__
        super().__init_subclass__(**kwargs)

    def __init__(
        self,
        vocab_size: int = 1000,
        width: int = 300,
        n_encoder_layers: int = 6,
        n_decoder_layers: int = 6,
        n_heads: int = 8,
        attention_width: int | None = None,
        ffn_width: int = 1200,
        dropout: float = 0.1,
        label_smoothing: float = 0.0,
        loss_reduction: str = "sum",
        role_embedding: bool = False,
        scale_words: bool = False,
        tie_words: bool = True,
        n_emotions: int = 32,
        pad_token_id: int = 0,
        bos_token_id: int = 4,
        eos_token_id: int = 5,
        **kwargs: Any,
    ) -> None:
        self.vocab_size = vocab_size
        self.width = width
        self.n_encoder_layers = n_encoder_layers
        self.n_decoder_layers = n_decoder_layers
        self.n_heads = n_heads
        self.attention_width = attention_width or -(-width // n_heads) * n_heads
        self.ffn_width = ffn_width
        self.dropout = dropout
        self.label_smoothing = label_smoothing
        self.loss_reduction = loss_reduction
        self.role_embedding = role_embedding
        self.scale_words = scale_words
        self.tie_words = tie_words
        self.n_emotions = n_emotions
        kwargs["is_encoder_decoder"] = True
        kwargs.setdefault("decoder_start_token_id", bos_token_id)
        ids = {"pad_token_id": pad_token_id, "bos_token_id": bos_token_id, "eos_token_id": eos_token_id}
        super().__init__(**ids, **kwargs)

    @property
    def word_scale(self) -> float:
        """Factor on word vectors where they enter encoder and decoder."""
        return self.width**0.5 if self.scale_words else 1.0


@dataclass
class ResponderEncoding(BaseModelOutput):
    """What the encoder hands to every decoding step; each tensor has the batch in front, so beams expand it.

    Attributes:
        last_hidden_state: Memory of the decoder. Shape: ``(batch, source, width)``.
        memory_mask: True = keep. Shape: ``(batch, memory)``; None: the memory is the source, masked alike.
        gates: Cause gates. Shape: ``(batch, source)``; None without a cause reasoner.
        emotion_ids: Predicted emotion. Shape: ``(batch,)``; None when the decoder takes none.
        emotion_logits: Shape: ``(batch, 32)``; None without an emotion head.
        cause_logits: Shape: ``(batch, source, 2)``; None without a cause head.
    """

    memory_mask: Tensor | None = None
    gates: Tensor | None = None
    emotion_ids: Tensor | None = None
    emotion_logits: Tensor | None = None
    cause_logits: Tensor | None = None

    @classmethod
    def joined(cls, parts: Sequence[ResponderEncoding], order: Sequence[int]) -> ResponderEncoding:
        """Encodings of several batches as one; shorter sources are padded with zeros.

        Args:
            parts: Of the same model.
            order: For every row of the result, its place in the parts one after another.
        """
        joined: dict[str, Any] = {}
        for name in parts[0]:
            rows = [row for part in parts for row in part[name]]
            rows = [rows[place] for place in order]
            is_of_source = name not in ("emotion_ids", "emotion_logits")
            joined[name] = pad_sequence(rows, batch_first=True) if is_of_source else torch.stack(rows)
        return cls(**joined)


@dataclass
class ResponderOutput(Seq2SeqLMOutput):
    """Result of a responder's ``forward``: transformers' own, so that it has the fields that ``generate()`` reads.

    Attributes:
        loss: Plain sum of ``losses`` (the trainer weights them by the recipe); None without labels.
        losses: Unweighted means by name.
        counts: How many items each mean is over.
        logits: Word scores. Shape: ``(batch, target, vocabulary)``; None when no target was given, and in training,
            where only the pieces that count are scored.
        emotion_logits: Shape: ``(batch, 32)`` or None.
        cause_logits: Shape: ``(batch, source, 2)`` or None.

    The cache of the decoder is among them, by the name :data:`empatheia_research.layers.cache.CACHE`.
    """

    losses: dict[str, Tensor] | None = None
    counts: dict[str, Tensor] | None = None
    emotion_logits: Tensor | None = None
    cause_logits: Tensor | None = None

    def __getitem__(self, k: Any) -> Any:
        """As in transformers; asked for scores that were not computed, it says what would have them computed."""
        if k == "logits" and self.logits is None:
            raise KeyError(
                "no word scores: give decoder_input_ids (DataCollatorForSeq2Seq(tokenizer, model=model) makes them),"
                " or labels outside of training."
            )
        return super().__getitem__(k)


class Understood(Protocol):
    """What a system says of a context without answering; see :meth:`Seq2SeqResponder.understand`."""

    emotion_logits: Tensor | None
    cause_probs: Tensor | None


@dataclass
class Heads(ModelOutput):
    """An :class:`Understood` and no more."""

    emotion_logits: Tensor | None = None
    cause_probs: Tensor | None = None


def given(tensor: Tensor | None) -> Tensor:
    """What a record need not hold, but an encoding made by the system's own encoder does."""
    assert tensor is not None
    return tensor


def encoder_stack(config: Seq2SeqConfig) -> Encoder:
    """The encoder blocks of a configuration's sizes."""
    return Encoder(
        config.n_encoder_layers,
        config.width,
        config.n_heads,
        config.attention_width,
        config.ffn_width,
        config.dropout,
    )


def embed_source(words: nn.Embedding, input_ids: Tensor, scale: float) -> Tensor:
    """Word vectors times ``scale`` plus sinusoidal positions from 0. Shape: ``(batch, source, width)``."""
    vectors = words(input_ids) * scale
    positions = torch.arange(input_ids.shape[1], device=input_ids.device)
    return vectors + sinusoidal_positions(positions, words.embedding_dim, vectors.dtype)


def word_loss(logits: Tensor, labels: Tensor, pad_id: int, smoothing: float = 0.0) -> Tensor:
    """Negative log-likelihood of each target piece, smoothed over the other classes except PAD.

    With smoothing s, the target has 1 - s and the V - 2 classes that are neither it nor PAD share s; so the
    smoothed target sums to 1 and is 0 at PAD (Gao et al.'s and MoEL's code). Ignored positions give 0.

    Args:
        logits: Shape: ``(batch, target, vocabulary)``.
        labels: Piece ids, -100 ignored. Shape: ``(batch, target)``.
        pad_id: Class that never gets mass.
        smoothing: s in [0, 1).

    Returns:
        Losses in nats. Shape: ``(batch, target)``.
    """
    if smoothing:
        kept = labels.flatten().clamp_min(0)
        nll = smoothed_cross_entropy(logits.flatten(0, 1), kept, pad_id, smoothing)
    else:
        nll = F.cross_entropy(wide(logits).flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="none")
    return nll.view_as(labels) * labels.ne(IGNORED)


def smoothed_target(labels: Tensor, vocab_size: int, pad_id: int, smoothing: float) -> Tensor:
    """The distribution :func:`word_loss` measures against; rows of PAD targets are all zero.

    Args:
        labels: Piece ids. Shape: ``(n,)``.
        vocab_size: V.
        pad_id: Class that never gets mass.
        smoothing: s in [0, 1).

    Returns:
        Probabilities. Shape: ``(n, vocab_size)``.
    """
    target = torch.full((labels.shape[0], vocab_size), smoothing / (vocab_size - 2))
    target.scatter_(1, labels[:, None], 1.0 - smoothing)
    target[:, pad_id] = 0.0
    target[labels == pad_id] = 0.0
    return target


class Seq2SeqResponder(AlignedModel, GenerationMixin):
    """Encoder of the system's own, shared decoder.

    A subclass sets ``config_class`` and ``features`` and implements :meth:`build_encoder`; the encoder owns
    ``words`` (the shared table), names every feature it reads in its ``forward`` and returns a
    :class:`ResponderEncoding` (or a subclass with more tensors). What a system adds to the decoder goes into
    :meth:`build_decoder`, :meth:`decoder_inputs`, :meth:`decode`, :meth:`word_logits`; what it adds to the losses
    into :meth:`encoding_losses`, :meth:`reply_losses` and :meth:`count_items`.

    Attributes:
        features: What the collator builds for the system.
        side_inputs: Names in :data:`empatheia_research.side_inputs.SIDE_INPUTS` of what it reads beside the context.
        takes_reasoning: Whether it goes on from what it understood, by :meth:`encode_reasoned`.
        has_emotion_head: Whether it says an emotion; without, it answers and does not analyse.
        scores_padding: The word scores (a copy mixture, say) need the whole batch, in training too.
        gold_features: Of all systems, what only losses may read; never handed to the encoder outside
            :meth:`encode`, which a system that is taught by gold labels overrides (for training mode alone).
    """

    config_class = Seq2SeqConfig
    base_model_prefix = "responder"
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    encoder: Any
    decoder: Any
    features: ClassVar[tuple[str, ...]] = ("input_ids", "attention_mask", "labels")
    gold_features: ClassVar[frozenset[str]] = frozenset(
        ("labels", "emotion_labels", "cause_labels", "emotion_teacher", "mechanism_labels")
    )
    side_inputs: ClassVar[tuple[str, ...]] = ()
    has_emotion_head: bool = False
    takes_reasoning: bool = False
    scores_padding: bool = False
    scales_random_words: ClassVar[bool] = False
    """Whether training multiplies word vectors by sqrt(width) where none are given to start from."""
    _supports_cache_class = True
    _supports_sdpa = True

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config)
        self.encoder = self.build_encoder(config)
        self.decoder = self.build_decoder(config)
        if not config.tie_words:
            self.word_head = nn.Linear(config.width, config.vocab_size)
        self.dropout = nn.Dropout(config.dropout)
        self.post_init()

    def build_encoder(self, config: Seq2SeqConfig) -> nn.Module:
        """The system's encoder."""
        raise TypeError(f"{type(self).__name__} must say what its encoder is.")

    def build_decoder(self, config: Seq2SeqConfig) -> nn.Module:
        """The system's decoder."""
        return Decoder(
            config.n_decoder_layers,
            config.width,
            config.n_heads,
            config.attention_width,
            config.ffn_width,
            config.dropout,
            self.decoder_gate_form(config),
        )

    def decoder_gate_form(self, config: Seq2SeqConfig) -> GateForm | None:
        """Form of the decoder's gated attention; None for a plain decoder."""
        return None

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Conv1d):
            init.xavier_uniform_(module.weight)
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=self.config.width**-0.5)
        elif isinstance(module, nn.LayerNorm | UnbiasedLayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)

    def get_encoder(self, *args: Any, **kwargs: Any) -> nn.Module:
        """The module ``generate()`` runs once per context."""
        return self.encoder

    def get_input_embeddings(self) -> nn.Module:
        """The word table."""
        return self.encoder.words

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replaces the word table."""
        self.encoder.words = value

    def get_output_embeddings(self) -> nn.Module | None:
        """The output layer; None where it is the word table itself."""
        return None if self.config.tie_words else self.word_head

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        """Replaces the output layer, where there is one."""
        if not self.config.tie_words:
            self.word_head = new_embeddings

    def _resize_token_embeddings(
        self, new_num_tokens: int | None, pad_to_multiple_of: int | None = None, mean_resizing: bool = True
    ) -> nn.Embedding:
        table: Any = super()._resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        if (new_num_tokens, pad_to_multiple_of) != (None, None):
            self.resize_others(table.num_embeddings, mean_resizing)
        return table

    def resize_others(self, n_pieces: int, mean_resizing: bool) -> None:
        """Part of ``resize_token_embeddings``: all that has a row a piece beside word table and output layer.

        Args:
            n_pieces: Rows.
            mean_resizing: New rows are drawn around the mean of the old ones.
        """
        for table in self.word_tables()[1:]:
            self._get_resized_embeddings(table, n_pieces, mean_resizing=mean_resizing)
        resize_pretrained(self, n_pieces, mean_resizing)

    @torch.no_grad()
    def load_word_vectors(self, matrix: Tensor, found: Tensor) -> None:
        """Starts the word table(s) from given vectors.

        Args:
            matrix: Shape: ``(vocabulary, width)``.
            found: Rows to overwrite. Shape: ``(vocabulary,)``, bool.
        """
        for table in self.word_tables():
            if table.weight.shape == matrix.shape:
                table.weight[found] = matrix[found].to(table.weight.dtype)

    def word_tables(self) -> list[nn.Embedding]:
        """Tables that word vectors may start."""
        return [self.encoder.words]

    def see_corpus(self, replies: Tensor) -> None:
        """Told before a stage what it will learn to say; most systems need not know.

        Args:
            replies: Pieces of all training replies, one behind the other. Shape: ``(n,)``.
        """

    def decoder_inputs(self, ids: Tensor, encoding: ResponderEncoding, first_position: int) -> Tensor:
        """Embeds decoder pieces: words + positions.

        Args:
            ids: Shape: ``(batch, target)``.
            encoding: The encoder's output (a subclass may add a condition from it).
            first_position: Position of the first column.

        Returns:
            Tensor of shape ``(batch, target, width)``.
        """
        words = self.encoder.words(ids) * self.config.word_scale
        positions = torch.arange(first_position, first_position + ids.shape[1], device=ids.device)
        return words + sinusoidal_positions(positions, self.config.width, words.dtype)

    def encode_heads(
        self, input_ids: Tensor, attention_mask: Tensor | None, **features: Tensor | None
    ) -> ResponderEncoding:
        """The encoder's side outputs when no reply is scored; a system that can skips its memory here."""
        return self.encode(input_ids, attention_mask, **features)

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None, **features: Tensor | None) -> ResponderEncoding:
        """Runs the encoder on what is known before the reply: gold labels among ``features`` are left out."""
        known = {name: value for name, value in features.items() if name not in self.gold_features}
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask, **known)

    def decode(
        self,
        states: Tensor,
        encoding: ResponderEncoding,
        attention_mask: Tensor | None,
        cache: EncoderDecoderCache | None,
    ) -> Tensor:
        """Decoder states of embedded pieces.

        Args:
            states: From :meth:`decoder_inputs`. Shape: ``(batch, target, width)``.
            encoding: The encoder's output.
            attention_mask: Of the source. Shape: ``(batch, source)``.
            cache: Keys and values of earlier steps, or None.

        Returns:
            Tensor of shape ``(batch, target, width)``.
        """
        mask = attention_mask if encoding.memory_mask is None else encoding.memory_mask
        return self.decoder(states, encoding.last_hidden_state, mask, encoding.gates, cache)

    def word_logits(self, states: Tensor, encoding: ResponderEncoding) -> Tensor:
        """Word scores of decoder states. Shape: ``(batch, target, vocabulary)``."""
        return F.linear(states, self.encoder.words.weight) if self.config.tie_words else self.word_head(states)

    def kept_logits(self, states: Tensor, kept: Tensor, encoding: ResponderEncoding) -> Tensor:
        """Word scores of the states that count.

        Args:
            states: Shape: ``(batch, target, width)``.
            kept: True = counts. Shape: ``(batch, target)``.
            encoding: The encoder's output.

        Returns:
            Tensor of shape ``(1, number kept, vocabulary)``.
        """
        return self.word_logits(states[kept][None], encoding)

    def encoding_losses(self, encoding: ResponderEncoding, **labels: Tensor | None) -> dict[str, Tensor]:
        """Losses of the encoder's heads, unweighted means by name: ``emotion`` where there is such a head."""
        gold = labels.get("emotion_labels")
        if gold is None or encoding.emotion_logits is None:
            return {}
        total = F.cross_entropy(encoding.emotion_logits, gold, ignore_index=IGNORED, reduction="sum")
        return {"emotion": total / gold.ne(IGNORED).sum().clamp_min(1)}

    def reply_losses(
        self, logits: Tensor, labels: Tensor, encoding: ResponderEncoding, states: Tensor, n_words: Tensor
    ) -> dict[str, Tensor]:
        """Losses of a scored reply, unweighted means by name.

        Args:
            logits: Shape: ``(batch, target, vocabulary)``; in training, unless ``scores_padding``, one row of all
                pieces that count.
            labels: -100 ignored. Shape: that of ``logits`` without the last dimension.
            encoding: The encoder's output.
            states: Decoder states. Shape: ``(batch, target, width)``.
            n_words: What the word loss is a mean over.
        """
        nll = word_loss(logits, labels, self.config.pad_token_id, self.config.label_smoothing)
        return {"words": nll.sum() / n_words.clamp_min(1)}

    def state_losses(self, states: Tensor, labels: Tensor, encoding: ResponderEncoding) -> dict[str, Tensor]:
        """Losses on the decoder's states themselves, unweighted means by name; none here.

        Args:
            states: Shape: ``(batch, target, width)``.
            labels: -100 ignored. Shape: ``(batch, target)``.
            encoding: The encoder's output.
        """
        return {}

    def _n_words(self, labels: Tensor) -> Tensor:
        return self.count_items({"labels": labels}, self.config)["words"]

    @classmethod
    def count_items(cls, batch: dict[str, Tensor], config: PreTrainedConfig) -> dict[str, Tensor]:
        """How many items each loss of ``batch`` is a mean over, without running the model."""
        counts: dict[str, Tensor] = {}
        if (labels := batch.get("labels")) is not None:
            kept = labels.ne(IGNORED)
            counts["words"] = kept.any(-1).sum() if config.loss_reduction == "sum" else kept.sum()
        if (gold := batch.get("emotion_labels")) is not None:
            counts["emotion"] = gold.ne(IGNORED).sum()
        return counts

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: ResponderEncoding | None = None,
        use_cache: bool | None = None,
        return_dict: bool | None = None,
        **features: Any,
    ) -> ResponderOutput:
        """Encodes a context and scores a reply.

        Args:
            input_ids: ``[CLS] U_1 [SEP] ...``. Shape: ``(batch, source)``.
            attention_mask: True = keep. Shape: ``(batch, source)``.
            labels: Reply pieces with EOS, -100 padding. Shape: ``(batch, target)``. Without it and without
                ``decoder_input_ids`` only the encoder runs.
            decoder_input_ids: Pieces so far, from BOS. Shape: ``(batch, target)``.
            encoder_outputs: Given during generation.
            use_cache: Whether to fill a cache; None = as the configuration says, where nothing is learned.
            return_dict: Accepted for the library's sake; the result is always a :class:`ResponderOutput`.
            **features: What else the system's ``features`` names: ``role_ids`` (0 none, 1 speaker, 2 listener;
                ``(batch, source)``), side inputs, and labels that only losses read: ``emotion_labels`` ``(batch,)``
                and ``cause_labels`` ``(batch, source)`` with -100 where unknown, ``emotion_teacher`` ``(batch, 32)``,
                all-zero rows where there is none. During generation the cache, by any of
                :data:`empatheia_research.layers.cache.CACHE_NAMES`.

        Returns:
            Losses (when labels are given), word scores and the encoder's side outputs.

        Raises:
            ValueError: There is neither a context nor its encoding, inner states are asked for, or a decoder mask with
                holes is given.
        """
        self._check_asked(features)
        past_key_values = _taken_cache(features)
        if decoder_input_ids is None and labels is not None:
            decoder_input_ids = self.shift_right(labels)
        encoding = encoder_outputs
        if encoding is None:
            encode = self.encode_heads if decoder_input_ids is None else self.encode
            encoding = encode(self._context(input_ids), attention_mask, **features)
        losses = self.encoding_losses(encoding, input_ids=input_ids, attention_mask=attention_mask, **features)
        logits = None
        if decoder_input_ids is not None:
            if past_key_values is None and self._keeps_past(use_cache, labels):
                past_key_values = EncoderDecoderCache(DynamicCache(), DynamicCache())
            past = past_key_values.get_seq_length() if past_key_values is not None else 0
            states = self.dropout(self.decoder_inputs(decoder_input_ids, encoding, int(past)))
            states = self.decode(states, encoding, attention_mask, past_key_values)
            logits, own = self._scored(states, labels, encoding)
            losses |= own
        given = {name: value for name, value in {"labels": labels, **features}.items() if value is not None}
        counts = self.count_items(given, self.config) if losses else {}
        step: dict[str, Any] = {CACHE: past_key_values}
        return ResponderOutput(
            loss=total_of(losses),
            losses=losses or None,
            counts=counts or None,
            logits=logits,
            emotion_logits=encoding.emotion_logits,
            cause_logits=encoding.cause_logits,
            **step,
        )

    def _context(self, input_ids: Tensor | None) -> Tensor:
        if input_ids is None:
            raise ValueError(f"no context for {type(self).__name__}: give input_ids, or encoder_outputs.")
        return input_ids

    def _keeps_past(self, use_cache: bool | None, labels: Tensor | None) -> bool:
        """Whether the states of pieces are kept for those after them; not where something is learned, if not asked."""
        if use_cache is not None:
            return use_cache
        return labels is None and not self.training and bool(getattr(self.config, "use_cache", False))

    def _scored(
        self, states: Tensor, labels: Tensor | None, encoding: ResponderEncoding
    ) -> tuple[Tensor | None, dict[str, Tensor]]:
        """Word scores, and the losses of a reply where its labels are given.

        In training no scores come back, as padding is left out: it is half of a batch of replies, and the words cost
        most of a step.

        Args:
            states: Of the decoder. Shape: ``(batch, target, width)``.
            labels: -100 ignored. Shape: ``(batch, target)``.
            encoding: The encoder's output.
        """
        if labels is None:
            return self.word_logits(states, encoding), {}
        logits = None
        if self.training and not self.scores_padding:
            kept = labels.ne(IGNORED)
            scored = self.kept_logits(states, kept, encoding)  # (1, pieces that count, vocabulary)
            losses = self.reply_losses(scored, labels[kept][None], encoding, states, n_words=self._n_words(labels))
        else:
            logits = self.word_logits(states, encoding)  # (batch, target, vocabulary)
            losses = self.reply_losses(logits, labels, encoding, states, n_words=self._n_words(labels))
        return logits, {**losses, **self.state_losses(states, labels, encoding)}

    def generate(self, *args: Any, **kwargs: Any) -> GenerateOutput | LongTensor:
        """As in transformers; inner states are not given.

        Raises:
            ValueError: Attentions or hidden states are asked for.
        """
        settings = kwargs.get("generation_config", args[1] if len(args) > 1 else None) or self.generation_config
        self._check_asked({name: getattr(settings, name, None) for name in INNER_STATES} | kwargs)
        if len(args) < 4:  # transformers takes them as the fourth, too
            kwargs["stopping_criteria"] = giving_way(kwargs.get("stopping_criteria"))
        library: Any = super()  # its annotations ask for what a model has only once it is placed on devices
        return library.generate(*args, **kwargs)

    def _check_asked(self, asked: Mapping[str, Any]) -> None:
        """Refuses what would be left out without a word."""
        for name in INNER_STATES:
            if asked.get(name) or (asked.get(name) is None and getattr(self.config, name, False)):
                raise ValueError(
                    f"{name}: {type(self).__name__} does not give it; leave it out (register_forward_hook)."
                )
        mask = asked.get("decoder_attention_mask")
        if mask is not None and not (mask[:, 0].all() and (mask[:, 1:] <= mask[:, :-1]).all()):
            raise ValueError("decoder_attention_mask hides steps in front of others; pad replies on the right.")

    @torch.no_grad()
    def understand(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **features: Tensor | None
    ) -> Understood:
        """Emotion (and causes, where a system has them) alone.

        Args:
            input_ids: Shape: ``(batch, source)``.
            attention_mask: True = keep. Shape: ``(batch, source)``.
            **features: What else the system reads.

        Returns:
            A record with ``emotion_logits`` ``(batch, 32)`` and ``cause_probs`` ``(batch, source)`` or None.
        """
        return Heads(emotion_logits=self.encode_heads(input_ids, attention_mask, **features).emotion_logits)

    def encode_reasoned(self, reasoning: Understood, input_ids: Tensor, **inputs: Tensor) -> ResponderEncoding:
        """What ``generate()`` takes as ``encoder_outputs``, from what :meth:`understand` found in the same context.

        Args:
            reasoning: Of the context.
            input_ids: Shape: ``(batch, source)``.
            **inputs: What else the system reads, likewise.

        Raises:
            TypeError: The system cannot go on from there (:attr:`takes_reasoning`).
        """
        raise TypeError(f"{type(self).__name__} does not go on from what it understood; give generate() the context.")

    def shift_right(self, labels: Tensor) -> Tensor:
        """Decoder inputs for teacher forcing: BOS, then the labels without their last column."""
        shifted = labels.new_full(labels.shape, self.config.pad_token_id)
        shifted[:, 0] = self.config.decoder_start_token_id
        shifted[:, 1:] = labels[:, :-1].masked_fill(labels[:, :-1].eq(IGNORED), self.config.pad_token_id)
        return shifted

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """:meth:`shift_right`, by the name that transformers' collator asks for."""
        return self.shift_right(labels)

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        encoder_outputs: ResponderEncoding | None = None,
        use_cache: bool | None = None,
        **kwargs: Any,
    ) -> dict[str, object]:
        """Inputs of one decoding step: all pieces without a cache, the newest with one; others, but gold, as given."""
        cache = _taken_cache(kwargs)
        if cache is not None and (past := cache.get_seq_length()) > 0:
            input_ids = input_ids[:, past:]
        others = {name: value for name, value in kwargs.items() if name not in self.gold_features | _OF_THE_LOOP}
        return {
            **others,
            "decoder_input_ids": input_ids,
            CACHE: cache,
            "attention_mask": attention_mask,
            "encoder_outputs": encoder_outputs,
            "use_cache": use_cache,
        }


def _taken_cache(inputs: dict[str, Any]) -> EncoderDecoderCache | None:
    """The cache among the inputs of a step, which are left without."""
    given = [inputs.pop(name, None) for name in CACHE_NAMES]
    return next((cache for cache in given if cache is not None), None)


def register(model_class: type[Seq2SeqResponder]) -> None:
    """Makes a responder known to ``AutoConfig`` and ``AutoModelForSeq2SeqLM``, from its module's import on.

    ``AutoTokenizer`` knows the tokeniser of its folder then, too (:mod:`empatheia_research.text.auto_tokenizer`).
    """
    config_class: Any = model_class.config_class
    AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
    AutoModelForSeq2SeqLM.register(config_class, model_class, exist_ok=True)
