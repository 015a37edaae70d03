"""What a prompt shows of our analysis: emotion and cause words by a listener, the reply's intent by its predictor.

Everything is read from the context alone, as it is when somebody talks to the model: no label of the corpus enters.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from empatheia.dialogue import Dialogue, Example
from empatheia.errors import CheckpointError, MissingResourceError
from empatheia.reading import read_record
from empatheia.resources import installed_model, load_pretrained, resolve_model
from empatheia.responders import RESPONDERS
from empatheia.side_inputs import make_side_inputs
from empatheia.taxonomy import EMOTIONS
from empatheia.text.batching import TokenBatchSampler
from empatheia.text.collation import Collator, Layout, encode_examples, word_scores
from empatheia.text.prompts import Hints, cause_texts
from empatheia.text.tokenizer import DialogueTokenizer
from empatheia.understanding import COMPONENTS
from empatheia.understanding.cause_phrases import cause_phrases, speaker_words

_PIECES = 4096


class Conditioner:
    """Finds the hints of conversations.

    Args:
        shown: Of ``emotion``, ``causes``, ``intent``; the models of the others are not loaded.
        analyst: Folder or name of a listener with an emotion head.
        reaction: Folder or name of the model of part ``reaction``.
        labeller: Folder or name of the model of part ``intent`` that it reads.

    Raises:
        MissingResourceError: A model is not on this machine; says which command makes it.
        CheckpointError: The analyst has no emotion head.
    """

    def __init__(
        self,
        shown: Sequence[str],
        analyst: str | Path = "default",
        reaction: str | Path = "reaction",
        labeller: str | Path = "intent",
    ) -> None:
        self.shown = tuple(shown)
        self._reads = _Analyst(analyst) if {"emotion", "causes"} & set(shown) else None
        self._reaction: Any = load_reaction(reaction, labeller) if "intent" in shown else None

    @property
    def names(self) -> dict[str, str]:
        """What is shown to the name of the model that finds it."""
        by = {"emotion": self._reads, "causes": self._reads, "intent": self._reaction}
        return {part: by[part].name for part in self.shown}

    def hints(self, examples: Sequence[Example]) -> list[Hints]:
        """What is found in each context, in order; replies and labels are not read."""
        found = [("", ())] * len(examples) if self._reads is None else self._reads.read(examples)
        intents = [""] * len(examples)
        if self._reaction is not None:
            records = self._reaction.annotate([Dialogue(str(i), e.context) for i, e in enumerate(examples)])
            intents = [rows[-1].label if rows else "" for rows in records]
        return [
            Hints(
                emotion=emotion if "emotion" in self.shown else "",
                causes=causes if "causes" in self.shown else (),
                intent=intent,
            )
            for (emotion, causes), intent in zip(found, intents, strict=True)
        ]


class _Analyst:
    """A listener's network, asked for emotion and cause words."""

    def __init__(self, place: str | Path) -> None:
        folder = resolve_model(place)
        try:
            meta = read_record(folder / "empatheia.json")
            self.network: Any = load_pretrained(RESPONDERS.get(meta["system"]), folder, dtype=torch.float32).eval()
            self.tokenizer = DialogueTokenizer.from_pretrained(folder)
            self.layout = Layout(**meta["layout"])
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise CheckpointError(
                f"{folder} is no listener ({' '.join(str(problem).split())[:120]}); give a model folder of a responder"
                " with an emotion head, or default."
            ) from None
        if not self.network.has_emotion_head:
            raise CheckpointError(f"{meta['name']} ({folder}) has no emotion head; give another analyst, e.g. default.")
        self.name = str(meta["name"])
        self.emotions = tuple(meta.get("emotions", EMOTIONS))
        self.threshold = float(meta.get("cause_threshold", 0.5))
        names = getattr(self.network, "side_inputs", ())
        self.sides = make_side_inputs(names, meta.get("side_inputs", {}), self.tokenizer)
        features = tuple(name for name in self.network.features if name not in self.network.gold_features)
        self.collate = Collator(features, self.tokenizer.pad_id, self.sides)

    @torch.inference_mode()
    def read(self, examples: Sequence[Example]) -> list[tuple[str, tuple[str, ...]]]:
        """The emotion and the cause words of each context."""
        items = encode_examples(examples, self.tokenizer, self.layout)
        for side in self.sides:
            side.add(examples, items)
        out: list[tuple[str, tuple[str, ...]]] = [("", ())] * len(items)
        for indices in TokenBatchSampler([len(item.input_ids) for item in items], _PIECES, shuffle=False):
            batch = self.collate([items[i] for i in indices])
            heads = self.network.understand(**{k: v.to(self.network.device) for k, v in batch.items()})
            emotions = heads.emotion_logits.argmax(-1).tolist()
            causes = [None] * len(indices) if heads.cause_probs is None else heads.cause_probs.float().tolist()
            for i, emotion, scores in zip(indices, emotions, causes, strict=True):
                context = examples[i].context
                words = [] if scores is None else speaker_words(context, word_scores(items[i], scores))
                out[i] = (self.emotions[emotion], cause_texts(cause_phrases(context, words, self.threshold), context))
        return out


def load_reaction(place: str | Path = "reaction", labeller: str | Path = "intent") -> Any:
    """The component that says which emotion or intent the next reply should have.

    Raises:
        MissingResourceError: It is not on this machine; says which command makes it.
    """
    for name in (place, labeller):
        if not Path(name).is_dir() and installed_model(str(name)) is None:
            raise MissingResourceError(
                f"the intent of a reply needs the model {str(name)!r}, which is not installed. Make it with:"
                " empatheia models train intent,reaction; or show only emotion,causes."
            )
    return COMPONENTS.get("reaction").load(place, labeller=labeller)
