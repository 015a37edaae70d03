"""The responders' task: a system on EmpatheticDialogues, with its tokeniser, cause labels and extra corpora."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, GenerationConfig, PreTrainedModel

from empatheia.checkpoints.contexts import ContextReader
from empatheia.config import DataConfig, Recipe, StageConfig, stage_data_config, validate_model_fields
from empatheia.corpora import CORPORA, conversations, curated, lexicons, pooled, reccon, recec, sample
from empatheia.corpora.annotations import read_annotations
from empatheia.corpora.licences import LICENCES, licence, licence_text
from empatheia.corpora.mechanism_levels import read_levels
from empatheia.dialogue import CauseAnnotation, Dialogue, Example, Span, Turn
from empatheia.errors import ConfigError
from empatheia.reading import parse_json, read_record
from empatheia.registry import nearest
from empatheia.resources import load_pretrained, load_weights, resolve_model, shipped_path
from empatheia.responders import RESPONDERS
from empatheia.responders.seq2seq import Seq2SeqResponder
from empatheia.side_inputs import SIDE_INPUTS, make_side_inputs
from empatheia.side_inputs.emotion_words import EmotionWords
from empatheia.taxonomy import EMOTIONS
from empatheia.text.collation import Collator, EncodedExample, Layout
from empatheia.text.tokenizer import DialogueTokenizer
from empatheia.text.vectors import distil_vectors, load_vectors
from empatheia.text.words import tokenize_words
from empatheia.training.initial_weights import load_start, started_from
from empatheia.training.stages import StageData
from empatheia.training.tasks.feedback import FeedbackCollator, answered, no_emotion_words
from empatheia.writing import save_folder

logger = logging.getLogger(__name__)
EMOTION_INDEX = {name: i for i, name in enumerate(EMOTIONS)}
SPLITS = ("train", "valid", "test")
_OUR_TERMS = "CC BY-NC 4.0"  # of weights that learnt from EmpatheticDialogues
_UNDER_OUR_TERMS = ("empathetic_dialogues", sample.NAME, curated.NAME)
_LOSS_FEATURES = {
    "words": "labels",
    "emotion": "emotion_labels",
    "cause": "cause_labels",
    "mechanisms": "mechanism_labels",
}


class RespondTask:
    """Builds a responder from a recipe and everything it learns from."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe = recipe
        self.folder = folder
        model_class = RESPONDERS.get(recipe.system)
        self._dialogues: dict[tuple[str, str, int | None], list[Dialogue]] = {}
        self.tokenizer = self._make_tokenizer()
        self.tokenizer.remember()
        validate_model_fields(recipe.model, accepted_fields(model_class.config_class), f"recipe {recipe.name!r}")
        names = getattr(model_class, "side_inputs", ())
        self.side_inputs = make_side_inputs(names, recipe.data.side_inputs, self.tokenizer)  # what may be missing first
        self.model: Any = self._make_model(model_class)
        self._record: dict[str, Any] = {}
        self._n_skipped: dict[str, int] = {}

    # -- parts -----------------------------------------------------------------------------------------------

    def _make_tokenizer(self) -> DialogueTokenizer:
        place = self.folder / "tokenizer"
        if place.is_dir():
            return DialogueTokenizer.from_pretrained(place)
        settings = self.recipe.tokenizer
        if self.recipe.start is not None:
            tokenizer = DialogueTokenizer.from_pretrained(started_from(self.recipe))
        elif settings.kind == "hf":
            tokenizer = DialogueTokenizer.from_hf(resolve_model(str(settings.folder or self.recipe.encoder)))
        elif settings.kind == "bpe":
            tokenizer = DialogueTokenizer.train_bpe(self._texts(), size=settings.size)
        else:
            tokenizer = DialogueTokenizer.train_words(self._texts(), min_count=settings.min_count)
        save_folder(place, tokenizer.save_pretrained)
        return tokenizer

    def _texts(self) -> Iterable[str]:
        """Vocabulary text in the family's order: contexts and targets, then situations, split by split."""
        for split in self.recipe.tokenizer.splits:
            dialogues = self.dialogues(self.recipe.data, split)
            yield from _turn_texts(dialogues)
            yield from (dialogue.situation for dialogue in dialogues if dialogue.situation)
            if split == "train":
                yield from self._more_texts()

    def _more_texts(self) -> Iterator[str]:
        """Vocabulary text of what is learnt from besides the corpus: more conversations, side inputs, a pool."""
        names = {name for stage in self.recipe.stages for name in self._stage_config(stage).extra}
        for name in sorted(names):
            yield from _turn_texts(conversations.load(name))
        for name, settings in self.recipe.data.side_inputs.items():  # words a side input must find there
            yield from getattr(SIDE_INPUTS.get(name), "vocabulary", lambda **_: ())(**settings)
        if self.recipe.tokenizer.pool:
            yield from _turn_texts(pooled.load(self.recipe.tokenizer.pool, "train"))

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

    def _stage_config(self, stage: StageConfig) -> DataConfig:
        return stage_data_config(self.recipe, stage.data) if stage.data else self.recipe.data

    def dialogues(self, data: DataConfig, split: str) -> list[Dialogue]:
        """The conversations of a split, limited as the recipe says."""
        limit = getattr(data, f"{split}_limit")
        key = (f"{data.corpus} {data.curated} {' '.join(data.pool)}", split, limit)
        if key not in self._dialogues:
            if data.corpus == pooled.NAME:
                loaded = list(pooled.load(data.pool, split))
            elif data.corpus == curated.NAME:
                loaded = list(curated.load(split, data.curated, parts=data.pool, limit=limit).dialogues)
            elif data.corpus not in CORPORA:
                accepted = tuple(dict.fromkeys((*CORPORA.names(), pooled.NAME, curated.NAME)))
                raise ConfigError(
                    f"recipe {self.recipe.name!r}: data.corpus={data.corpus!r}.{nearest(data.corpus, list(accepted))}"
                    f" Accepted: {', '.join(accepted)}."
                )
            else:
                loaded = list(CORPORA.get(data.corpus)(split).dialogues)
            self._dialogues[key] = loaded[:limit] if limit else loaded
        return self._dialogues[key]

    def examples(self, data: DataConfig, split: str) -> list[Example]:
        """What a split teaches: replies, then (training only) situations and extra corpora."""
        examples = []
        for dialogue in self.dialogues(data, split):
            found = dialogue.examples(data.roles, max_context_words=512)
            examples += answered(found, dialogue) if split in data.answered else found
        if split == "train":
            if data.situations:
                examples += [
                    Example((Turn("speaker", d.situation),), None, d.id, -1, d.emotion)
                    for d in self.dialogues(data, split)
                    if d.situation and d.situation.strip()
                ]
            for name in data.extra:
                for dialogue in conversations.load(name):
                    examples += _short_memory(dialogue.examples(("listener", "speaker")))
        if data.target == "none":
            examples = [replace(example, response=None) for example in examples]
        return examples

    def causes(
        self, data: DataConfig, split: str
    ) -> Mapping[str, CauseAnnotation] | Mapping[tuple[str, int], CauseAnnotation] | None:
        """Cause labels by (dialogue, target turn), or by dialogue for the released ones."""
        if data.causes == "annotator":
            if not data.causes_path:
                raise ConfigError(f"recipe {self.recipe.name!r}: data.causes=annotator needs data.causes_path.")
            notes = read_annotations(data.causes_path)
        elif data.causes in ("recec", "sample"):
            root = sample.root() if data.causes == "sample" else None
            if split == "train" and root is None:
                raise ConfigError("RecEC's train labels are not available; use data.causes=annotator.")
            notes = recec.load(split, root=root).annotations
        elif data.causes == "lexicon":
            return _LexiconCauses(lexicons.load_words(data.causes_path), self.dialogues(data, split))
        else:
            return None
        if data.causes_scope == "dialogue":
            latest: dict[str, CauseAnnotation] = {}
            for note in notes:
                if note.dialogue_id not in latest or note.target > latest[note.dialogue_id].target:
                    latest[note.dialogue_id] = note
            return latest
        return {(note.dialogue_id, note.target): note for note in notes}

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
            _add_levels(items, data.mechanisms)
        if data.spans == "reccon" and with_extras and split != "test":
            items += self.reccon_items(split, data)
        return items

    def reccon_items(self, split: str, data: DataConfig) -> list[EncodedExample]:
        """Word-level cause items from RECCON's spans: no emotion label (other label set), no reply."""
        root = sample.root() if data.corpus == "sample" else None
        examples, causes = reccon.as_examples(split, root)
        return self.contexts(data).pieces(examples, causes=causes, emotion_index={}, cause_key="prefix", level="span")

    def stage_data(self, stage: StageConfig) -> StageData:
        """Items of a stage, with only the features its losses need."""
        data = self._stage_config(stage)
        features, wanted = self._features(stage)
        if stage.losses.get("mechanisms") and not data.mechanisms:
            raise ConfigError(
                f"stage {stage.name!r} learns mechanisms, but data.mechanisms names no file of their levels; make one"
                " with `empatheia annotate MODEL --what mechanisms --out FILE`, MODEL from recipes/epitome/shared.yaml."
            )
        learns_words = "words" in stage.loss_names
        train, valid = (self.encode(data, split, learns_words=learns_words) for split in ("train", "valid"))
        if isinstance(self.model, Seq2SeqResponder):
            pieces = [piece for item in train for piece in item.labels or ()]
            self.model.see_corpus(torch.tensor(pieces, dtype=torch.long))
        if "words" not in stage.losses or len(stage.losses) == 1:
            train, valid = _useful(train, wanted), _useful(valid, wanted)
        collate = self._collator(stage, data, features)
        self._record[stage.name] = {"train": len(train), "valid": len(valid), "checksum": _checksum(train)}
        if data.overlong == "skip":
            self._record[stage.name]["skipped_overlong"] = dict(self._n_skipped)
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
            collate = _TeacherCollator(collate, data.emotion_teacher)
        return collate

    def _with_feedback(self, collate: Any, data: DataConfig) -> Any:
        """The collator that also gives the speaker's next turn, in training alone."""
        words = [side for side in self.side_inputs if isinstance(side, EmotionWords)]
        vocabulary = words[0].lexicon_mask() if words else no_emotion_words(len(self.tokenizer))
        return FeedbackCollator(collate, self.tokenizer, self.dialogues(data, "train"), vocabulary, data.max_target)

    # -- results ---------------------------------------------------------------------------------------------

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        """Weights saved after a stage."""
        return load_weights(folder / "model.safetensors")

    def save(self, folder: Path) -> None:
        """The model folder a user loads: weights, tokeniser, generation settings, description."""
        sides = dict(zip(getattr(self.model, "side_inputs", ()), self.side_inputs, strict=True))
        extra = {"side_inputs": {name: side.settings() for name, side in sides.items()}} if sides else {}
        extra |= {"licence": terms} if (terms := self._terms()) else {}
        layout = self.layout(self.recipe.data)
        write_model_folder(folder, self.model, self.tokenizer, self.recipe, layout, **extra)

    def _terms(self) -> str:
        """Licence of weights that learnt from anything but EmpatheticDialogues, those they started from included."""
        used = [self._stage_config(stage) for stage in self.recipe.stages]
        names = {name for data in used for name in data.extra + data.pool}
        terms = [f"{name}: {licence_text(name)}" for name in sorted(names) if name in CORPORA]
        shut = [name for name in sorted(names) if name in LICENCES and not licence(name).may_train_released_weights]
        if shut:
            terms.append(f"not to be passed on, because of {', '.join(shut)}")
        if earlier := self._earlier_terms():
            terms.append(earlier)
        corpus = self.recipe.data.corpus
        own = licence_text(corpus) if corpus in CORPORA and corpus not in _UNDER_OUR_TERMS else _OUR_TERMS
        return "; ".join([own, *terms]) if terms or own != _OUR_TERMS else ""

    def _earlier_terms(self) -> str:
        """What the weights it started from add to the licence; empty for nothing."""
        if self.recipe.start is None:
            return ""
        path = started_from(self.recipe) / "empatheia.json"
        meta = read_record(path) if path.is_file() else {}
        earlier = str(meta.get("licence", "")).removeprefix(_OUR_TERMS).removeprefix("; ")
        return f"started from {meta.get('name', path.parent)} ({earlier})" if earlier else ""

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """All metrics of the recipe on a split."""
        from empatheia.training.evaluation import evaluate_responder

        return evaluate_responder(self, split, outputs)

    def data_record(self) -> dict[str, object]:
        """Item counts and checksums by stage."""
        return self._record


