"""The second classifier of the check, in training: low-rank updates of the sentence encoder and two heads.

It reads the normalised words of a text, so no spelling hides them, and says how probable a risk and a crisis are; the
mean of its logits and those of the small classifier decides, which says all else.
``python -m empatheia_research.care.encoder`` trains it on the texts of :mod:`empatheia_research.care.training` and
writes ``data/encoder.safetensors``; it needs the extra ``encoder``.
``empatheia package listener_as_trained FOLDER --onnx mixed`` then writes the file that the check reads.
"""

from __future__ import annotations

import json
import logging
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from empatheia.care.classifier import CRISIS, RISK
from empatheia.care.danger import joined_words, joint
from empatheia.care.labelled import LabelledText, with_typos
from empatheia.care.normalising import tokens_of
from empatheia.errors import CheckpointError
from empatheia.perceive.pieces import alike
from empatheia.reading import parse_json
from empatheia.resources import resolve_model
from empatheia.resources.arrays import load_described
from empatheia.resources.quiet import quiet_loading
from empatheia_research.layers.low_rank import add_low_rank, merge
from empatheia_research.pretrained import load_pretrained, load_weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

UPDATES = Path(__file__).parent / "data" / "encoder.safetensors"
BASE = "minilm"
RANK, SCALE = 32, 64.0
MAX_PIECES = 96
EPOCHS, BATCH, RATE = 4, 32, 1e-3
CORPUS_TURNS, LEFT_OUT = 3000, 2500
"""Turns of the everyday corpus in training, and as many of EmpatheticDialogues; others of both measure false alarms."""
PART = 0
"""Of the parts, the one that is left out while the limits are chosen; what is shipped learns from all."""
TYPO_SHARE = 0.4
READ_TOGETHER = 128
"""Words of the texts that are read in one pass."""
SMOOTHING = 0.04
"""Share of a target that goes to the other label."""
_LOG = logging.getLogger(__name__)


class EncoderClassifier(nn.Module):
    """The encoder with its updates and two heads.

    Args:
        encoder: Of transformers.
        tokenizer: Its own.
        thresholds: From which probability ``risk`` and ``crisis`` count.
    """

    def __init__(
        self, encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, thresholds: dict[str, float]
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(encoder.config.hidden_size, 2)
        self.tokenizer = tokenizer
        self.thresholds = thresholds
        self.notes: dict[str, object] = {}

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Logits of risk and crisis.

        Args:
            texts: As :func:`plain` makes them.

        Returns:
            Shape: ``(len(texts), 2)``.
        """
        batch = self.tokenizer(list(texts), padding=True, truncation=True, max_length=MAX_PIECES, return_tensors="pt")
        states = self.encoder(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None].to(states.dtype)
        return self.head((states * mask).sum(1) / mask.sum(1))

    @torch.inference_mode()
    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Probabilities of a risk and of a crisis.

        Args:
            texts: As :func:`plain` makes them.

        Returns:
            Shape: ``(len(texts), 2)``.
        """
        out = np.zeros((len(texts), 2), np.float32)
        for numbers in alike([len(text.split()) for text in texts], READ_TOGETHER, BATCH):
            out[numbers] = torch.sigmoid(self([texts[i] for i in numbers])).numpy()
        return out

    @classmethod
    def begin(cls) -> EncoderClassifier:
        """The pretrained encoder with updates that change nothing yet.

        Raises:
            MissingResourceError: The encoder is not on this machine.
        """
        from transformers import AutoModel, AutoTokenizer

        folder = resolve_model(BASE)
        with quiet_loading():
            encoder = load_pretrained(AutoModel, folder)
        for parameter in encoder.parameters():
            parameter.requires_grad_(False)
        model = cls(encoder, load_pretrained(AutoTokenizer, folder), {})
        add_low_rank(encoder, RANK, SCALE, skip=("pooler",))
        return model

    @classmethod
    def load(cls, path: Path = UPDATES) -> EncoderClassifier:
        """From a file of updates, and the encoder they belong to.

        Raises:
            MissingResourceError: The encoder is not on this machine.
            CheckpointError: The file is missing, truncated or of another form.
        """
        model = cls.unmerged(path)
        merge(model.encoder)
        return model

    @classmethod
    def unmerged(cls, path: Path = UPDATES) -> EncoderClassifier:
        """As :meth:`load`, with the updates beside the encoder's weights."""
        model, weights = cls.begin(), load_weights(path)
        told = parse_json(load_described(path)[1].get("about", "{}"))
        own = model.learnt()
        if set(own) != set(weights) or set(told.get("thresholds", ())) != {RISK, CRISIS}:
            raise CheckpointError(
                f"{path} does not fit this release; train it again: python -m empatheia_research.care.encoder"
            )
        model.load_state_dict({**model.state_dict(), **{name: value.float() for name, value in weights.items()}})
        model.thresholds, model.notes = told["thresholds"], told["notes"]
        return model.eval()

    def learnt(self) -> dict[str, Tensor]:
        """Updates and heads by name."""
        return {name: value for name, value in self.state_dict().items() if ".base." not in name and _is_new(name)}

    def save(self, path: Path = UPDATES) -> None:
        """Updates and heads, in half precision, with the limits."""
        from safetensors.torch import save_file

        weights = {name: value.half().contiguous() for name, value in self.learnt().items()}
        told = {"thresholds": self.thresholds, "notes": self.notes}
        save_file(weights, path, {"about": json.dumps(told, sort_keys=True)})


def _is_new(name: str) -> bool:
    return name.startswith("head.") or ".up." in name or ".down." in name


def plain(text: str) -> str:
    r"""A text as the encoder reads it: normalised words.

    >>> plain("I\u2019m SO done lol")
    'i am so done lol'
    """
    return joined_words([token.text for token in tokens_of(text)])


def train(texts: Sequence[LabelledText], seed: int = 7) -> EncoderClassifier:
    """Trains updates and heads.

    Args:
        texts: With labels.
        seed: Of order, slips and weights.
    """
    torch.manual_seed(seed)
    draw = random.Random(seed)
    model = EncoderClassifier.begin()
    learnt = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=RATE, weight_decay=0.01)
    n_steps = EPOCHS * (len(texts) // BATCH + 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 40) * max(0.02, 1 - step / n_steps)
    )
    model.train()
    for epoch in range(EPOCHS):
        items = list(texts)
        draw.shuffle(items)
        runs = [sorted(items[i : i + 16 * BATCH], key=lambda t: len(t.text)) for i in range(0, len(items), 16 * BATCH)]
        batches = [run[i : i + BATCH] for run in runs for i in range(0, len(run), BATCH)]
        draw.shuffle(batches)
        total = 0.0
        for batch in batches:
            slips = [
                with_typos(t.text, 0.1, draw.randrange(99)) if draw.random() < TYPO_SHARE else t.text for t in batch
            ]
            labels = torch.tensor([[t.level != "none", t.level == "crisis"] for t in batch], dtype=torch.float32)
            soft = labels * (1 - SMOOTHING) + SMOOTHING / 2
            loss = F.binary_cross_entropy_with_logits(model([plain(text) for text in slips]), soft)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learnt, 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
        _LOG.info("epoch %d: loss %.4f", epoch + 1, total / len(batches))
    return model.eval()


