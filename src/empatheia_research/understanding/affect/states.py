"""A second look at what is felt: states of a small frozen language model, and a small network that reads them.

A language model has read more of people than a sentence encoder has, and errs elsewhere. It is shown the turns as a
script and a last line that asks for the feeling::

    Speaker: ...
    Listener: ...
    Speaker: ...
    In one word, the speaker feels

Of some of its blocks the states of that line's last piece and the mean state of the newest turn go, standardised, into
one hidden layer; two heads say the emotion and the side. Only this network learns. :class:`JoinedAffect` mixes both
looks. No published system; the form of the question is that of probing by prompts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.numpy import save_file
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.giving_way import give_way
from empatheia.perceive.affect import Affect, Perceiving, mass_of_sides
from empatheia.records.dialogue import Turn
from empatheia.resources import cache_dir, installed_model, resolve_model, resolve_weights
from empatheia.resources.arrays import load_arrays
from empatheia.resources.quiet import quiet_loading
from empatheia.taxonomy import SIDES
from empatheia.text.noise import straight, unshouted
from empatheia.text.readable import SURROGATES
from empatheia.writing import whole_file
from empatheia_research.layers.aligned import AlignedModel
from empatheia_research.pretrained import load_pretrained
from empatheia_research.understanding.affect.reader import AffectOutput, checksum_of, read_facts, soft_loss
from empatheia_research.understanding.labels.classifier import Row, Text, batches_of, label_fields, row_lengths

SECOND_LOOK = "second_look"
"""By which name it is looked for."""
QUESTION = "\nIn one word, the speaker feels"
BATCH_PIECES = 1024
_NAMES = {"speaker": "Speaker", "listener": "Listener"}
_SPREAD = 6.0
"""Standardised states are cut there: a few of a language model's are hundreds of deviations away."""


class AffectStatesConfig(PreTrainedConfig):
    """What is read of which language model, and how it is scored.

    Args:
        labels: Names of the emotions by index; sets ``id2label``.
        base: Folder, GGUF file or name of the language model.
        base_checksum: SHA-256 of its weights' file.
        base_width: Of its states.
        blocks: After which of its blocks states are taken, counted from 1; the later ones are not run.
        hidden: Width of the hidden layer.
        max_pieces: Most pieces of the turns; older turns are cut first, then the newest one's end.
        dropout: On the states and the hidden layer, in [0, 1).
        softmax_temperature: Emotion logits are divided by it; above 0. Found on validation data after training.
        side_temperature: Likewise for the side.
        share: Of the mixture with another perception, in [0, 1]: ``p ~ first^(1 - share) second^share``.
        joined_temperature: Of the mixture; above 0.
    """

    model_type = "affect_states"

    def __init__(
        self,
        labels: Sequence[str] | None = None,
        base: str = "",
        base_checksum: str = "",
        base_width: int = 1,
        blocks: Sequence[int] = (16, 20, 24),
        hidden: int = 512,
        max_pieces: int = 200,
        dropout: float = 0.5,
        softmax_temperature: float = 1.0,
        side_temperature: float = 1.0,
        share: float = 0.0,
        joined_temperature: float = 1.0,
        **kwargs: Any,
    ) -> None:
        for name, number, is_fine, accepted in (
            ("blocks", list(blocks), len(blocks) > 0 and min(blocks) > 0, "numbers from 1 on"),
            ("hidden", hidden, hidden > 0, "1 or more"),
            ("max_pieces", max_pieces, max_pieces >= 8, "8 or more"),
            ("dropout", dropout, 0 <= dropout < 1, "from 0 to below 1"),
            ("share", share, 0 <= share <= 1, "from 0 to 1"),
            ("softmax_temperature", softmax_temperature, softmax_temperature > 0, "above 0"),
            ("side_temperature", side_temperature, side_temperature > 0, "above 0"),
            ("joined_temperature", joined_temperature, joined_temperature > 0, "above 0"),
        ):
            if not is_fine:
                raise ConfigError(f"affect_states: {name} is {number}; accepted: {accepted}.")
        if labels is not None:
            kwargs |= label_fields(labels, "affect_states")
        self.base = base
        self.base_checksum = base_checksum
        self.base_width = base_width
        self.blocks = list(blocks)
        self.hidden = hidden
        self.max_pieces = max_pieces
        self.dropout = dropout
        self.softmax_temperature = softmax_temperature
        self.side_temperature = side_temperature
        self.share = share
        self.joined_temperature = joined_temperature
        super().__init__(**kwargs)

    @property
    def n_states(self) -> int:
        """Numbers that are read of one conversation: two states of each block."""
        return 2 * len(self.blocks) * self.base_width