class _TeacherCollator:
    """Adds a teacher's emotion distribution to each item of a batch; zeros where there is none.

    The file (safetensors) holds ``probabilities`` (n, 32) and its metadata the keys ``dialogue_id#turn_index``.
    """

    def __init__(self, inner: Collator, path: str) -> None:
        from safetensors import safe_open

        self.inner = inner
        with safe_open(shipped_path(path), "pt") as file:
            self.table = file.get_tensor("probabilities").float()
            keys = parse_json(file.metadata()["keys"])
        self.rows = {key: i for i, key in enumerate(keys)}

    def __call__(self, items: list[EncodedExample]) -> dict[str, Tensor]:
        batch = self.inner(items)
        teacher = torch.zeros(len(items), self.table.shape[1])
        for i, item in enumerate(items):
            row = self.rows.get(f"{item.dialogue_id}#{item.turn_index}")
            if row is not None:
                teacher[i] = self.table[row]
        batch["emotion_teacher"] = teacher
        return batch


class _LexiconCauses(dict[tuple[str, int], CauseAnnotation]):
    """Cause spans = words of a lexicon (Gao's ablation vs eLex), for every prefix of every dialogue."""

    def __init__(self, words: set[str], dialogues: Iterable[Dialogue]) -> None:
        super().__init__()
        for dialogue in dialogues:
            spans: list[Span] = []
            for i, turn in enumerate(dialogue.turns):
                spans += [Span(i, w.start, w.end) for w in tokenize_words(turn.text) if w.text in words]
                covered = tuple(sorted({span.turn for span in spans}))
                self[dialogue.id, i] = CauseAnnotation(dialogue.id, i, covered, tuple(spans), "lexicon")