@torch.inference_mode()
def scored(model: EncoderClassifier, texts: Sequence[LabelledText]) -> Tensor:
    """Probabilities of risk and crisis. Shape: ``(len(texts), 2)``."""
    out = [torch.sigmoid(model([plain(t.text) for t in texts[i : i + 64]])) for i in range(0, len(texts), 64)]
    return torch.cat(out)


def choose_limits(model: EncoderClassifier, texts: Sequence[LabelledText], small: np.ndarray) -> None:
    """Sets the limits of both classifiers together, and notes what they reach on texts that neither saw.

    Args:
        model: Trained.
        texts: Left out of its training.
        small: Probabilities of risk and crisis by small classifiers that did not see them. Shape: ``(len(texts), 2)``.
    """
    from empatheia_research.care.training import EVERYDAY, FALSE_ALARMS, FALSE_CRISES, TOLD, limit_for

    chances = joint(small, scored(model, texts).numpy())
    risk = np.asarray([text.level != "none" for text in texts])
    crisis = np.asarray([text.level == "crisis" for text in texts])
    corpora = {
        name: np.asarray([text.voice.startswith(voice) for text in texts])
        for name, voice in (("everyday", EVERYDAY), ("told", TOLD))
    }
    model.thresholds = {
        RISK: max(limit_for(chances[:, 0], part, FALSE_ALARMS) for part in corpora.values()),
        CRISIS: max(limit_for(chances[:, 1], part, FALSE_CRISES) for part in corpora.values()),
    }
    flagged = chances[:, 0] >= model.thresholds[RISK]
    grave = flagged & (chances[:, 1] >= model.thresholds[CRISIS])
    model.notes = {
        "left_out": len(texts),
        "validation_recall": round(float(flagged[risk].mean()), 4),
        "validation_recall_of_crises": round(float(grave[crisis].mean()), 4),
    }
    near = ~risk & ~corpora["everyday"] & ~corpora["told"]
    for name, part in {**corpora, "near_misses": near}.items():
        model.notes["validation_false_alarms_" + name] = round(float(flagged[part].mean()), 4)
        model.notes["validation_false_crises_" + name] = round(float(grave[part].mean()), 4)


def main() -> None:
    """Trains, chooses the limits, writes, and prints what was reached."""
    from empatheia_research.care import training

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    texts, lexicon = training.all_texts()
    _, small = training.train(texts, lexicon)
    by_text = {text: row for text, row in zip(texts, small, strict=True)}
    own = [text for text in texts if not text.voice.startswith((training.EVERYDAY, training.TOLD))]
    numbers = training.parts_of(own)
    speakers = training.TURN_WEIGHTS["speaker"]
    turns = [text for text in texts if text.voice.startswith(training.EVERYDAY) and text.weight == speakers]
    random.Random(1).shuffle(turns)
    told = [text for text in texts if text.voice.startswith(training.TOLD)]
    harmless = [*turns[:CORPUS_TURNS], *told[:CORPUS_TURNS]]
    measured = train([*(text for text, n in zip(own, numbers, strict=True) if n != PART), *harmless])
    left_out = [text for text, n in zip(own, numbers, strict=True) if n == PART]
    for corpus in (turns, told):
        left_out += corpus[CORPUS_TURNS : CORPUS_TURNS + LEFT_OUT]
    choose_limits(measured, left_out, np.stack([by_text[text] for text in left_out]))
    model = train([*own, *harmless])
    model.thresholds, model.notes = measured.thresholds, measured.notes
    model.save()
    sys.stdout.write(json.dumps({"thresholds": model.thresholds, **model.notes}, indent=1) + "\n")


if __name__ == "__main__":
    main()
