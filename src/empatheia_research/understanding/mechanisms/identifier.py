"""Mechanisms of empathy in a reply: emotional reaction, interpretation, exploration; how strongly, and where.

EPITOME's bi-encoder with attention (Sharma et al. 2020): a seeker encoder and a response encoder, the
response attends to the seeker, one head gives the level (0 none, 1 weak, 2 strong) from the first state, one marks the
pieces that show it. Published: one model a mechanism, a frozen seeker encoder. Ours besides: one model for all three
mechanisms with shared encoders, and one encoder for both texts. What the released code gets wrong is right here: the
attention does not see padding (E7), labels follow the tokenizer's offsets (E2), rationales are no patterns (E1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel
from transformers import initialization as init

from empatheia.errors import ConfigError
from empatheia.records.analysis import Mechanism
from empatheia.records.dialogue import Dialogue
from empatheia.taxonomy import MECHANISMS
from empatheia.text.batching import BucketBatchSampler
from empatheia_research.layers.aligned import AlignedModel
from empatheia_research.understanding.encoders import build_encoder, plain_encoder, start_from
from empatheia_research.understanding.heads import Heads, HeadsOutput, HeadSpec, class_loss, supervised
from empatheia_research.understanding.mechanisms.config import N_LEVELS, MechanismIdentifierConfig
from empatheia_research.understanding.mechanisms.pairs import Identified, Pair, PairReader, answered_turns


@dataclass
class MechanismOutput(HeadsOutput):
    """What one pass gives.

    Attributes:
        level_logits: Shape: (batch, n_mechanisms, 3).
        rationale_logits: "Not part", "part"; what stands at padding means nothing.
            Shape: (batch, n_mechanisms, response, 2).
    """

    level_logits: Tensor | None = None
    rationale_logits: Tensor | None = None


def _level_loss(model: Any, logits: Tensor, target: Tensor) -> Tensor:
    """Over all mechanisms, each with its own weights."""
    weights = model.config.level_weights
    if not isinstance(weights, dict):
        return class_loss(logits, target, weights)
    total = logits.new_zeros(())
    for m, name in enumerate(model.config.mechanisms):
        count = supervised(target[:, m])
        total = total + class_loss(logits[:, m], target[:, m], weights.get(name)) / count.clamp(min=1) * count
    return total


class MechanismHead(nn.Module):
    """Attention to the seeker and the two heads of one mechanism.

    ``H = H_R + dropout(attend(H_R, H_S))``; levels from ``W_2 relu(W_1 H[0])``, rationale pieces from ``W H``.
    """

    def __init__(self, width: int, config: MechanismIdentifierConfig) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, config.n_heads, config.attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(config.dropout)
        self.level = nn.Sequential(
            nn.Dropout(config.dropout),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(width, N_LEVELS),
        )
        self.rationale = nn.Linear(width, 2)

    def forward(self, response: Tensor, seeker: Tensor, seeker_keep: Tensor | None) -> tuple[Tensor, Tensor]:
        """Level logits (batch, 3) and rationale logits (batch, response, 2).

        Args:
            response: States. Shape: (batch, response, width).
            seeker: States. Shape: (batch, seeker, width).
            seeker_keep: False = padding; None attends to everything. Shape: (batch, seeker).
        """
        hidden = None if seeker_keep is None else ~seeker_keep
        attended, _ = self.attention(response, seeker, seeker, key_padding_mask=hidden, need_weights=False)
        states = response + self.dropout(attended)  # (batch, response, width)
        return self.level(states[:, 0]), self.rationale(self.dropout(states))


class MechanismIdentifier(Heads, AlignedModel):
    """Levels and rationales of one or more mechanisms for pairs of a seeker's text and a response.

    Args:
        config: Sizes and form; ``config.encoder_config`` says which encoders to build (no weights are loaded).
    """

    config_class = MechanismIdentifierConfig
    base_model_prefix = ""
    main_input_name = "response_ids"
    accepts_loss_kwargs = False
    _supports_sdpa = True
    config: MechanismIdentifierConfig
    specs = (
        HeadSpec("level", "labels", _level_loss),
        HeadSpec("rationale", "rationale_labels", lambda model, logits, target: class_loss(logits, target)),
    )
    reader_class = PairReader
    recipe = "recipes/epitome/shared.yaml"
    features: ClassVar[tuple[str, ...]] = (
        "seeker_ids",
        "seeker_mask",
        "response_ids",
        "response_mask",
        "labels",
        "rationale_labels",
    )

    def __init__(self, config: MechanismIdentifierConfig) -> None:
        super().__init__(config)
        self.response_encoder = build_encoder(config.encoder_config, "mechanism_identifier")
        if not config.tie_encoders:
            self.seeker_encoder = build_encoder(config.encoder_config, "mechanism_identifier")
        width = self.response_encoder.config.hidden_size
        if width % config.n_heads:
            raise ConfigError(f"mechanism_identifier: n_heads is {config.n_heads}; accepted: a divisor of {width}.")
        self.pad_id = getattr(self.response_encoder.config, "pad_token_id", None) or 0
        self.heads = nn.ModuleList(MechanismHead(width, config) for _ in config.mechanisms)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Normal weights (standard deviation 0.02) and zero biases, the attention's joint projection too."""
        super()._init_weights(module)
        if isinstance(module, nn.MultiheadAttention):
            init.normal_(module.in_proj_weight, mean=0.0, std=0.02)
            init.zeros_(module.in_proj_bias)

    def get_input_embeddings(self) -> nn.Module:
        """The response encoder's word table."""
        return self.response_encoder.get_input_embeddings()

    @classmethod
    def on_encoder(cls, source: PreTrainedModel, **fields: Any) -> Self:
        """A model whose encoders both start from a pretrained one, with fresh heads; errors as the base's."""
        source = plain_encoder(source)
        model = cls(MechanismIdentifierConfig(encoder_config=source.config, **fields))
        start_from(model.response_encoder, source)
        if not model.config.tie_encoders:
            start_from(model.seeker_encoder, source)
        return model

    def forward(
        self,
        seeker_ids: Tensor,
        seeker_mask: Tensor,
        response_ids: Tensor,
        response_mask: Tensor,
        labels: Tensor | None = None,
        rationale_labels: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> MechanismOutput:
        """Scores pairs; content under a false mask does not matter (unless ``padding`` is ``repo``).

        Args:
            seeker_ids: Pieces of what is answered. Shape: (batch, seeker), int64.
            seeker_mask: True = keep. Shape: (batch, seeker).
            response_ids: Pieces of the response. Shape: (batch, response), int64.
            response_mask: True = keep. Shape: (batch, response).
            labels: Levels 0-2, -100 = not supervised. Shape: (batch, n_mechanisms), int64.
            rationale_labels: 1 part of a rationale, 0 not, -100 not supervised.
                Shape: (batch, n_mechanisms, response), int64.
            return_dict: Accepted for the Trainer; the answer is always a ``MechanismOutput``.
        """
        seeker = self._read_seeker(seeker_ids, seeker_mask.bool())  # (batch, seeker, width)
        response = self._encode(self.response_encoder, response_ids, response_mask.bool())  # (batch, response, width)
        keep = seeker_mask.bool() if self.config.padding == "masked" else None
        scored = [head(response, seeker, keep) for head in self.heads]
        level_logits = torch.stack([levels for levels, _ in scored], dim=1)  # (batch, n_mechanisms, 3)
        rationale_logits = torch.stack([pieces for _, pieces in scored], dim=1)
        learnt = self.learn(
            {"level": level_logits, "rationale": rationale_logits},
            {"labels": labels, "rationale_labels": rationale_labels},
        )
        return MechanismOutput(level_logits=level_logits, rationale_logits=rationale_logits, **learnt)

    def _read_seeker(self, ids: Tensor, keep: Tensor) -> Tensor:
        if self.config.tie_encoders:
            return self._encode(self.response_encoder, ids, keep)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.config.freeze_seeker):
            return self._encode(self.seeker_encoder, ids, keep)

    def _encode(self, encoder: PreTrainedModel, ids: Tensor, keep: Tensor) -> Tensor:
        ids = ids.masked_fill(~keep, self.pad_id)
        return encoder(input_ids=ids, attention_mask=keep.long()).last_hidden_state