class AffectStates(AlignedModel):
    """One hidden layer on standardised states, and two heads.

    Args:
        config: Sizes and labels.
    """

    config_class = AffectStatesConfig
    config: AffectStatesConfig
    main_input_name = "states"
    accepts_loss_kwargs = False
    features: ClassVar[tuple[str, ...]] = ("states", "emotions", "sides")
    mean: Tensor
    deviation: Tensor

    def __init__(self, config: AffectStatesConfig) -> None:
        super().__init__(config)
        self.register_buffer("mean", torch.zeros(config.n_states))
        self.register_buffer("deviation", torch.ones(config.n_states))
        self.drop = nn.Dropout(config.dropout)
        self.hidden = nn.Linear(config.n_states, config.hidden)
        self.emotion_head = nn.Linear(config.hidden, int(config.num_labels or 2))
        self.side_head = nn.Linear(config.hidden, len(SIDES))
        self.post_init()

    def standardise(self, states: np.ndarray) -> None:
        """Takes mean and deviation of each number from what is learnt from. Shape: (items, n_states)."""
        every = torch.from_numpy(states.astype(np.float32))
        self.mean.copy_(every.mean(0))
        self.deviation.copy_(every.std(0, unbiased=False) + 1e-3)

    def forward(
        self,
        states: Tensor,
        emotions: Tensor | None = None,
        sides: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> AffectOutput:
        """Scores emotions and sides.

        Args:
            states: From :meth:`StatePieces.encode`. Shape: (batch, n_states).
            emotions: Target distributions; a row that sums to 0 is not supervised. Shape: (batch, 32).
            sides: Likewise. Shape: (batch, 3).
            return_dict: Accepted for the Trainer; the answer is always an ``AffectOutput``.
        """
        standard = ((states - self.mean) / self.deviation).clamp(-_SPREAD, _SPREAD)
        found = self.drop(F.gelu(self.hidden(self.drop(standard))))  # (batch, hidden)
        logits = self.emotion_head(found) / self.config.softmax_temperature
        side_logits = self.side_head(found) / self.config.side_temperature
        losses: dict[str, Tensor] = {}
        counts: dict[str, Tensor] = {}
        if emotions is not None:
            losses["emotion"], counts["emotion"] = soft_loss(logits, emotions)
        if sides is not None:
            losses["side"], counts["side"] = soft_loss(side_logits, sides)
        total = torch.stack(list(losses.values())).sum() if losses else None
        return AffectOutput(total, losses or None, counts or None, logits, side_logits)

    @classmethod
    def count_items(cls, batch: Mapping[str, Tensor], config: AffectStatesConfig) -> dict[str, Tensor]:
        """Over how many items each loss of ``batch`` is a mean, without running the model."""
        keys = {"emotion": "emotions", "side": "sides"}
        return {name: batch[key].sum(-1).gt(0).sum() for name, key in keys.items() if key in batch}


class StatePieces:
    """Conversations to states of the frozen language model.

    Args:
        base: The language model without its output layer; blocks behind the last one that is read are taken away.
        tokenizer: Its tokenizer.
        config: What is read.
        cache: Folder in which states are kept, so that a stopped run does not compute them anew; None = nowhere.

    Raises:
        ConfigError: The model has fewer blocks than are to be read.
    """

    def __init__(
        self,
        base: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        config: AffectStatesConfig,
        cache: Path | None = None,
    ) -> None:
        blocks = cast(nn.ModuleList, base.layers)  # of a model of transformers without its output layer
        if max(config.blocks) > len(blocks):
            raise ConfigError(
                f"affect_states: block {max(config.blocks)} is to be read; {config.base} has {len(blocks)}."
            )
        base.layers = blocks[: max(config.blocks)]
        base.norm = nn.Identity()
        self.base, self.tokenizer, self.config, self.cache = base.eval().requires_grad_(False), tokenizer, config, cache
        self._question = self._ids(QUESTION)

    @classmethod
    def load(cls, config: AffectStatesConfig, cache: Path | None = None) -> StatePieces:
        """With the language model that ``config`` names.

        Raises:
            MissingResourceError: The model is not here; says how to get it.
            MissingDependencyError: Its file is GGUF and the package gguf is not installed.
            CheckpointError: It is another release than was learnt with.
        """
        if (found := weights_checksum(config.base)) != config.base_checksum:
            raise CheckpointError(
                f"the second look belongs to weights of {config.base!r} with the checksum"
                f" {config.base_checksum[:12]}..., but those here have {found[:12]}.... Install the release it was made"
                " with, or train again."
            )
        model, tokenizer = _base_of(config)
        return cls(model, tokenizer, config, cache)

    def encode(self, texts: Sequence[Text], progress: Callable[[int], None] | None = None) -> list[Row]:
        """One row a conversation, with ``states`` (n_states,) in half precision and ``input_ids``.

        Args:
            texts: Conversations, the newest turn last, or single texts.
            progress: Called with the number of conversations just read.
        """
        rows = [self._row((Turn("speaker", text),) if isinstance(text, str) else tuple(text)) for text in texts]
        for start in range(0, len(rows), 512):  # each stretch is kept as soon as it is known
            self._fill(rows[start : start + 512], progress)
        return rows

    def _row(self, turns: Sequence[Turn]) -> Row:
        script = [f"{_NAMES[turn.role]}: {unshouted(straight(SURROGATES.sub(' ', turn.text)))}" for turn in turns]
        newest = self._ids(script[-1])[: self.config.max_pieces]
        room = self.config.max_pieces - len(newest)
        before = self._ids("\n".join(script[:-1]) + "\n") if len(script) > 1 and room else []
        before = before[max(0, len(before) - room) :]
        return {"input_ids": [*before, *newest, *self._question], "newest": (len(before), len(before) + len(newest))}

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]  # pyright: ignore

    def _fill(self, rows: list[Row], progress: Callable[[int], None] | None) -> None:
        path = None
        if self.cache is not None:
            told = [self.config.base_checksum, self.config.blocks, [(row["input_ids"], row["newest"]) for row in rows]]
            path = self.cache / f"{hashlib.sha256(json.dumps(told).encode()).hexdigest()[:24]}.safetensors"
        states = None
        if path is not None and path.is_file():
            with contextlib.suppress(CheckpointError):  # damaged: computed anew
                states = load_arrays(path)["states"]
        if states is None:
            states = self._states(rows, progress)
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                with whole_file(path) as part:
                    save_file({"states": states}, part)
        for row, own in zip(rows, states, strict=True):
            row["states"] = own

    @torch.inference_mode()
    def _states(self, rows: Sequence[Row], progress: Callable[[int], None] | None) -> np.ndarray:
        out = np.zeros((len(rows), self.config.n_states), np.float16)
        device = next(self.base.parameters()).device
        for indices in batches_of(row_lengths(rows), None, BATCH_PIECES):
            give_way()
            lengths = [len(rows[i]["input_ids"]) for i in indices]
            ids = torch.zeros(len(indices), max(lengths), dtype=torch.long)
            for place, i in enumerate(indices):
                ids[place, : lengths[place]] = torch.tensor(rows[i]["input_ids"])
            keep = torch.arange(ids.shape[1]) < torch.tensor(lengths)[:, None]  # padding stands behind
            found = self.base(
                input_ids=ids.to(device), attention_mask=keep.long().to(device), output_hidden_states=True
            ).hidden_states
            for place, i in enumerate(indices):
                first, end = rows[i]["newest"]
                read = [found[block][place].float() for block in self.config.blocks]
                own = [part for states in read for part in (states[lengths[place] - 1], states[first:end].mean(0))]
                out[i] = torch.cat(own).clamp(-60000, 60000).cpu().numpy()
            if progress is not None:
                progress(len(indices))
        return out

    def collate(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """A batch of what ``forward`` names; targets where the rows have them."""
        batch = {"states": torch.from_numpy(np.stack([row["states"] for row in rows]).astype(np.float32))}
        for key in ("emotions", "sides"):
            if key in rows[0]:
                batch[key] = torch.tensor([row[key] for row in rows], dtype=torch.float32)
        return batch


class StatesOfTurns:
    """A loaded second look that reads conversations; the same answer alone or among others.

    Args:
        model: Put into evaluation mode while it reads.
        reader: Made for it.
        name: For records.
    """

    def __init__(self, model: AffectStates, reader: StatePieces, name: str = "states") -> None:
        self.model, self.reader, self.name = model, reader, name

    @classmethod
    def load(cls, folder: str | Path) -> StatesOfTurns:
        """From a model folder or name.

        Raises:
            MissingResourceError: The folder or its language model is not here.
            MissingDependencyError: The language model's file needs a package that is not installed.
            CheckpointError: The folder is incomplete, or belongs to another language model.
        """
        path = resolve_model(folder)
        with quiet_loading():
            model = load_pretrained(AffectStates, path, dtype=torch.float32)
        return cls(model.eval(), StatePieces.load(model.config), str(read_facts(path).get("name", path.name)))

    @torch.inference_mode()
    def probabilities(
        self, conversations: Sequence[Sequence[Turn]], progress: Callable[[int], None] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of the emotions (conversations, 32) and of the sides (conversations, 3).

        Args:
            conversations: Turns, the newest last.
            progress: Called with the number of conversations just read.
        """
        was_training = self.model.training
        self.model.eval()
        rows = self.reader.encode(conversations, progress)
        emotions, sides = [], []
        for row in rows:  # one by one: so it says the same alone and among others
            out = self.model(**self.reader.collate([{"states": row["states"]}]))
            emotions.append(out.logits.softmax(-1))
            sides.append(out.side_logits.softmax(-1))
        self.model.train(was_training)
        width = int(self.model.config.num_labels or 2)
        if not rows:
            return np.zeros((0, width)), np.zeros((0, len(SIDES)))
        return torch.cat(emotions).numpy(), torch.cat(sides).numpy()

    def read(
        self,
        conversations: Sequence[Sequence[Turn]],
        progress: Callable[[int], None] | None = None,
        *,
        spans: bool = False,
    ) -> list[Affect]:
        """What is felt at the last turn of each conversation; no words.

        Args:
            conversations: Turns, the newest last.
            progress: Called with the number of conversations just read.
            spans: Of words, which it does not score.
        """
        emotions, sides = self.probabilities(conversations, progress)
        return [Affect(one, side, (), (), 1.0) for one, side in zip(emotions, sides, strict=True)]


class JoinedAffect:
    """Two looks at a conversation: emotions are mixed; the side is the first one's and that of the mixed emotions.

    Cause words are the first one's.

    Args:
        first: The perception with sides and words, by torch or by ONNX Runtime.
        second: Its ``share`` and ``joined_temperature`` say how it is mixed in.
    """

    def __init__(self, first: Perceiving, second: StatesOfTurns) -> None:
        self.first, self.second = first, second
        self.name = f"{first.name} and {second.name}"

    @classmethod
    def beside(cls, first: Perceiving, name: str = SECOND_LOOK) -> JoinedAffect:
        """``first`` joined by the installed second look.

        Args:
            first: A perception.
            name: Of an installed or bundled model.

        Raises:
            MissingResourceError: That model, or the language model it reads, is not here.
            MissingDependencyError: Its file needs a package that is not installed.
            CheckpointError: It belongs to another release of its language model, or its folder is damaged.
        """
        if (folder := installed_model(name)) is None:
            raise MissingResourceError(
                f"perception: joined needs the model {name!r}, which is not installed. Get it with:"
                f" empatheia models get {name}; or leave the setting out."
            )
        return cls(first, StatesOfTurns.load(folder))

    def read(
        self,
        conversations: Sequence[Sequence[Turn]],
        progress: Callable[[int], None] | None = None,
        *,
        spans: bool = False,
    ) -> list[Affect]:
        """See :class:`empatheia.perceive.affect.Perceiving`."""
        found = self.first.read(conversations, spans=spans)
        emotions, _ = self.second.probabilities(conversations, progress)
        config = self.second.model.config
        mixed = joined(np.stack([one.emotions for one in found]), emotions, config.share) if found else emotions
        mixed = tempered(mixed, config.joined_temperature)
        poles = by_both([one.sides for one in found], mixed) if found else mixed
        return [replace(one, emotions=own, sides=sides) for one, own, sides in zip(found, mixed, poles, strict=True)]


def by_both(sides: Sequence[np.ndarray], emotions: np.ndarray) -> np.ndarray:
    """Sides of which pleasant and unpleasant are in the ratio of the geometric mean of two opinions.

    The one is the given sides, the other the mass of the emotions whose side is plain. Either alone
    errs elsewhere; their weights, fitted on validation data, were near equal. Mixed keeps its probability.

    Args:
        sides: Probabilities of pleasant, unpleasant, mixed. Shape: (items, 3).
        emotions: Probabilities. Shape: (items, 32).

    Returns:
        Shape: (items, 3).
    """
    given = np.stack(list(sides))
    poles = joined(given[:, :2], mass_of_sides(emotions), 0.5)
    return np.concatenate([poles * (1 - given[:, 2:]), given[:, 2:]], axis=1).astype(np.float32)


def joined(first: np.ndarray, second: np.ndarray, share: float) -> np.ndarray:
    """``p ~ first^(1 - share) second^share``, the weighted geometric mean. Shapes: (items, classes)."""
    logs = (1 - share) * np.log(np.clip(first, 1e-9, None)) + share * np.log(np.clip(second, 1e-9, None))
    return tempered_logs(logs)


def tempered(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """``p^(1 / temperature)``, normalised. Shape: (items, classes)."""
    return tempered_logs(np.log(np.clip(probabilities, 1e-9, None)) / temperature)


def tempered_logs(logs: np.ndarray) -> np.ndarray:
    """Softmax of log-probabilities. Shape: (items, classes)."""
    raised = np.exp(logs - logs.max(-1, keepdims=True))
    return (raised / raised.sum(-1, keepdims=True)).astype(np.float32)


def _base_of(config: AffectStatesConfig) -> tuple[Any, PreTrainedTokenizerBase]:
    """The language model without its output layer and the blocks that are not read, and its tokenizer.

    Expanding a GGUF file takes many seconds, so what comes of it is kept in the cache in half precision; weights are
    rounded to that wherever they come from, so the states are the same either way.
    """
    kept = cache_dir() / "bases" / f"{config.base_checksum[:16]}-{max(config.blocks)}"
    problem = f"{config.base} cannot be loaded as a language model"
    if not (kept / "config.json").is_file():
        folder, file = resolve_weights(config.base)
        told: dict[str, Any] = {} if file is None else {"gguf_file": file}
        with quiet_loading(expands=file is not None):
            whole = load_pretrained(AutoModelForCausalLM, folder, problem, dtype=torch.float32, **told)
            tokenizer = load_pretrained(AutoTokenizer, folder, f"the tokenizer of {config.base} cannot be read", **told)
        model = whole.model
        if max(config.blocks) <= len(model.layers):
            model.layers = model.layers[: max(config.blocks)]
            model.config.num_hidden_layers = len(model.layers)
        model.half()
        if file is None or not _keep(model, tokenizer, kept):
            return model.float(), tokenizer
    with quiet_loading():
        model = load_pretrained(AutoModel, kept, problem, dtype=torch.float32)
        return model, load_pretrained(AutoTokenizer, kept, problem)


def _keep(model: Any, tokenizer: PreTrainedTokenizerBase, kept: Path) -> bool:
    """Writes both into a folder that is there whole or not at all; False where the cache cannot be written."""
    part = kept.with_name(f"{kept.name}.{os.getpid()}.part")
    try:
        with quiet_loading():
            model.save_pretrained(part)
            tokenizer.save_pretrained(part)
        with contextlib.suppress(OSError):  # another process was sooner
            part.rename(kept)
    except (OSError, SafetensorError, RuntimeError):  # a full disk, a cache that may not be written
        return False
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return (kept / "config.json").is_file()


def weights_checksum(base: str) -> str:
    """SHA-256 of a language model's file of weights.

    Raises:
        MissingResourceError: It is not here.
        CheckpointError: Its folder has no file of weights.
    """
    folder, file = resolve_weights(base)
    return checksum_of(folder / (file or "model.safetensors"))
