"""What task ``focus`` measures on: contexts, their target words and their distractors, made once and kept with the run.

Everything follows from the corpus, the seeds and the estimator; a stopped run that goes on reads the file.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transformers.utils import logging as transformers_logging

from empatheia.analysis.targets import ScoredTargets, Targets
from empatheia.errors import DataError
from empatheia.reading import read_record
from empatheia.records.dialogue import Dialogue, Example, Span
from empatheia.resources import file_sha256
from empatheia.writing import write_atomically
from empatheia_research.corpora import CORPORA, sample
from empatheia_research.decoding.distractors import DISTRACTORS, Contrast, Distractors
from empatheia_research.decoding.turn_pool import TurnPool, turn_pool
from empatheia_research.recipes.data import JudgedData
from empatheia_research.understanding.words.turns import EstimatorWords, WordsOfTurns

FILE = "contexts.json"
_AT_ONCE = 64


@dataclass(frozen=True)
class FocusContexts:
    """Contexts with gold replies, and what they are focused on and told from.

    Attributes:
        examples: Contexts and gold replies.
        targets: Of each.
        contrasts: Kind to the distractors of each context; None where there are none (no target word).
        fresh: Others, which no speaker was focused with, for the listener.
    """

    examples: tuple[Example, ...]
    targets: tuple[Targets, ...]
    contrasts: Mapping[str, tuple[Contrast | None, ...]]
    fresh: tuple[Contrast | None, ...]

    @cached_property
    def dialogues(self) -> list[Dialogue]:
        """The contexts as conversations."""
        return [Dialogue(e.dialogue_id, e.context, e.emotion) for e in self.examples]

    @cached_property
    def gold(self) -> list[str]:
        """The gold replies."""
        return [example.response or "" for example in self.examples]

    @cached_property
    def checksum(self) -> str:
        """Of all of it."""
        told = [(e.dialogue_id, e.turn_index, e.response) for e in self.examples]
        return hashlib.sha256(repr((told, self.targets, self.contrasts, self.fresh)).encode()).hexdigest()[:16]

    @property
    def distractors(self) -> dict[str, str]:
        """How each kind was made; empty where no context has any."""
        return {kind: next((c.kind for c in own if c is not None), "") for kind, own in self.contrasts.items()}

    def counts(self) -> dict[str, object]:
        """For the record."""
        kinds = {kind: sum(c is not None for c in own) for kind, own in self.contrasts.items()}
        return {
            "contexts": len(self.examples),
            "with target words": sum(bool(own.spans) for own in self.targets),
            "mean target words": round(sum(len(own.spans) for own in self.targets) / max(1, len(self.targets)), 2),
            "target words found by": self.targets[0].source,
            "with distractors": kinds,
            "distractors": self.distractors,
            "fresh distractors": next((c.kind for c in self.fresh if c is not None), ""),
            "checksum": self.checksum,
        }


def chosen_examples(data: JudgedData) -> list[Example]:
    """The contexts that are answered, in the order of the corpus; those without a speaker turn are left out.

    Raises:
        DataError: There is none.
    """
    dialogues = CORPORA.get(data.corpus)(data.split).dialogues[: getattr(data, f"{data.split}_limit")]
    found = [e for d in dialogues for e in d.examples() if any(turn.role == "speaker" for turn in e.context)]
    if not found:
        raise DataError(f"the {data.split} split of {data.corpus} has no context that ends before a listener's reply.")
    if data.contexts is None or data.contexts >= len(found):
        return found
    drawn = random.Random(data.contexts_seed).sample(range(len(found)), data.contexts)
    return [found[i] for i in sorted(drawn)]


def focus_contexts(
    data: JudgedData, folder: Path, estimator: Path | None, masked: Path | None, device: str = "cpu"
) -> FocusContexts:
    """The contexts of a recipe with targets and distractors; kept in ``contexts.json`` of the run folder.

    Args:
        data: Of the recipe.
        folder: The run's.
        estimator: Folder of ``data.estimator``.
        masked: Folder of ``data.masked``.
        device: Where the models run.
    """
    examples = chosen_examples(data)
    origin = _origin(data, examples, estimator, masked)
    file = folder / FILE
    if file.is_file():
        record = read_record(file)
        if record["origin"] == origin:
            return _read(record, examples)
    made = _made(data, examples, estimator, masked, device)
    write_atomically(file, json.dumps(_record(made, origin), ensure_ascii=False))
    return made


def _made(
    data: JudgedData, examples: Sequence[Example], estimator: Path | None, masked: Path | None, device: str
) -> FocusContexts:
    dialogues = [Dialogue(e.dialogue_id, e.context, e.emotion) for e in examples]
    words = None if estimator is None else WordsOfTurns.load(estimator, device=device)
    scorer = None if words is None else words.scorer
    finder = ScoredTargets(WordsOfTurns.load(method="rake") if data.words == "rake" or words is None else words)
    pool = turn_pool(sample.NAME if data.corpus == sample.NAME else "auto")
    makers = {kind: _maker(kind, data.distractors_seed, pool, scorer, masked) for kind in data.kinds}
    fresh = _maker(data.fresh_kind, data.fresh_seed, pool, scorer, masked)
    targets: list[Targets] = []
    contrasts: dict[str, list[Contrast | None]] = {kind: [] for kind in ("", *makers)}
    bar: Any = transformers_logging.tqdm(total=len(dialogues), desc="targets and distractors", unit="context")
    with bar:
        for start in range(0, len(dialogues), _AT_ONCE):
            if isinstance(scorer, EstimatorWords):
                scorer.memory = {}  # what is read for targets is not read again for distractors
            part = finder.find(dialogues[start : start + _AT_ONCE])
            targets += part
            for kind, maker in {"": fresh, **makers}.items():
                found = maker.make(part, data.worlds, strict=False)
                contrasts[kind] += [c if own.spans else None for c, own in zip(found, part, strict=True)]
            bar.update(len(part))
    of_listener = tuple(contrasts.pop(""))
    return FocusContexts(
        tuple(examples), tuple(targets), {kind: tuple(own) for kind, own in contrasts.items()}, of_listener
    )


def _maker(kind: str, seed: int, pool: TurnPool, scorer: Any, masked: Path | None) -> Distractors:
    if kind == "random":
        return DISTRACTORS.get(kind)(pool, seed=seed)
    if kind == "masked":
        return DISTRACTORS.get(kind).load(str(masked), seed=seed, vocabulary=pool.words)
    form = "repo" if kind == "repo" else "clean"
    return DISTRACTORS.get("gee")(scorer, form, seed=seed, vocabulary=pool.words if form == "clean" else None)


# -- kept with the run ---------------------------------------------------------------------------------------


def _origin(data: JudgedData, examples: Sequence[Example], *models: Path | None) -> str:
    """What the file must have been made from."""
    weights = [file_sha256(file) for place in models if place and (file := place / "model.safetensors").is_file()]
    told = [(e.dialogue_id, e.turn_index, [turn.text for turn in e.context], e.response) for e in examples]
    names = ("words", "kinds", "distractors_seed", "worlds", "fresh_kind", "fresh_seed")
    settings = [getattr(data, name) for name in names]
    return hashlib.sha256(repr((settings, weights, told)).encode()).hexdigest()[:16]


def _record(made: FocusContexts, origin: str) -> dict[str, object]:
    def told(contrast: Contrast | None) -> Any:
        return None if contrast is None else [contrast.texts[1:], contrast.replaced, contrast.kind]

    return {
        "origin": origin,
        "targets": [
            [own.text, [[s.start, s.end, s.score] for s in own.spans], own.turn, own.emotion, own.source]
            for own in made.targets
        ],
        "contrasts": {kind: list(map(told, own)) for kind, own in made.contrasts.items()},
        "fresh": list(map(told, made.fresh)),
    }


def _read(record: Mapping[str, Any], examples: Sequence[Example]) -> FocusContexts:
    targets = [
        Targets(text, tuple(Span(turn, *span) for span in spans), turn, emotion, source)
        for text, spans, turn, emotion, source in record["targets"]
    ]

    def contrasts(rows: Sequence[Any]) -> tuple[Contrast | None, ...]:
        return tuple(
            None if row is None else Contrast((own.text, *row[0]), own, tuple(map(tuple, row[1])), row[2])
            for own, row in zip(targets, rows, strict=True)
        )

    kinds = {kind: contrasts(rows) for kind, rows in record["contrasts"].items()}
    return FocusContexts(tuple(examples), tuple(targets), kinds, contrasts(record["fresh"]))