def _turn_texts(dialogues: Iterable[Dialogue]) -> Iterator[str]:
    return (turn.text for dialogue in dialogues for turn in dialogue.turns)


def _add_levels(items: Iterable[EncodedExample], path: str) -> None:
    """Labels of the mechanisms of each reply, where the file at ``path`` has them."""
    levels = read_levels(path)
    for item in items:
        shown = levels.shown(item.dialogue_id, item.turn_index)
        item.extra |= {} if shown is None else {"mechanism_labels": shown}


def is_whole(item: EncodedExample, max_target: int) -> bool:
    """Whether all of context and reply was kept, of a reply at most ``max_target`` pieces and its end."""
    return not item.was_cut and not item.n_dropped_turns and len(item.labels or ()) <= max_target + 1


def write_model_folder(
    folder: Path, model: Seq2SeqResponder, tokenizer: DialogueTokenizer, recipe: Recipe, layout: Layout, **extra: object
) -> None:
    """Everything a user needs to load a responder again, in one folder."""
    decoding = recipe.decoding
    model.generation_config = GenerationConfig(
        max_new_tokens=decoding.max_new_tokens,
        no_repeat_ngram_size=decoding.no_repeat_ngram_size or None,
        do_sample=False,
        pad_token_id=tokenizer.pad_id,
        bos_token_id=tokenizer.bos_id,
        eos_token_id=tokenizer.eos_id,
        decoder_start_token_id=tokenizer.bos_id,
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    meta = {
        "format": 1,
        "system": recipe.system,
        "name": recipe.name,
        "size": recipe.size,
        "seed": recipe.seed,
        "note": recipe.note,
        "layout": {"max_source": layout.max_source, "variant": layout.variant, "separators": layout.separators}
        | ({} if layout.truncate == "oldest" else {"truncate": layout.truncate})
        | ({} if layout.max_turns is None else {"max_turns": layout.max_turns}),
        "emotions": list(EMOTIONS),
        "cause_threshold": 0.5,
        "temperature": 1.0,
        "licence": _OUR_TERMS,
        **extra,
    }
    (folder / "empatheia.json").write_text(json.dumps(meta, indent=2), encoding="utf-8")
    (folder / "recipe.yaml").write_text(recipe.dump(), encoding="utf-8")


def accepted_fields(config_class: type) -> list[str]:
    """Parameters of a configuration class and its parents that a recipe may set."""
    names: list[str] = []
    for parent in config_class.__mro__:
        if parent.__module__.startswith("empatheia") and "__init__" in vars(parent):
            names += [p for p in inspect.signature(parent.__init__).parameters if p not in ("self", "kwargs")]
    variant = getattr(config_class, "variant_fields", None)
    names += list(variant("paper")) if variant else []
    hidden = ("vocab_size", "pad_token_id", "bos_token_id", "eos_token_id", "encoder_config")
    return [name for name in dict.fromkeys(names) if name not in hidden]


def _short_memory(examples: list[Example], n_turns: int = 3) -> list[Example]:
    """Extra corpora have long dialogues: keep the last turns only."""
    return [replace(example, context=example.context[-n_turns:]) for example in examples]


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
    digest = hashlib.sha256()
    for item in items:
        digest.update(repr((item.input_ids, item.labels, item.emotion_label, item.cause_labels)).encode())
    return digest.hexdigest()[:16]