@torch.inference_mode()
def identify(
    model: MechanismIdentifier, reader: PairReader, pairs: Sequence[Pair], batch_size: int = 32
) -> list[tuple[Identified, ...]]:
    """One answer a mechanism of the model for each pair, in order; gold labels are not read.

    A response without any text is level 0 with certainty (E8).

    Args:
        model: Put into evaluation mode.
        reader: The model's own.
        pairs: Responses and what they answer.
        batch_size: Most pairs in one pass.
    """
    model.eval()
    names = model.config.mechanisms
    out: list[tuple[Identified, ...]] = [tuple(Identified(name, (1.0, 0.0, 0.0), (), ()) for name in names)] * len(
        pairs
    )
    asked = [i for i, pair in enumerate(pairs) if pair.response.strip()]
    rows = reader.encode([Pair(pairs[i].id, pairs[i].seeker, pairs[i].response) for i in asked])
    lengths = [len(row["response_ids"]) for row in rows]
    for batch in BucketBatchSampler(lengths, batch_size, shuffle=False):
        tensors = {key: value.to(model.device) for key, value in reader.collate([rows[i] for i in batch]).items()}
        output = model(**tensors)
        levels = output.level_logits.double().softmax(-1).tolist()
        pieces = output.rationale_logits.double().softmax(-1)[..., 1].tolist()
        for row, i in enumerate(batch):
            offsets = tuple(rows[i]["offsets"])
            out[asked[i]] = tuple(
                Identified(
                    name,
                    (levels[row][m][0], levels[row][m][1], levels[row][m][2]),
                    tuple(p if a < b else 0.0 for p, (a, b) in zip(pieces[row][m], offsets, strict=False)),
                    offsets,
                )
                for m, name in enumerate(names)
            )
    return out


