"""Rashkin et al. 2018, the retrieval systems: two encoders, and the candidate with the largest dot product.

*Base*: a context encoder and a candidate encoder of 4 post-norm layers (6 heads of 50, inner width 1,200) over one
shared word table, each the mean over its words; score = dot product; loss = softmax over the replies of the batch. So
every other reply of the batch is a negative, equal ones too. *Multitask*: a linear layer without bias on the context's
vector says the emotion, loss = (response + emotion) / 2. *Prepend-k*: the k best labels of a classifier stand in front
of contexts and candidates, the best next to the text. *Ensem*: ``h_e = W [h_w ; h_c] + b`` on both sides, h_c from a
second, frozen encoder. The later paper's form with pretrained towers (two BERTs, 300 columns on the first state) is a
configuration, as is one shared tower that starts from a sentence encoder.

A text is ``u_1 <SOC> u_2 ...`` of the last turns, SEP standing for ``<SOC>``. The released code keeps the first 100
words of it, so a long context loses the turn that is answered (``truncate: newest``); ``oldest`` keeps that turn. Of a
long reply the beginning is kept, either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModel, PreTrainedConfig
from transformers import initialization as init
from transformers.utils import ModelOutput

from empatheia.reading import Json
from empatheia.taxonomy import IGNORED
from empatheia_research.layers.aligned import AlignedModel, resize_pretrained
from empatheia_research.layers.ensemble import Ensemble
from empatheia_research.layers.losses import total_of
from empatheia_research.layers.pooling import mean_pool
from empatheia_research.layers.positions import sinusoidal_positions
from empatheia_research.layers.post_norm import PostNormEncoder
from empatheia_research.pretrained import build_pretrained, described_encoder, load_pretrained
from empatheia_research.text.collation import pad_rows
from empatheia_research.text.tokenizer import DialogueTokenizer

_CHOICES = {"pooling": ("mean", "first"), "towers": ("two", "one"), "truncate": ("newest", "oldest")}


class RetrievalConfig(PreTrainedConfig):
    """Towers, score and how texts are read; defaults are the paper's Base.

    Args:
        vocab_size: Pieces in the tokeniser.
        width: Of words and states.
        n_layers: Blocks of a tower.
        n_heads: Attention heads.
        ffn_width: Inner width of the feed-forward.
        dropout: In [0, 1).
        scale_words: Multiply word vectors by sqrt(width) on input; without it small ones drown in the positions.
        towers: ``two`` encoders over one word table, or ``one`` for contexts and candidates.
        pooling: ``mean`` over the pieces, or the ``first`` state (BERT towers).
        output_width: Columns a tower's vector is mapped to (BERT towers: 300); None = as it is.
        normalize: Scale vectors to length 1, so that scores are cosines.
        scale: Factor on scores in the loss; with ``normalize`` the inverse temperature.
        both_ways: The loss also chooses the context for each reply.
        skip_duplicates: Equal replies of a batch are no negatives of each other (released: they are).
        emotion_head: Say the emotion (Multitask).
        n_emotions: Emotion classes.
        external_width: Width of the second encoder's vector (Ensem; DeepMoji: 2,304); None = no second encoder.
        encoder_config: A Hugging Face encoder's configuration as a dict: the towers then are such encoders.
        chunk: Texts a tower reads at once in training; their states are computed again in the backward pass, so that
            a batch of any size fits into memory (Gao et al. 2021, gradient caching). 0 = the whole batch.
        max_turns: Turns of context read, the newest.
        max_pieces: Longest text; k prepended labels come on top.
        truncate: What a long context loses; see the module. A long reply always loses its end.
        marks: Texts begin with CLS and end with SEP; None = where there is an ``encoder_config``. The released BERT
            towers have False: the ``first`` state is then that of the first word piece.
        pad_token_id: Padding piece.

    Raises:
        ValueError: A word is not one of those accepted.
    """

    model_type = "rashkin_retrieval"
    attribute_map: ClassVar[dict[str, str]] = {"hidden_size": "width", "num_hidden_layers": "n_layers"}

    def __init__(
        self,
        vocab_size: int = 1000,
        width: int = 300,
        n_layers: int = 4,
        n_heads: int = 6,
        ffn_width: int = 1200,
        dropout: float = 0.0,
        scale_words: bool = False,
        towers: str = "two",
        pooling: str = "mean",
        output_width: int | None = None,
        normalize: bool = False,
        scale: float = 1.0,
        both_ways: bool = False,
        skip_duplicates: bool = False,
        emotion_head: bool = False,
        n_emotions: int = 32,
        external_width: int | None = None,
        encoder_config: dict[str, Json] | None = None,
        chunk: int = 0,
        max_turns: int = 4,
        max_pieces: int = 100,
        truncate: str = "newest",
        marks: bool | None = None,
        pad_token_id: int = 0,
        **kwargs: Any,
    ) -> None:
        for name, value in (("pooling", pooling), ("towers", towers), ("truncate", truncate)):
            if value not in _CHOICES[name]:
                raise ValueError(f"{name} is {value!r}; accepted: {', '.join(_CHOICES[name])}.")
        self.vocab_size = vocab_size
        self.width = width
        self.n_layers = n_layers
        self.n_heads = n_heads
        self.ffn_width = ffn_width
        self.dropout = dropout
        self.scale_words = scale_words
        self.towers = towers
        self.pooling = pooling
        self.output_width = output_width
        self.normalize = normalize
        self.scale = scale
        self.both_ways = both_ways
        self.skip_duplicates = skip_duplicates
        self.emotion_head = emotion_head
        self.n_emotions = n_emotions
        self.external_width = external_width
        self.encoder_config = encoder_config
        self.chunk = chunk
        self.max_turns = max_turns
        self.max_pieces = max_pieces
        self.truncate = truncate
        self.marks = encoder_config is not None if marks is None else marks
        super().__init__(**{"pad_token_id": pad_token_id, **kwargs})


@dataclass
class RetrievalOutput(ModelOutput):
    """Result of ``forward``.

    Attributes:
        loss: Plain sum of ``losses`` (the trainer weights them by the recipe); None without candidates and labels.
        losses: Unweighted means by name: ``response``, ``emotion``.
        counts: How many items each mean is over.
        context_vectors: Shape: ``(batch, width)``.
        candidate_vectors: Shape: ``(batch, width)``; None without candidates.
        emotion_logits: Shape: ``(batch, 32)``; None without an emotion head.
    """

    loss: Tensor | None = None
    losses: dict[str, Tensor] | None = None
    counts: dict[str, Tensor] | None = None
    context_vectors: Tensor | None = None
    candidate_vectors: Tensor | None = None
    emotion_logits: Tensor | None = None


def in_batch_loss(
    contexts: Tensor, candidates: Tensor, scale: float = 1.0, *, same: Tensor | None = None, both_ways: bool = False
) -> Tensor:
    """Softmax over the batch's replies by rows, mean negative log-likelihood of the diagonal (section 2.1).

    Args:
        contexts: Shape: ``(batch, width)``.
        candidates: Shape: ``(batch, width)``.
        scale: Factor on the dot products.
        same: True = the two replies are equal and no negatives of each other. Shape: ``(batch, batch)``.
        both_ways: Mean of this and the same with contexts and replies exchanged.
    """
    scores = scale * contexts @ candidates.T
    gold = torch.arange(len(scores), device=scores.device)
    if same is not None:
        others = same & ~torch.eye(len(scores), dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(others, float("-inf"))
    loss = F.cross_entropy(scores, gold)
    return (loss + F.cross_entropy(scores.T, gold)) / 2 if both_ways else loss


class Tower(nn.Module):
    """Pieces to one vector: own blocks over the shared word table, or a pretrained encoder."""

    def __init__(self, config: RetrievalConfig) -> None:
        super().__init__()
        self.pooling = config.pooling
        self.normalize = config.normalize
        self.word_scale = config.width**0.5 if config.scale_words else 1.0
        width = config.width
        if config.encoder_config is not None:
            self.pretrained = build_pretrained(AutoModel, described_encoder(config))
            if getattr(self.pretrained, "pooler", None) is not None:
                self.pretrained.pooler = None
            width = self.pretrained.config.hidden_size
        else:
            self.dropout = nn.Dropout(config.dropout)
            self.stack = PostNormEncoder(
                config.n_layers, width, config.n_heads, width, config.ffn_width, config.dropout
            )
        self.is_pretrained = config.encoder_config is not None
        self.output = nn.Linear(width, config.output_width) if config.output_width else None
        self.width = config.output_width or width
        self.ensemble = Ensemble(self.width, config.external_width) if config.external_width else None

    def forward(
        self, ids: Tensor, keep: Tensor, words: nn.Embedding | None = None, external: Tensor | None = None
    ) -> Tensor:
        """Encodes texts.

        Args:
            ids: Shape: ``(batch, length)``.
            keep: True = keep. Shape: ``(batch, length)``.
            words: The shared table; None for a pretrained tower.
            external: The second encoder's vectors. Shape: ``(batch, external width)``.

        Returns:
            Tensor of shape ``(batch, output width)``.
        """
        if words is None:
            states = self.pretrained(input_ids=ids, attention_mask=keep.long()).last_hidden_state
        else:
            vectors = self.word_scale * words(ids)
            positions = torch.arange(ids.shape[1], device=ids.device)
            vectors = vectors + sinusoidal_positions(positions, vectors.shape[-1], vectors.dtype)
            states = self.stack(self.dropout(vectors), keep)
        vector = states[:, 0] if self.pooling == "first" else mean_pool(states, keep)
        if self.output is not None:
            vector = self.output(vector)
        if self.ensemble is not None:
            if external is None or external.shape[1] != self.ensemble.in_features - self.width:
                found = "none" if external is None else f"width {external.shape[1]}"
                wanted = self.ensemble.in_features - self.width
                raise ValueError(
                    f"external vectors: {found}; this model's second encoder has width {wanted}: name it in"
                    " data.external."
                )
            vector = self.ensemble(vector, external)
        return F.normalize(vector, dim=-1) if self.normalize else vector


class RashkinRetrieval(AlignedModel):
    """Contexts and candidates to vectors whose dot product says how well they fit."""

    config_class = RetrievalConfig
    base_model_prefix = "retrieval"
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    config: RetrievalConfig
    features: ClassVar[tuple[str, ...]] = (
        "input_ids",
        "attention_mask",
        "candidate_ids",
        "candidate_mask",
        "external_vectors",
        "candidate_external",
        "emotion_labels",
    )
    gold_features: ClassVar[frozenset[str]] = frozenset(
        ("candidate_ids", "candidate_mask", "candidate_external", "emotion_labels")
    )

    def __init__(self, config: RetrievalConfig) -> None:
        super().__init__(config)
        self.words = None
        if config.encoder_config is None:
            self.words = nn.Embedding(config.vocab_size, config.width, padding_idx=config.pad_token_id)
        self.context_tower = Tower(config)
        self.candidate_tower = Tower(config) if config.towers == "two" else None
        width = self.context_tower.width
        self.emotion = nn.Linear(width, config.n_emotions, bias=False) if config.emotion_head else None
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Words N(0, 0.05) with a zero row for padding, linear maps Xavier-normal (released code)."""
        if isinstance(module, Ensemble):
            module.start()
        elif isinstance(module, nn.Linear):
            init.xavier_normal_(module.weight)
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=0.05)
            if module.padding_idx is not None and not getattr(module.weight, "_is_hf_initialized", False):
                init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)

    @property
    def has_emotion_head(self) -> bool:
        """True for Multitask."""
        return self.config.emotion_head

    def get_input_embeddings(self) -> nn.Module:
        """The word table (the context tower's, if towers are pretrained)."""
        return self.context_tower.pretrained.get_input_embeddings() if self.words is None else self.words

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replaces that table."""
        if self.words is None:
            self.context_tower.pretrained.set_input_embeddings(value)
        else:
            self.words = value

    def _resize_token_embeddings(
        self, new_num_tokens: int | None, pad_to_multiple_of: int | None = None, mean_resizing: bool = True
    ) -> nn.Embedding:
        table: Any = super()._resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        if (new_num_tokens, pad_to_multiple_of) != (None, None):
            resize_pretrained(self, table.num_embeddings, mean_resizing)
        return table

    def load_encoder(self, folder: str) -> None:
        """Fills pretrained towers from a Hugging Face model folder."""
        source = load_pretrained(AutoModel, folder).state_dict()
        for tower in filter(None, (self.context_tower, self.candidate_tower)):
            own = tower.pretrained.state_dict()
            tower.pretrained.load_state_dict({name: tensor for name, tensor in source.items() if name in own})

    @torch.no_grad()
    def load_word_vectors(self, matrix: Tensor, found: Tensor) -> None:
        """Starts the shared table from given vectors.

        Args:
            matrix: Shape: ``(vocabulary, width)``.
            found: Rows to overwrite. Shape: ``(vocabulary,)``, bool.
        """
        if isinstance(self.words, nn.Embedding):
            self.words.weight[found] = matrix[found].to(self.words.weight.dtype)

    def encode_contexts(self, ids: Tensor, keep: Tensor, external: Tensor | None = None) -> Tensor:
        """Vectors of contexts; arguments as :meth:`Tower.forward`. Shape: ``(batch, width)``."""
        return self._encode(self.context_tower, ids, keep, external)

    def encode_candidates(self, ids: Tensor, keep: Tensor, external: Tensor | None = None) -> Tensor:
        """Vectors of candidates; arguments as :meth:`Tower.forward`. Shape: ``(batch, width)``."""
        return self._encode(self.candidate_tower or self.context_tower, ids, keep, external)

    def _encode(self, tower: Tower, ids: Tensor, keep: Tensor, external: Tensor | None) -> Tensor:
        chunk, keep = self.config.chunk, keep.bool()
        if not chunk or not torch.is_grad_enabled() or len(ids) <= chunk:
            return tower(ids, keep, self.words, external)
        order = keep.sum(1).argsort(stable=True)  # texts of like length share a chunk
        parts = []
        for rows in order.split(chunk):
            longest = int(keep[rows].sum(1).max())
            outside = None if external is None else external[rows]
            inputs = (ids[rows, :longest], keep[rows, :longest], self.words, outside)
            parts.append(checkpoint(tower, *inputs, use_reentrant=False))
        return torch.cat(parts)[order.argsort()]

    @classmethod
    def count_items(cls, batch: dict[str, Tensor], config: PreTrainedConfig) -> dict[str, Tensor]:
        """How many items each loss of ``batch`` is a mean over, without running the model."""
        counts: dict[str, Tensor] = {}
        if (candidates := batch.get("candidate_ids")) is not None:
            counts["response"] = torch.tensor(len(candidates))
        if (gold := batch.get("emotion_labels")) is not None:
            counts["emotion"] = gold.ne(IGNORED).sum()
        return counts

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        candidate_ids: Tensor | None = None,
        candidate_mask: Tensor | None = None,
        external_vectors: Tensor | None = None,
        candidate_external: Tensor | None = None,
        emotion_labels: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> RetrievalOutput:
        """Encodes contexts and, if given, their replies.

        Args:
            input_ids: Contexts. Shape: ``(batch, source)``.
            attention_mask: True = keep. Shape: ``(batch, source)``.
            candidate_ids: The reply of each context. Shape: ``(batch, target)``.
            candidate_mask: True = keep. Shape: ``(batch, target)``.
            external_vectors: The second encoder's, of contexts. Shape: ``(batch, external width)``.
            candidate_external: The second encoder's, of replies. Shape: ``(batch, external width)``.
            emotion_labels: -100 unknown. Shape: ``(batch,)``.
            return_dict: Accepted for the Trainer; the answer is always a :class:`RetrievalOutput`.
        """
        keep = input_ids.ne(self.config.pad_token_id) if attention_mask is None else attention_mask
        contexts = self.encode_contexts(input_ids, keep, external_vectors)
        candidates: Tensor | None = None
        losses: dict[str, Tensor] = {}
        counts: dict[str, Tensor] = {}
        if candidate_ids is not None:
            kept = candidate_ids.ne(self.config.pad_token_id) if candidate_mask is None else candidate_mask.bool()
            candidates = self.encode_candidates(candidate_ids, kept, candidate_external)
            same = None
            if self.config.skip_duplicates:
                visible = candidate_ids.masked_fill(~kept, -1)
                same = (visible[:, None] == visible[None]).all(-1)
            config = self.config
            losses["response"] = in_batch_loss(
                contexts, candidates, config.scale, same=same, both_ways=config.both_ways
            )
            counts["response"] = torch.tensor(len(contexts), device=contexts.device)
        logits = None if self.emotion is None else self.emotion(contexts)
        if logits is not None and emotion_labels is not None:
            n = emotion_labels.ne(IGNORED).sum()
            total = F.cross_entropy(logits, emotion_labels, ignore_index=IGNORED, reduction="sum")
            losses["emotion"], counts["emotion"] = total / n.clamp_min(1), n
        return RetrievalOutput(
            loss=total_of(losses),
            losses=losses or None,
            counts=counts or None,
            context_vectors=contexts,
            candidate_vectors=candidates,
            emotion_logits=logits,
        )


class TextReader:
    """Turns and replies to pieces, as one model reads them.

    Args:
        tokenizer: The model's pieces.
        config: The model's configuration.
    """

    def __init__(self, tokenizer: DialogueTokenizer, config: RetrievalConfig) -> None:
        self.tokenizer = tokenizer
        self.config = config

    def contexts(
        self, contexts: Sequence[Sequence[str]], prefixes: Sequence[Sequence[int]] | None = None
    ) -> list[list[int]]:
        """``u_1 SEP u_2 ...`` of the last ``max_turns`` turns, prefix in front.

        Args:
            contexts: The texts of each context's turns, newest last.
            prefixes: Pieces of the labels of each context, which do not count against ``max_pieces``.
        """
        recent = [list(turns)[-self.config.max_turns :] for turns in contexts]
        texts = list(dict.fromkeys(text for turns in recent for text in turns))
        pieces = dict(zip(texts, (cut.ids for cut in self.tokenizer.encode_batch(texts)), strict=True))
        joined = []
        for turns in recent:
            ids: list[int] = []
            for i, text in enumerate(turns):
                ids += [*([self.tokenizer.sep_id] if i else []), *pieces[text]]
            joined.append(ids)
        return self._finish(joined, prefixes, self.config.truncate)

    def replies(self, texts: Sequence[str], prefixes: Sequence[Sequence[int]] | None = None) -> list[list[int]]:
        """Pieces of replies, of a long one the first; ``prefixes`` as for contexts."""
        return self._finish([cut.ids for cut in self.tokenizer.encode_batch(texts)], prefixes, "newest")

    def _finish(
        self, rows: list[list[int]], prefixes: Sequence[Sequence[int]] | None, truncate: str
    ) -> list[list[int]]:
        room = self.config.max_pieces - 2 * self.config.marks
        opening, closing = ([[self.tokenizer.cls_id], [self.tokenizer.sep_id]]) if self.config.marks else ([], [])
        out = []
        for i, row in enumerate(rows):
            kept = row[:room] if truncate == "newest" else row[-room:]
            prefix = [] if prefixes is None else prefixes[i]
            out.append([*opening, *prefix, *kept, *closing] or [self.tokenizer.unk_id])
        return out

    def tensors(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Padded pieces and their mask (True = keep). Shape of both: ``(batch, longest)``."""
        ids = pad_rows(rows, self.tokenizer.pad_id)
        lengths = torch.tensor([len(row) for row in rows])
        return ids, torch.arange(ids.shape[1]) < lengths[:, None]


AutoConfig.register(RetrievalConfig.model_type, RetrievalConfig, exist_ok=True)
AutoModel.register(RetrievalConfig, RashkinRetrieval, exist_ok=True)
