"""The language model's task: replies of EmpatheticDialogues from prompts, zero-shot, conditioned or tuned by LoRA.

Measured as the other systems are: words counted by the family's rules, replies scored teacher-forced after the prompt
(which costs nothing), decoded, and compared on lower-case words. The reply is scored as it was written, with its
capitals and punctuation, in the model's own pieces.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from transformers.trainer_utils import set_seed

from empatheia.errors import CheckpointError, ConfigError
from empatheia.reading import read_record
from empatheia.records.dialogue import Dialogue, Example
from empatheia.settings import read_yaml
from empatheia.taxonomy import EMOTIONS
from empatheia.text.prompts import Hints, Wording, read_reply
from empatheia.text.words import tokenize_words
from empatheia.voices.language_endpoint import EndpointReplies, open_endpoint
from empatheia_research.corpora import CORPORA
from empatheia_research.corpora.licences import LICENCES
from empatheia_research.pretrained import load_pretrained, load_weights
from empatheia_research.recipes.data import PromptData
from empatheia_research.recipes.recipe import Recipe, StageConfig, validate_recipe
from empatheia_research.responders.language_model import LanguageModel, LanguageModelConfig, load_tokenizer, make_reader
from empatheia_research.text.prompt_pieces import PromptItem, train_prompt_pieces, whole_conversations
from empatheia_research.training.evaluation import Measured, likelihood_scores, reply_scores
from empatheia_research.training.stages import StageData
from empatheia_research.training.tasks.base import Task, checksum, write_description, write_rows
from empatheia_research.voices.hints import Conditioner


class PromptTask(Task):
    """Builds a language model from a recipe, tunes it if the recipe has stages, and measures it.

    Args:
        recipe: Of task ``prompt``.
        folder: The run's.
        checkpoint: A model folder to take up in place of building one.
    """

    systems = ("language_model",)
    data: PromptData

    def __init__(self, recipe: Recipe, folder: Path, checkpoint: Path | None = None) -> None:
        self.checkpoint = checkpoint
        super().__init__(recipe, folder)

    def build(self) -> None:
        """The model on its base, behind an endpoint, or with random weights."""
        recipe = self.recipe
        self.check_fields(LanguageModelConfig)
        self._dialogues: dict[str, list[Dialogue]] = {}
        self._hints: dict[str, list[Hints]] = {}
        self._conditioner: Conditioner | None = None
        _check_decoding(recipe)
        fields: dict[str, Any] = dict(recipe.model) | {"tuned": bool(recipe.stages)}
        if recipe.model.get("form") == "endpoint":
            if recipe.stages:
                raise self.refusal("a model behind an endpoint cannot be trained; drop stages.")
            self.model = LanguageModel(LanguageModelConfig(**fields))
            return
        if self.checkpoint is not None:
            self.tokenizer = load_tokenizer(self.checkpoint)
            self.model = load_pretrained(LanguageModel, self.checkpoint)
        else:
            self.tokenizer = load_tokenizer(self.made_once("tokenizer", self._make_tokenizer))
            if fields.get("base") is None and fields.get("base_config") is not None:
                fields["base_config"] = self._fitted(fields["base_config"])
            self.model = LanguageModel.build(LanguageModelConfig(**fields))
        self.reader = make_reader(self.model.config, self.model, self.tokenizer)

    def _make_tokenizer(self) -> Any:
        """The base's own; for a model with random weights byte-level pieces of the training text."""
        base = self.recipe.model.get("base")
        if base is not None:
            return load_tokenizer(base)
        texts = (turn.text for d in self.dialogues("train") for turn in d.turns)
        return train_prompt_pieces(texts, self.recipe.tokenizer.size)

    def _fitted(self, settings: dict[str, Any]) -> dict[str, Any]:
        """A configuration of a model to build, with the size and the marks of its pieces."""
        own = self.tokenizer
        marks = {"pad_token_id": own.pad_token_id, "eos_token_id": own.eos_token_id, "bos_token_id": own.eos_token_id}
        if self.recipe.model.get("form") == "seq2seq":
            marks["decoder_start_token_id"] = own.pad_token_id
        return {"vocab_size": len(own), **marks, **settings}

    # -- data ------------------------------------------------------------------------------------------------

    def dialogues(self, split: str) -> list[Dialogue]:
        """The conversations of a split, limited as the recipe says; those of ``extra``, too, but for measuring."""
        if split not in self._dialogues:
            limit = getattr(self.data, f"{split}_limit")
            corpora = (self.data.corpus, *(self.data.extra if split != "test" else ()))
            loaded = [d for name in corpora for d in list(CORPORA.get(name)(split).dialogues)[:limit]]
            self._dialogues[split] = loaded
        return self._dialogues[split]

    def examples(self, split: str) -> list[Example]:
        """Contexts and replies of a split."""
        return [e for d in self.dialogues(split) for e in d.examples(self.data.roles, max_context_words=512)]

    def hints(self, split: str, examples: Sequence[Example]) -> list[Hints]:
        """What our analysis finds in the contexts; nothing for a zero-shot recipe."""
        if not self.data.shown:
            return [Hints()] * len(examples)
        if split not in self._hints:
            if self._conditioner is None:
                data = self.data
                self._conditioner = Conditioner(data.shown, data.analyst, data.reaction, data.labeller)
            self._hints[split] = self._conditioner.hints(examples)
        return self._hints[split]

    def encode(self, split: str) -> list[PromptItem]:
        """Prompts and replies of a split in pieces: of each reply, or of whole conversations."""
        examples = self.examples(split)
        found: list[Any] = list(self.hints(split, examples))
        if split == "train" and self.data.hidden:
            found = [Hints() if self._is_hidden(e) else own for e, own in zip(examples, found, strict=True)]
        if self.data.items == "conversations":
            found = _of_earlier_turns(examples, found)
        items = [self.reader.encode(e, own) for e, own in zip(examples, found, strict=True)]
        return whole_conversations(items) if self.data.items == "conversations" else items

    def _is_hidden(self, example: Example) -> bool:
        """Whether nothing is shown of a training turn; the same in every run of a seed."""
        drawn = random.Random(f"{self.recipe.seed} {example.dialogue_id} {example.turn_index}")
        return drawn.random() < self.data.hidden

    def stage_data(self, stage: StageConfig) -> StageData:
        """Items of a stage.

        Raises:
            ConfigError: The stage overrides data, which this task does not know.
        """
        if stage.data:
            raise ConfigError(f"stage {stage.name!r}: task prompt takes no data of a stage; set it in data.")
        train, valid = self.encode("train"), self.encode("valid")
        digest = checksum(repr((item.prompt, item.reply)) for item in train)
        self.record[stage.name] = {"train": len(train), "valid": len(valid), "checksum": digest}
        lengths = ([len(item) for item in items] for items in (train, valid))
        return StageData(train, next(lengths), valid, next(lengths), self.reader.learning_batch)

    # -- results ---------------------------------------------------------------------------------------------

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        """Weights saved after a stage, over those of the base."""
        return {**self.model.state_dict(), **load_weights(folder / "model.safetensors")}

    def save_reader(self, folder: Path) -> None:
        """The pieces; those of an endpoint are not ours."""
        if self.model.config.form != "endpoint":
            self.tokenizer.save_pretrained(folder)

    def save(self, folder: Path) -> None:
        """What was learnt, the name of the base, the pieces, the description."""
        self.save_model(folder)
        weights = "model.safetensors" if (folder / "model.safetensors").is_file() else ""
        facts = {"emotions": list(EMOTIONS), "weights": weights}
        facts |= {name: getattr(self.data, name) for name in ("shown", "analyst", "reaction", "labeller")}
        self.save_reader(folder)
        write_description(folder, self.recipe, {**facts, "licence": self._licence()})

    def _licence(self) -> str:
        corpora = (self.data.corpus, *self.data.extra) if self.recipe.stages else ()
        learnt = "; ".join(dict.fromkeys(LICENCES[name].licence for name in corpora if name in LICENCES))
        config = self.model.config
        base = config.llm if config.form == "endpoint" else config.base
        return "; ".join(filter(None, (learnt, f"that of {base}" if base else "")))

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, Any]:
        """Perplexities (not behind an endpoint), BLEU and Distinct of the replies, tokens and cost."""
        examples = [e for e in self.examples(split) if e.response is not None]
        found = self.hints(split, examples)
        if self.model.config.form == "endpoint":
            scores, replies, facts = [], *self._asked(examples, found)
        else:
            scores, replies, facts = self._measured(examples, found)
        words = [_words(reply) for reply in replies]
        references = [_words(example.response or "") for example in examples]
        scores += reply_scores(words, references)
        write_rows(
            outputs,
            (
                {"id": example.dialogue_id, "turn": example.turn_index, "hyp": hyp, "ref": ref, "reply": reply}
                | ({"shown": hints.to_dict()} if self.data.shown else {})
                for example, hints, reply, hyp, ref in zip(examples, found, replies, words, references, strict=True)
            ),
        )
        wording = Wording.of(self.model.config.wording).fingerprint
        shown = {} if self._conditioner is None else self._conditioner.names
        result: dict[str, Any] = {score.name: score.to_dict() for score in scores}
        result["decoding"] = {
            **self.recipe.decoding.model_dump(),
            "replies": len(replies),
            "mean_words": round(sum(len(text.split()) for text in words) / max(1, len(words)), 2),
            "distinct_replies": len(set(words)),
            "empty_replies": sum(not text for text in words),
            "prompt": wording,
            "shown": shown,
            **facts,
        }
        return result

    def _measured(self, examples: Sequence[Example], found: Sequence[Hints]) -> tuple[list[Any], list[str], dict]:
        self.model.eval()
        items = [self.reader.encode(e, h) for e, h in zip(examples, found, strict=True)]
        costs = self.model.nats(self.reader, items)
        nll, n_tokens = (np.array(column) for column in zip(*costs, strict=True))
        measured: Any = Measured(nll, n_tokens, None, None)
        scores = likelihood_scores(measured, items, examples, self.reader)
        set_seed(self.recipe.decoding.seed)
        begun = time.perf_counter()
        settings = self.recipe.decoding.generate_settings()
        replies = [""] * len(items)
        for i, pieces in self.model.answers(self.reader, items, lambda _: settings):
            replies[i] = read_reply(self.reader.decode(pieces))
        rate = len(replies) / max(time.perf_counter() - begun, 1e-9)
        return scores, replies, {"replies_per_second": round(rate, 2)}

    def _asked(self, examples: Sequence[Example], found: Sequence[Hints]) -> tuple[list[str], dict[str, Any]]:
        """Replies of the endpoint; answers lie in ``answers.jsonl`` of the run, so that a stop costs nothing."""
        decoding = self.recipe.decoding
        sampled = {"temperature": decoding.temperature, "top_p": decoding.top_p, "seed": decoding.seed}
        asked: EndpointReplies = open_endpoint(self.model.config, journal=self.folder / "answers.jsonl")
        options = {"max_tokens": decoding.max_new_tokens, **(sampled if decoding.strategy == "sample" else {})}
        answers = list(asked.stream(zip(examples, found, strict=True), **options))
        usage = asked.ledger.total.to_dict()
        facts = {"usage": usage, "served": sorted({answer.served for answer in answers})}
        return [answer.reply for answer in answers], facts