class MechanismsOfTurns:
    """Part ``mechanisms``: levels and rationales of each listener turn that answers a speaker turn.

    The seeker's text is the last speaker turn before it, alone. Trained on peer support for mental health, where
    posts are longer than turns of a chat: on short replies ``interpretation`` comes out as "none" too often.

    Args:
        models: Models with their readers; together they know each mechanism at most once.
        name: For records.

    Raises:
        ConfigError: Two models know the same mechanism.
    """

    part: str = "mechanisms"

    def __init__(self, models: Sequence[tuple[MechanismIdentifier, PairReader]], name: str = "mechanisms") -> None:
        known = [mechanism for model, _ in models for mechanism in model.config.mechanisms]
        if twice := [mechanism for mechanism in MECHANISMS if known.count(mechanism) > 1]:
            raise ConfigError(f"{len(models)} models for mechanisms: {twice[0]!r} is in two of them; give it once.")
        self.models = [(model.eval(), reader) for model, reader in models]
        self.name = name
        self.mechanisms = tuple(mechanism for mechanism in MECHANISMS if mechanism in known)

    @classmethod
    def load(
        cls, folder: str | Path | Iterable[str | Path], device: str | torch.device | None = None
    ) -> MechanismsOfTurns:
        """Reads one folder with a shared model, or several with one mechanism each.

        Args:
            folder: Folder or name, several joined by commas, or a list of them.
            device: Where the models run; None = the processor.

        Raises:
            MissingResourceError: There is no such folder.
            CheckpointError: A folder holds no mechanism model, or lacks weights.
            ConfigError: Two models know the same mechanism.
        """
        if isinstance(folder, str):
            folders: list[str | Path] = [part.strip() for part in folder.split(",") if part.strip()]
        else:
            folders = [folder] if isinstance(folder, Path) else list(folder)
        found = [MechanismIdentifier.load(path, device) for path in folders]
        return cls([(model, reader) for model, reader, _ in found], " + ".join(name for *_, name in found))

    def annotate(
        self, dialogues: Sequence[Dialogue], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> list[tuple[Mechanism, ...]]:
        """Records by turn, and within a turn in the order of the taxonomy.

        Args:
            dialogues: Conversations; roles matter.
            batch_size: Most replies in one forward pass.
            progress: Called with the number of conversations just finished.
        """
        out: list[tuple[Mechanism, ...]] = []
        for start in range(0, len(dialogues), 512):
            group = dialogues[start : start + 512]
            places = [
                (d, reply, asked) for d, dialogue in enumerate(group) for reply, asked in answered_turns(dialogue)
            ]
            pairs = [Pair("", group[d].turns[asked].text, group[d].turns[reply].text) for d, reply, asked in places]
            said: list[list[Identified]] = [[] for _ in pairs]
            for model, reader in self.models:
                for i, found in enumerate(identify(model, reader, pairs, batch_size)):
                    said[i] += found
            records: list[list[Mechanism]] = [[] for _ in group]
            for (d, reply, _), pair, answers in zip(places, pairs, said, strict=True):
                for answer in sorted(answers, key=lambda a: MECHANISMS.index(a.mechanism)):
                    spans = answer.rationales(pair.response, reply)
                    record = Mechanism(reply, answer.mechanism, answer.level, answer.probabilities, spans)
                    records[d].append(record)
            out += [tuple(own) for own in records]
            if progress is not None:
                progress(len(group))
        return out


AutoConfig.register(MechanismIdentifierConfig.model_type, MechanismIdentifierConfig, exist_ok=True)
AutoModel.register(MechanismIdentifierConfig, MechanismIdentifier, exist_ok=True)
