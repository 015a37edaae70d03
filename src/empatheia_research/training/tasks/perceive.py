"""The perception task: what is felt, its side and its cause words, learnt from several corpora with one model.

EmpatheticDialogues names its feelings and comes from one crowd, so a model of it alone learns the corpus and not people
(48 % there, 37 % on everyday texts). The everyday corpus is repeated in copies that are typed ever differently; EDOS
adds film dialogues with human labels, EmoBank sentences with human valence, RECCON long cause spans. What is measured
outside (MELD, EmoryNLP, DailyDialog) is learnt from by no stage.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from empatheia.errors import MissingResourceError
from empatheia.metrics.classification import Accuracy, CalibrationError
from empatheia.perceive.affect import Affect, mass_of_sides
from empatheia.reading import CsvRows, read_text
from empatheia.records.dialogue import Span, Turn
from empatheia.resources import find_corpus_file
from empatheia.taxonomy import EMOTION_TO_RECCON, EMOTIONS, IGNORED, RECCON_EMOTIONS, SIDE_OF, SIDES
from empatheia.text.noise import noisy
from empatheia_research.corpora import CORPORA, empathetic_dialogues, everyday, reccon, sample
from empatheia_research.corpora.everyday import EverydayItem
from empatheia_research.pretrained import load_weights
from empatheia_research.recipes.data import PerceiveData
from empatheia_research.recipes.recipe import StageConfig
from empatheia_research.training import word_marks
from empatheia_research.training.evaluation import fit_temperature
from empatheia_research.training.initial_weights import model_named, started_from
from empatheia_research.training.tasks.base import Task, checksum, scored, write_rows
from empatheia_research.training.word_marks import best_threshold, flags, marked_scores, reccon_scores, word_scores
from empatheia_research.understanding.affect.reader import (
    ADAPTER,
    AffectPieces,
    AffectReader,
    AffectReaderConfig,
    cause_targets,
    checksum_of,
)
from empatheia_research.understanding.affect.turns import AffectOfTurns
from empatheia_research.understanding.labels.classifier import Row

SIX: Mapping[str, Mapping[str, str]] = {
    "meld": {
        "joy": "happiness", "sadness": "sadness", "anger": "anger", "surprise": "surprise", "fear": "fear",
        "disgust": "disgust",
    },
    "emorynlp": {
        "Joyful": "happiness", "Peaceful": "happiness", "Powerful": "happiness", "Sad": "sadness", "Mad": "anger",
        "Scared": "fear",
    },
    "dailydialog": {name: name for name in RECCON_EMOTIONS},
}  # fmt: skip
"""Corpora with other label sets: their emotions as RECCON's six; turns with other labels are left out."""
_SIX_INDEX = np.array([RECCON_EMOTIONS.index(EMOTION_TO_RECCON[name]) for name in EMOTIONS])
_NO_FIELDS = ("labels", "base", "base_checksum", "softmax_temperature", "side_temperature", "word_threshold")


@dataclass(frozen=True, slots=True)
class Lesson:
    """One thing to learn from.

    Attributes:
        turns: What is read; the newest turn is the speaker's.
        emotions: Label to probability; empty = not supervised.
        sides: Side to probability; empty = not supervised.
        causes: Cause spans; None = not supervised.
        spans: They are whole spans, as RECCON has them, and only turns that hold one say which words are none.
    """

    turns: tuple[Turn, ...]
    emotions: Mapping[str, float]
    sides: Mapping[str, float]
    causes: tuple[Span, ...] | None = None
    spans: bool = False