class PromptRun:
    """A finished run's folder or its checkpoint, opened for measuring anew.

    Args:
        folder: Run folder, or the model folder in it.

    Raises:
        CheckpointError: It holds no language model.
    """

    def __init__(self, folder: Path) -> None:
        place = folder / "checkpoint" if (folder / "checkpoint").is_dir() else folder
        try:
            self.meta = read_record(place / "empatheia.json")
        except (OSError, ValueError) as problem:
            raise CheckpointError(f"{place} is not a run of a language model: {problem}.") from None
        self.recipe = validate_recipe(read_yaml(place / "recipe.yaml"), str(place / "recipe.yaml"))
        self.task = PromptTask(self.recipe, folder, place)

    def evaluate(self, split: str = "test", outputs: Path | None = None) -> dict[str, Any]:
        """All metrics on a split, as at the end of the run."""
        return self.task.evaluate(split, outputs)


def _of_earlier_turns(examples: Sequence[Example], found: Sequence[Hints]) -> list[list[Hints | None]]:
    """What is shown of each turn of a context: of earlier ones what was shown when they were the newest."""
    shown: dict[tuple[str, int], Hints] = {}
    out = []
    for example, own in zip(examples, found, strict=True):
        end = example.turn_index
        shown[example.dialogue_id, end - 1] = own
        out.append([shown.get((example.dialogue_id, turn)) for turn in range(end - len(example.context), end)])
    return out


def _words(text: str) -> str:
    return " ".join(word.text for word in tokenize_words(text))


def _check_decoding(recipe: Recipe) -> None:
    """Raises ConfigError for a way to decode that would be passed over in silence."""
    served, decoding = recipe.model.get("form") == "endpoint", recipe.decoding
    who = "a model behind an endpoint" if served else "a language model"
    accepted = ("greedy", "sample") if served else ("greedy", "sample", "beam")
    if decoding.strategy not in accepted:
        raise ConfigError(
            f"decoding.strategy is {decoding.strategy!r}; {who} accepts {', '.join(accepted[:-1])} and {accepted[-1]}."
        )
    if served and (decoding.no_repeat_ngram_size or decoding.top_k):
        raise ConfigError(f"decoding: {who} takes no top_k and no no_repeat_ngram_size; leave them out.")
