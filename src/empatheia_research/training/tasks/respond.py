"""The responders' task: a system on EmpatheticDialogues, with its tokeniser, cause labels and extra corpora."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, GenerationConfig, PreTrainedModel

from empatheia.errors import ConfigError
from empatheia.records.dialogue import Example
from empatheia.resources import resolve_model
from empatheia.taxonomy import EMOTIONS
from empatheia_research.checkpoints.contexts import ContextReader
from empatheia_research.corpora import reccon
from empatheia_research.pretrained import load_pretrained
from empatheia_research.recipes.data import DataConfig
from empatheia_research.recipes.recipe import StageConfig
from empatheia_research.responders import RESPONDERS
from empatheia_research.responders.seq2seq import Seq2SeqResponder
from empatheia_research.side_inputs import make_side_inputs
from empatheia_research.side_inputs.emotion_words import EmotionWords
from empatheia_research.text.collation import Collator, EncodedExample, Layout
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.text.vectors import distil_vectors, load_vectors
from empatheia_research.training.initial_weights import load_start, started_from
from empatheia_research.training.sources import folder_of
from empatheia_research.training.sources.conversations import OUR_TERMS, Conversations, licence_of
from empatheia_research.training.sources.feedback import FeedbackCollator, no_emotion_words
from empatheia_research.training.sources.labels import Causes, TeacherCollator, add_levels, causes_of
from empatheia_research.training.stages import StageData
from empatheia_research.training.tasks.base import Task, checksum, write_description

logger = logging.getLogger(__name__)
EMOTION_INDEX = {name: i for i, name in enumerate(EMOTIONS)}
_LOSS_FEATURES = {
    "words": "labels",
    "emotion": "emotion_labels",
    "cause": "cause_labels",
    "mechanisms": "mechanism_labels",
}


class RespondTask(Task):
    """Builds a responder from a recipe and everything it learns from."""

    data: DataConfig

    def build(self) -> None:
        """Pieces, side inputs, the network."""
        model_class = RESPONDERS.get(self.recipe.system)
        self.source = Conversations(self.recipe)
        self.tokenizer = DialogueTokenizer.from_pretrained(self.made_once("tokenizer", self._make_tokenizer))
        self.tokenizer.remember()
        self.check_fields(model_class.config_class)
        names = getattr(model_class, "side_inputs", ())
        self.side_inputs = make_side_inputs(names, self.data.side_inputs, self.tokenizer)  # what may be missing first
        self.model = self._make_model(model_class)
        self._n_skipped: dict[str, int] = {}

    # -- parts -----------------------------------------------------------------------------------------------

    def _make_tokenizer(self) -> DialogueTokenizer:
        settings = self.recipe.tokenizer
        if self.recipe.start is not None:
            return DialogueTokenizer.from_pretrained(started_from(self.recipe))
        if settings.kind == "hf":
            return DialogueTokenizer.from_hf(resolve_model(str(settings.folder or self.recipe.encoder)))
        if settings.kind == "bpe":
            return DialogueTokenizer.train_bpe(self.source.texts(), size=settings.size)
        return DialogueTokenizer.train_words(self.source.texts(), min_count=settings.min_count)

    def _make_model(self, model_class: Any) -> PreTrainedModel:
        recipe = self.recipe
        fields = dict(recipe.model)
        encoder_folder = None
        if recipe.encoder is not None:
            encoder_folder = str(resolve_model(recipe.encoder))
            fields["encoder_config"] = load_pretrained(AutoConfig, encoder_folder).to_dict()
        if model_class.scales_random_words and not (
            encoder_folder or recipe.tokenizer.vectors or recipe.tokenizer.distil
        ):
            fields.setdefault("scale_words", True)  # or the positions are ten times as long as the words
        config = model_class.config_class(
            vocab_size=len(self.tokenizer),
            pad_token_id=self.tokenizer.pad_id,
            bos_token_id=self.tokenizer.bos_id,
            eos_token_id=self.tokenizer.eos_id,
            **fields,
        )
        model: Any = model_class(config)
        if encoder_folder is not None:
            model.load_encoder(encoder_folder)
        if recipe.start is not None:
            load_start(model, started_from(recipe))
            return model
        vectors = self._word_vectors(config.width, is_scaled=getattr(config, "scale_words", False))
        if vectors is not None:
            model.load_word_vectors(*vectors)
        return model

    def _word_vectors(self, width: int, *, is_scaled: bool) -> tuple[Tensor, Tensor] | None:
        settings = self.recipe.tokenizer
        pieces = self.tokenizer.piece_texts()
        if settings.vectors:
            matrix, found = load_vectors(settings.vectors, pieces, width)
            logger.info("word vectors: %d of %d pieces found in %s", int(found.sum()), len(pieces), settings.vectors)
            return torch.from_numpy(matrix), torch.from_numpy(found)
        if settings.distil:
            matrix = torch.from_numpy(distil_vectors(resolve_model(settings.distil), pieces, width=width))
            matrix = matrix / matrix[matrix.norm(dim=-1) > 0].std() * (width**-0.5 if is_scaled else 1.0)
            return matrix, matrix.norm(dim=-1) > 0
        return None

    # -- data ------------------------------------------------------------------------------------------------

    def examples(self, data: DataConfig, split: str) -> list[Example]:
        """What a split teaches, or is measured on; see :meth:`.Conversations.examples`."""
        return self.source.examples(data, split)

    def causes(self, data: DataConfig, split: str) -> Causes | None:
        """Cause labels by (dialogue, target turn), or by dialogue for the released ones."""
        try:
            return causes_of(data, split, self.source.dialogues(data, split) if data.causes == "lexicon" else ())
        except ConfigError as problem:
            raise self.refusal(str(problem)) from None

    def layout(self, data: DataConfig, *, learns_words: bool = True) -> Layout:
        """How contexts become pieces.

        Args:
            data: Sizes and separators.
            learns_words: ``repo`` labels of causes are those of Gao et al.'s generator stage, for a system that learns
                causes; their reasoner's own stage, which learns no words, reads labels as annotated.
        """
        learns_causes = learns_words and "cause_labels" in self.model.features
        variant = self.recipe.model.get("variant", "paper") if learns_causes else "paper"
        return Layout(
            max_source=data.max_source,
            variant=variant,
            separators=data.separators,
            truncate=data.truncate or "oldest",
            max_turns=data.max_turns,
        )

    def contexts(self, data: DataConfig, *, learns_words: bool = True) -> ContextReader:
        """How the model reads contexts, whatever it has learnt so far; see :meth:`layout`."""
        return ContextReader(self.model, self.tokenizer, self.layout(data, learns_words=learns_words), self.side_inputs)

    def encode(
        self, data: DataConfig, split: str, *, with_extras: bool = True, learns_words: bool = True
    ) -> list[EncodedExample]:
        """Encoded items of a split; RECCON's word labels come behind the conversations' own.

        Args:
            data: What to read.
            split: ``train``, ``valid`` or ``test``.
            with_extras: Whether RECCON's come along.
            learns_words: As in :meth:`layout`.
        """
        has_spans = data.spans != "none"
        examples = self.examples(data, split)
        contexts = self.contexts(data, learns_words=learns_words)
        items = contexts.pieces(
            examples,
            causes=self.causes(data, split),
            emotion_index=EMOTION_INDEX,
            cause_key=data.causes_scope,
            level="span" if has_spans or data.causes == "lexicon" else "turn",
            max_target=data.max_target if data.overlong == "trim" else data.max_target + 1,
        )
        if data.overlong == "skip" and split != "test":
            fits = [i for i, item in enumerate(items) if is_whole(item, data.max_target)]
            self._n_skipped[split] = len(items) - len(fits)
            examples, items = [examples[i] for i in fits], [items[i] for i in fits]
        contexts.add_side_inputs(examples, items, learn=split == "train")
        if data.mechanisms:
            add_levels(items, data.mechanisms)
        if data.spans == "reccon" and with_extras and split != "test":
            items += self.reccon_items(split, data)
        return items

    def reccon_items(self, split: str, data: DataConfig) -> list[EncodedExample]:
        """Word-level cause items from RECCON's spans: no emotion label (other label set), no reply."""
        examples, causes = reccon.as_examples(split, folder_of(data.corpus))
        return self.contexts(data).pieces(examples, causes=causes, emotion_index={}, cause_key="prefix", level="span")

    def stage_data(self, stage: StageConfig) -> StageData:
        """Items of a stage, with only the features its losses need."""
        data = self.stage_config(stage)
        features, wanted = self._features(stage)
        if stage.losses.get("mechanisms") and not data.mechanisms:
            raise self.refusal(
                "it learns mechanisms, but data.mechanisms names no file of their levels; make one with `empatheia"
                " annotate MODEL --what mechanisms --out FILE`, MODEL from recipes/epitome/shared.yaml.",
                stage,
            )
        learns_words = "words" in stage.loss_names
        train, valid = (self.encode(data, split, learns_words=learns_words) for split in ("train", "valid"))
        if isinstance(self.model, Seq2SeqResponder):
            pieces = [piece for item in train for piece in item.labels or ()]
            self.model.see_corpus(torch.tensor(pieces, dtype=torch.long))
        if "words" not in stage.losses or len(stage.losses) == 1:
            train, valid = _useful(train, wanted), _useful(valid, wanted)
        collate = self._collator(stage, data, features)
        self.record[stage.name] = {"train": len(train), "valid": len(valid), "checksum": _checksum(train)}
        if data.overlong == "skip":
            self.record[stage.name]["skipped_overlong"] = dict(self._n_skipped)
        return StageData(train, _lengths(train), valid, _lengths(valid), collate)

    def _features(self, stage: StageConfig) -> tuple[tuple[str, ...], set[str]]:
        """What the model reads in a stage, and the gold features that the stage's losses are taken against."""
        own: dict[str, tuple[str, ...]] = getattr(self.model, "loss_features", {})
        wanted = {_LOSS_FEATURES[name] for name in stage.loss_names if name in _LOSS_FEATURES}
        wanted |= {feature for name in stage.loss_names for feature in own.get(name, ())}
        gold = {*_LOSS_FEATURES.values(), *(feature for given in own.values() for feature in given), "emotion_teacher"}
        return tuple(f for f in self.model.features if f in wanted or f not in gold), wanted

    def _collator(self, stage: StageConfig, data: DataConfig, features: tuple[str, ...]) -> Any:
        """What makes a stage's batches, with the feedback or the teacher's emotions that it learns from."""
        collate: Any = Collator(features, self.tokenizer.pad_id, self.side_inputs)
        if "feedback_ids" in features:
            collate = self._with_feedback(collate, data)
        if data.emotion_teacher and "emotion_teacher" in stage.losses:
            collate = TeacherCollator(collate, data.emotion_teacher)
        return collate

    def _with_feedback(self, collate: Any, data: DataConfig) -> Any:
        """The collator that also gives the speaker's next turn, in training alone."""
        words = [side for side in self.side_inputs if isinstance(side, EmotionWords)]
        vocabulary = words[0].lexicon_mask() if words else no_emotion_words(len(self.tokenizer))
        return FeedbackCollator(
            collate, self.tokenizer, self.source.dialogues(data, "train"), vocabulary, data.max_target
        )

    # -- results ---------------------------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """The model folder a user loads: weights, tokeniser, generation settings, description."""
        sides = dict(zip(getattr(self.model, "side_inputs", ()), self.side_inputs, strict=True))
        extra: dict[str, object] = {}
        if sides:
            extra = {"side_inputs": {name: side.settings() for name, side in sides.items()}}
        if terms := licence_of(self.recipe, [self.stage_config(stage) for stage in self.recipe.stages]):
            extra["licence"] = terms
        self.model.generation_config = self._generation()
        self.save_model(folder)
        self.tokenizer.save_pretrained(folder)
        layout = self.layout(self.data)
        facts = {
            "layout": {"max_source": layout.max_source, "variant": layout.variant, "separators": layout.separators}
            | ({} if layout.truncate == "oldest" else {"truncate": layout.truncate})
            | ({} if layout.max_turns is None else {"max_turns": layout.max_turns}),
            "emotions": list(EMOTIONS),
            "cause_threshold": 0.5,
            "temperature": 1.0,
            "licence": OUR_TERMS,
            **extra,
        }
        write_description(folder, self.recipe, facts)

    def _generation(self) -> GenerationConfig:
        """The recipe's way to decode, for who uses the model without us."""
        decoding, tokenizer = self.recipe.decoding, self.tokenizer
        return GenerationConfig(
            max_new_tokens=decoding.max_new_tokens,
            no_repeat_ngram_size=decoding.no_repeat_ngram_size or None,
            do_sample=False,
            pad_token_id=tokenizer.pad_id,
            bos_token_id=tokenizer.bos_id,
            eos_token_id=tokenizer.eos_id,
            decoder_start_token_id=tokenizer.bos_id,
        )

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """All metrics of the recipe on a split."""
        from empatheia_research.training.evaluation import evaluate_responder

        return evaluate_responder(self, split, outputs)


def is_whole(item: EncodedExample, max_target: int) -> bool:
    """Whether all of context and reply was kept, of a reply at most ``max_target`` pieces and its end."""
    return not item.was_cut and not item.n_dropped_turns and len(item.labels or ()) <= max_target + 1


def _useful(items: list[EncodedExample], wanted: set[str]) -> list[EncodedExample]:
    """Items that carry at least one of the wanted labels."""

    def carries(item: EncodedExample) -> bool:
        return (
            ("labels" in wanted and item.labels is not None)
            or ("emotion_labels" in wanted and item.emotion_label >= 0)
            or ("cause_labels" in wanted and item.cause_labels is not None and any(c >= 0 for c in item.cause_labels))
            or ("mechanism_labels" in wanted and "mechanism_labels" in item.extra)
        )

    return [item for item in items if carries(item)]


def _lengths(items: list[EncodedExample]) -> list[int]:
    return [max(len(item.input_ids), len(item.labels or ())) for item in items]


def _checksum(items: list[EncodedExample]) -> str:
    return checksum(repr((item.input_ids, item.labels, item.emotion_label, item.cause_labels)) for item in items)
