"""The responders' example source: conversations of a corpus, pooled or curated, and what training adds to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from empatheia.errors import ConfigError
from empatheia.reading import read_record
from empatheia.records.dialogue import Dialogue, Example, Turn
from empatheia.registry import nearest
from empatheia_research.corpora import CORPORA, conversations, curated, pooled, sample
from empatheia_research.corpora.licences import LICENCES, licence, licence_text
from empatheia_research.recipes.data import DataConfig
from empatheia_research.recipes.recipe import Recipe, StageConfig, stage_data_config
from empatheia_research.side_inputs import SIDE_INPUTS
from empatheia_research.training.initial_weights import started_from
from empatheia_research.training.sources.feedback import answered

OUR_TERMS = "CC BY-NC 4.0"  # of weights that learnt from EmpatheticDialogues
_UNDER_OUR_TERMS = ("empathetic_dialogues", sample.NAME, curated.NAME)


class Conversations:
    """What a responder learns from and answers.

    Args:
        recipe: Whose ``data``, or that of its stages, names them.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._dialogues: dict[tuple[str, str, int | None], list[Dialogue]] = {}

    def of_stage(self, stage: StageConfig) -> DataConfig:
        """The data block of a stage."""
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

    def texts(self) -> Iterable[str]:
        """Vocabulary text in the family's order: contexts and targets, then situations, split by split."""
        for split in self.recipe.tokenizer.splits:
            dialogues = self.dialogues(self.recipe.data, split)
            yield from _turn_texts(dialogues)
            yield from (dialogue.situation for dialogue in dialogues if dialogue.situation)
            if split == "train":
                yield from self._more_texts()

    def _more_texts(self) -> Iterator[str]:
        """Vocabulary text of what is learnt from besides the corpus: more conversations, side inputs, a pool."""
        names = {name for stage in self.recipe.stages for name in self.of_stage(stage).extra}
        for name in sorted(names):
            yield from _turn_texts(conversations.load(name))
        for name, settings in self.recipe.data.side_inputs.items():  # words a side input must find there
            yield from getattr(SIDE_INPUTS.get(name), "vocabulary", lambda **_: ())(**settings)
        if self.recipe.tokenizer.pool:
            yield from _turn_texts(pooled.load(self.recipe.tokenizer.pool, "train"))


def _turn_texts(dialogues: Iterable[Dialogue]) -> Iterator[str]:
    return (turn.text for dialogue in dialogues for turn in dialogue.turns)


def _short_memory(examples: list[Example], n_turns: int = 3) -> list[Example]:
    """Extra corpora have long dialogues: keep the last turns only."""
    return [replace(example, context=example.context[-n_turns:]) for example in examples]


def licence_of(recipe: Recipe, used: Sequence[DataConfig]) -> str:
    """Licence of weights that learnt from anything but EmpatheticDialogues, those they started from included.

    Args:
        recipe: Of the run.
        used: Data blocks of its stages.
    """
    names = {name for data in used for name in data.extra + data.pool}
    terms = [f"{name}: {licence_text(name)}" for name in sorted(names) if name in CORPORA]
    shut = [name for name in sorted(names) if name in LICENCES and not licence(name).may_train_released_weights]
    if shut:
        terms.append(f"not to be passed on, because of {', '.join(shut)}")
    if recipe.start is not None and (earlier := _earlier_terms(started_from(recipe) / "empatheia.json")):
        terms.append(earlier)
    corpus = recipe.data.corpus
    own = licence_text(corpus) if corpus in CORPORA and corpus not in _UNDER_OUR_TERMS else OUR_TERMS
    return "; ".join([own, *terms]) if terms or own != OUR_TERMS else ""


def _earlier_terms(path: Path) -> str:
    """What the weights it started from add to the licence; empty for nothing."""
    meta = read_record(path) if path.is_file() else {}
    earlier = str(meta.get("licence", "")).removeprefix(OUR_TERMS).removeprefix("; ")
    return f"started from {meta.get('name', path.parent)} ({earlier})" if earlier else ""