class PerceiveTask(Task):
    """Trains and measures an :class:`AffectReader`."""

    systems = ("affect_reader",)
    fixed = ("corpus",)
    data: PerceiveData

    def build(self) -> None:
        """On the recipe's encoder or from scratch; weights of ``start`` where it names one."""
        recipe, fields = self.recipe, dict(self.recipe.model)
        self.check_fields(AffectReaderConfig, _NO_FIELDS, [] if recipe.encoder is not None else ["encoder_config"])
        if recipe.encoder is not None:
            self.model, self.reader = AffectReader.from_base(recipe.encoder, EMOTIONS, **fields)
        else:
            pieces = self.learnt_pieces(self._texts, int(fields.get("max_pieces", 192)))
            sizes = {"vocab_size": len(pieces), "pad_token_id": pieces.pad_token_id}
            fields["encoder_config"] = {**fields["encoder_config"], **sizes}
            config = AffectReaderConfig(labels=EMOTIONS, **{**fields, "rank": 0})
            self.model, self.reader = AffectReader(config), AffectPieces(pieces, config)
        if recipe.start is not None:
            self.model.take(started_from(recipe))

    def _texts(self) -> list[str]:
        return [turn.text for lesson in self.lessons() for turn in lesson.turns]

    # -- data ------------------------------------------------------------------------------------------------

    def lessons(self, data: PerceiveData | None = None, name: str = "lessons") -> list[Lesson]:
        """Everything to learn from, in a fixed order; the copies of a text are typed differently.

        Args:
            data: Of a stage; None = the recipe's.
            name: Under which the counts are recorded.
        """
        data = data or self.data
        draw = random.Random(self.recipe.seed)
        own = [taught(item, data.accepted_share) for item in everyday_items("train", data)[: data.train_limit]]
        own = self._with_teachers(own, data)
        out = own[: len(own) * min(1, data.copies)]
        for _ in range(data.copies - 1):
            out += [_retyped(lesson, draw) for lesson in own]
        parts = {"everyday": len(out)}
        if data.empathetic:
            found = [one for text in data.empathetic for one in _empathetic(data, text, draw)]
            parts["empathetic_dialogues"] = len(found)
            out += self._with_teachers(found, data)
        for corpus in data.extra:
            found = _EXTRA[corpus](data)
            parts[corpus] = len(found)
            out += self._with_teachers(found, data)
        self.record[name] = {**parts, "all": len(out)}
        return out

    def _with_teachers(self, lessons: list[Lesson], data: PerceiveData) -> list[Lesson]:
        """The same lessons, a share of each target the teachers' mean; read once a run."""
        if not data.teachers or not lessons:
            return lessons
        folders = [model_named(self.recipe, place, "data.teachers") for place in data.teachers]
        texts = [[(turn.role, turn.text) for turn in lesson.turns] for lesson in lessons]
        sums = [checksum_of(folder / ADAPTER) for folder in folders]
        key = checksum([json.dumps([sums, texts])])
        path = self.folder / "teachers" / f"{key}.safetensors"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            save_file(teacher_mean(folders, [lesson.turns for lesson in lessons]), path)
        mean = {name: value.numpy() for name, value in load_weights(path).items()}
        share = data.teacher_share
        return [
            replace(
                lesson,
                emotions=_mixed(lesson.emotions, EMOTIONS, mean["emotions"][i], share),
                sides=_mixed(lesson.sides, SIDES, mean["sides"][i], share),
            )
            for i, lesson in enumerate(lessons)
        ]

    def rows(self, split: str, data: PerceiveData, stage: StageConfig) -> list[Row]:
        """The lessons of a stage; validated on the everyday corpus's valid part."""
        if split == "train":
            return self.encode(self.lessons(data, stage.name))
        return self.encode([taught(item, self.data.accepted_share) for item in everyday_items(split, self.data)])

    def encode(self, lessons: Sequence[Lesson]) -> list[Row]:
        """Lessons as the model reads them, with targets."""
        rows = self.reader.encode([lesson.turns for lesson in lessons])
        for row, lesson in zip(rows, lessons, strict=True):
            self.add_targets(row, lesson)
            row["causes"] = (
                [IGNORED] * len(row["input_ids"])
                if lesson.causes is None
                else cause_targets(row, lesson.turns, lesson.causes, lesson.spans)
            )
            row["spans"] = lesson.spans
        return rows

    def add_targets(self, row: Row, lesson: Lesson) -> None:
        """Writes ``emotions`` and ``sides``, smoothed as the recipe says."""
        smooth = self.data.label_smoothing
        target = np.zeros(len(EMOTIONS))
        for name, p in lesson.emotions.items():
            target[EMOTIONS.index(name)] = p
        row["emotions"] = ((1 - smooth) * target + smooth * target.sum() / len(EMOTIONS)).tolist()
        row["sides"] = [lesson.sides.get(name, 0.0) for name in SIDES]

    def data_record(self) -> dict[str, object]:
        """Counts by source, and a checksum of the everyday texts."""
        record: dict[str, object] = dict(self.record)
        for split in ("train", "valid", "test"):
            texts = "".join("\n".join(t.text for t in item.dialogue.turns) for item in everyday_items(split, self.data))
            record[f"everyday/{split}"] = {"sha256": checksum([texts])}
        return record

    # -- saving ----------------------------------------------------------------------------------------------

    def calibrate(self) -> None:
        """The temperatures and the word threshold."""
        config = self.model.config
        config.softmax_temperature = config.side_temperature = 1.0
        items = everyday_items("valid", self.data)
        found = self._read([item.dialogue.turns for item in items])
        told = self.told(len(items))
        felt = [*found, *self._read([turns for turns, _ in told])]
        labels = [*(str(item.dialogue.emotion) for item in items), *(label for _, label in told)]
        gold = [EMOTIONS.index(label) for label in labels]
        own = fit_temperature(np.stack([one.emotions for one in felt]), gold)
        sides = np.stack([one.sides for one in found])
        config.softmax_temperature = own
        config.side_temperature = fit_temperature(sides, [SIDES.index(item.side) for item in items])
        config.word_threshold = best_threshold(
            [word_marks.pairs(f.words, i.causes) for f, i in zip(found, items, strict=True)]
        )

    def save_model(self, folder: Path) -> None:
        """Updates and heads; the base lies where it was."""
        self.model.save(folder)

    def facts(self) -> dict[str, object]:
        """``AffectOfTurns.load`` reads them."""
        config = self.model.config
        facts = {"part": "affect", "emotions": list(EMOTIONS), "temperature": config.softmax_temperature}
        facts |= {"licence": self.licence(), "weights": ADAPTER, "cause_threshold": config.word_threshold}
        return facts | {"base": config.base}

    def told(self, most: int) -> list[tuple[tuple[Turn, ...], str]]:
        """Contexts of EmpatheticDialogues' valid part, evenly drawn, if the model has learnt from the corpus.

        Everyday texts alone would make it too sure of what that crowd tells, and that crowd alone not sure enough of
        everyday texts: half of either is between.
        """
        if not self.data.empathetic or self.data.corpus == "sample":
            return []
        every = [
            (e.context, str(d.emotion)) for d in empathetic_dialogues.load("valid").dialogues for e in d.examples()
        ]
        return every[:: max(1, len(every) // most)][:most]

    def licence(self) -> str:
        """Of the weights: the strictest of what was learnt from."""
        if self.data.empathetic and self.data.corpus != "sample":
            return "CC BY-NC 4.0"  # of EmpatheticDialogues, the strictest of the sources
        return "CC BY 4.0"

    # -- measuring -------------------------------------------------------------------------------------------

    def _read(self, conversations: Sequence[Sequence[Turn]], *, spans: bool = False) -> list[Affect]:
        return AffectOfTurns(self.model, self.reader).read(conversations, spans=spans)

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """See :func:`perception_scores`; on a sample run only the everyday part is measured."""
        is_sample = self.data.corpus == "sample"
        return perception_scores(
            self._read, split, everyday_items(split, self.data), outputs, () if is_sample else OUTSIDE
        )


def teacher_mean(folders: Sequence[Path], conversations: Sequence[Sequence[Turn]]) -> dict[str, Tensor]:
    """What several trained models perceive, on average (Hinton et al. 2015).

    Args:
        folders: Of saved :class:`AffectReader` models.
        conversations: The newest turn last.

    Returns:
        ``emotions`` (conversations, 32) and ``sides`` (conversations, 3), rows that sum to 1. Pleasant and unpleasant
        share what ``mixed`` leaves: half as the side heads say, half by the side of the likely emotions, which is right
        where one of the two alone is not.
    """
    found = [AffectOfTurns.load(folder).read(conversations) for folder in folders]
    emotions = np.mean([[one.emotions for one in own] for own in found], axis=0)
    heads = np.mean([[one.sides for one in own] for own in found], axis=0)
    mass = mass_of_sides(emotions)
    poles = sum(part / np.clip(part.sum(1, keepdims=True), 1e-9, None) for part in (heads[:, :2], mass)) / 2
    sides = np.concatenate([poles * (1 - heads[:, 2:]), heads[:, 2:]], axis=1)
    return {"emotions": torch.from_numpy(emotions).float(), "sides": torch.from_numpy(sides).float()}


def _mixed(gold: Mapping[str, float], names: Sequence[str], taught: np.ndarray, share: float) -> dict[str, float]:
    """A target of which ``share`` is the teachers'; all of it where there is no gold."""
    own = share if gold else 1.0
    return {name: (1 - own) * gold.get(name, 0.0) + own * float(p) for name, p in zip(names, taught, strict=True)}


def _empathetic(data: PerceiveData, text: str, draw: random.Random) -> list[Lesson]:
    """EmpatheticDialogues: situations, or one context of each conversation."""
    corpus = sample if data.corpus == "sample" else empathetic_dialogues
    found = []
    for dialogue in corpus.load("train").dialogues[: data.empathetic_limit]:
        label = {str(dialogue.emotion): 1.0}
        side = _side_of(dialogue.emotion)
        if text == "situation" and dialogue.situation:
            found.append(Lesson((Turn("speaker", dialogue.situation),), label, side))
        if text == "context" and (contexts := [e.context for e in dialogue.examples()]):
            found.append(Lesson(draw.choice(contexts), label, side))
    return found


def everyday_items(split: str, data: PerceiveData) -> tuple[EverydayItem, ...]:
    """The everyday corpus's part, or the sample's."""
    folder = sample.root() / everyday.NAME if data.corpus == "sample" else None
    return everyday.items(split, folder)


def _side_of(emotion: str | None) -> dict[str, float]:
    side = SIDE_OF.get(str(emotion))
    return {side: 1.0} if side else {}


def taught(item: EverydayItem, share: float) -> Lesson:
    """An item as a lesson; ``share`` of the probability goes to the other acceptable labels."""
    others = [name for name in item.acceptable if name != item.dialogue.emotion]
    emotions = {str(item.dialogue.emotion): 1.0 - (share if others else 0.0)}
    emotions |= dict.fromkeys(others, share / max(1, len(others)))
    return Lesson(item.dialogue.turns, emotions, {item.side: 1.0}, item.causes or None)


def _retyped(lesson: Lesson, draw: random.Random) -> Lesson:
    """The same, typed carelessly; cause spans follow their characters."""
    turns, spans = [], []
    for i, turn in enumerate(lesson.turns):
        marks = [False] * len(turn.text)
        for span in lesson.causes or ():
            if span.turn == i:
                marks[span.start : span.end] = [True] * (span.end - span.start)
        text, kept = noisy(turn.text, marks, draw) if turn.role == "speaker" else (turn.text, marks)
        turns.append(Turn(turn.role, text))
        spans += [Span(i, start, end) for start, end in _runs(kept)]
    return Lesson(tuple(turns), lesson.emotions, lesson.sides, None if lesson.causes is None else tuple(spans))


def _runs(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """Stretches of true flags.

    >>> _runs([False, True, True, False, True])
    [(1, 3), (4, 5)]
    """
    edges = np.flatnonzero(np.diff([0, *map(int, flags), 0]))
    return [(int(start), int(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _edos(data: PerceiveData) -> list[Lesson]:
    """Film dialogues whose last turn has one of the 32 emotions; who speaks last becomes the speaker."""
    out = []
    for dialogue in CORPORA.get("edos")("all").dialogues[: data.extra_limit]:
        if dialogue.emotion in EMOTIONS:
            turns = speaker_last(dialogue.turns)
            out.append(Lesson(turns, {str(dialogue.emotion): 1.0}, _side_of(dialogue.emotion)))
    return out


def _emobank(data: PerceiveData) -> list[Lesson]:
    """Sentences whose valence, as raters gave it (1 to 5), is well off the middle: sides alone."""
    path = find_corpus_file("lexicons", "emobank.csv")
    out = []
    for row in CsvRows(read_text(path), path):
        valence = float(row["V"])
        if row["split"] == "train" and row["text"].strip() and not 2.75 < valence < 3.25:
            side = "pleasant" if valence > 3 else "unpleasant"
            out.append(Lesson((Turn("speaker", row["text"]),), {}, {side: 1.0}))
    return out[: data.extra_limit]


def _reccon(data: PerceiveData) -> list[Lesson]:
    """DailyDialog turns with their cause spans: words alone."""
    examples, causes = reccon.as_examples("train", None)
    out = []
    for example in examples[: data.extra_limit]:
        last = len(example.context) - 1
        found = (span for span in causes[example.dialogue_id, last].spans if span.turn <= last)
        spans = tuple(span for span in found if example.context[span.turn].role == "speaker")
        if spans:
            out.append(Lesson(example.context, {}, {}, spans, data.reccon == "spans"))
    return out


_EXTRA: Mapping[str, Callable[[PerceiveData], list[Lesson]]] = {"edos": _edos, "emobank": _emobank, "reccon": _reccon}


def speaker_last(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """The same conversation with the roles such that the last turn is the speaker's."""
    teller = turns[-1].role
    return tuple(Turn("speaker" if turn.role == teller else "listener", turn.text) for turn in turns)


# -- scores --------------------------------------------------------------------------------------------------

OUTSIDE = ("empathetic_dialogues", "edos", "meld", "emorynlp", "dailydialog", "reccon")
ReadAffect = Callable[..., Sequence[Affect]]
"""Conversations to what is perceived at their last turn; ``spans=True`` scores words as parts of whole spans."""


def perception_scores(
    read: ReadAffect,
    split: str,
    items: Sequence[EverydayItem],
    outputs: Path | None = None,
    outside: Sequence[str] = OUTSIDE,
) -> dict[str, object]:
    """What a perception is worth: on everyday texts, on EmpatheticDialogues, and on text it has not learnt from.

    Args:
        read: Conversations to what is perceived at their last turn.
        split: ``valid`` or ``test``, of every corpus that has it.
        items: Everyday conversations.
        outputs: File for one JSON line an item.
        outside: Of :data:`OUTSIDE`; a corpus that is not here is named under ``not measured``.

    Returns:
        Scores by name. ``acceptable``: the likeliest label is one a careful reader accepts; ``side``: the likelier of
        pleasant and unpleasant is right, where the gold side is one of these; ``... unnamed``: of texts that name no
        feeling. ``causes ...``: words, in the speaker's turns of items with gold cause words; ``causes shown ...``: the
        words of the phrases that a person sees. ``reccon words ...``: words inside RECCON's causal turns (see
        :func:`.word_marks.reccon_scores`). ``NAME six``: the six emotions of another corpus, by the sum of the 32
        (:data:`SIX`).
    """
    found = read([item.dialogue.turns for item in items])
    scores = _everyday_scores(items, found)
    missing = []
    for name in outside:
        try:
            scores |= _outside_scores(name, split, read)
        except MissingResourceError:
            missing.append(name)
    if missing:
        scores["not measured"] = missing
    write_rows(outputs, map(_row, items, found))
    return scores


def _everyday_scores(items: Sequence[EverydayItem], found: Sequence[Affect]) -> dict[str, object]:
    pairs = list(zip(items, found, strict=True))
    scores = _label_scores("everyday", pairs)
    if unnamed := [(item, one) for item, one in pairs if not item.names_feeling]:
        scores |= _label_scores("everyday unnamed", unnamed)
    probabilities = np.stack([f.emotions for f in found])
    accepted = np.array([f.emotion in i.accepted for i, f in pairs])
    scores["everyday: confidence"] = round(100 * float(probabilities.max(1).mean()), 2)
    scores["everyday: calibration of acceptable"] = round(calibration(probabilities.max(1), accepted), 2)
    told = [(i, f) for i, f in pairs if i.causes and f.words]
    if told:
        marked = word_scores([word_marks.pairs(f.words, i.causes) for i, f in told], found[0].threshold)
        shown = [list(zip(flags(f.words, f.causes), flags(f.words, i.causes), strict=True)) for i, f in told]
        scores |= {f"everyday: causes {key}": value for key, value in marked.items()}
        scores |= {f"everyday: causes shown {key}": value for key, value in marked_scores(shown).items()}
    return scores


def _label_scores(name: str, pairs: Sequence[tuple[EverydayItem, Affect]]) -> dict[str, object]:
    """Shares of texts with an acceptable label, with the first label, and (unless mixed) with the right side."""
    if not pairs:
        return {}
    gold = [str(i.dialogue.emotion) for i, _ in pairs]
    said = [f.emotion for _, f in pairs]
    right = [g if s in i.accepted else s for g, s, (i, _) in zip(gold, said, pairs, strict=True)]
    scores: dict[str, object] = {
        f"{name}: acceptable": _score(f"{name}: acceptable", right, gold),
        f"{name}: label": _score(f"{name}: label", said, gold),
    }
    if sided := [(i.side, f.pole) for i, f in pairs if i.side != "mixed"]:
        key = f"{name}: side"
        scores[key] = _score(key, [pole for _, pole in sided], [side for side, _ in sided])
    return scores


def _outside_scores(name: str, split: str, read: ReadAffect) -> dict[str, object]:
    if name == "empathetic_dialogues":
        return _contexts_scores(name, split, read)
    if name == "edos":
        return _film_scores(read)
    if name == "reccon":
        return reccon_scores(partial(read, spans=True), split)
    return _six_scores(name, split, read)


def _contexts_scores(name: str, split: str, read: ReadAffect) -> dict[str, object]:
    """Every context of EmpatheticDialogues, its conversation's emotion."""
    contexts = [(e.context, str(d.emotion)) for d in CORPORA.get(name)(split).dialogues for e in d.examples()]
    found = read([context for context, _ in contexts])
    probabilities = np.stack([f.emotions for f in found]).astype(np.float64)
    gold = np.array([EMOTIONS.index(label) for _, label in contexts])
    metric = CalibrationError()
    metric.update(probabilities, gold)
    return {
        f"{name}: accuracy": _score(f"{name}: accuracy", probabilities.argmax(1), gold),
        f"{name}: calibration_error": {**metric.compute().to_dict(), "name": f"{name}: calibration_error"},
    }


def _film_scores(read: ReadAffect) -> dict[str, object]:
    """EDOS's film dialogues whose label is an emotion."""
    rows = [(speaker_last(d.turns), d.emotion) for d in CORPORA.get("edos")("crowd").dialogues]
    rows = [(turns, label) for turns, label in rows if label in EMOTIONS]
    found = read([turns for turns, _ in rows])
    return {"edos: accuracy": _score("edos: accuracy", [f.emotion for f in found], [str(g) for _, g in rows])}


def _six_scores(name: str, split: str, read: ReadAffect) -> dict[str, object]:
    """A corpus with other labels, as RECCON's six: each turn with those before it, and alone."""
    corpus, table = CORPORA.get(name)(split if name == "dailydialog" else "all"), SIX[name]
    rows = [
        (speaker_last(d.turns[: i + 1]), table[label])
        for d in corpus.dialogues
        if name == "dailydialog" or d.source.endswith(f"/{split}")
        for i, label in enumerate(corpus.turn_labels.get(d.id, ()))
        if label in table
    ]
    found = read([turns for turns, _ in rows])
    probabilities = np.stack([six_of(f.emotions) for f in found])
    gold = np.array([RECCON_EMOTIONS.index(label) for _, label in rows])
    alone = np.stack([six_of(f.emotions) for f in read([turns[-1:] for turns, _ in rows])])
    right = probabilities.argmax(1) == gold
    return {
        f"{name} six: accuracy": _score(f"{name} six: accuracy", probabilities.argmax(1), gold),
        f"{name} six: accuracy of the turn alone": _score(f"{name} six: alone", alone.argmax(1), gold),
        f"{name} six: majority": round(100 * float(np.bincount(gold).max() / len(gold)), 2),
        f"{name} six: calibration_error": round(calibration(probabilities.max(1), right), 2),
    }


def six_of(emotions: np.ndarray) -> np.ndarray:
    """RECCON's six from the 32, by summing. Shapes: (32,) -> (6,)."""
    return np.bincount(_SIX_INDEX, weights=emotions, minlength=len(RECCON_EMOTIONS))


def calibration(confidence: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error in percent points over bins of equal width.

    Args:
        confidence: In [0, 1]. Shape: (n,).
        right: Shape: (n,), bool.
        bins: How many.
    """
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        abs(confidence[place == b].mean() - right[place == b].mean()) * (place == b).sum()
        for b in range(bins)
        if (place == b).any()
    ]
    return 100 * float(sum(gaps) / len(confidence))


def _score(name: str, said: Any, gold: Any) -> dict[str, object]:
    return scored(name, Accuracy(), said, gold)


def _row(item: EverydayItem, found: Affect) -> dict[str, object]:
    best = np.argsort(-found.emotions, kind="stable")[:3]
    return {
        "id": item.dialogue.id,
        "text": [turn.text for turn in item.dialogue.turns],
        "gold": sorted(item.accepted),
        "predicted": {EMOTIONS[i]: round(float(found.emotions[i]), 3) for i in best},
        "side": [item.side, found.side, round(float(found.sides.max()), 3)],
        "causes": [[s.of(item.dialogue.turns) for s in item.causes], [s.of(item.dialogue.turns) for s in found.causes]],
    }
