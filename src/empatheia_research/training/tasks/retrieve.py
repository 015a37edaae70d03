"""The task of Rashkin et al.'s retrieval systems: learn which reply fits, measure P@1,100 and the replies chosen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import AutoConfig

from empatheia.metrics import METRICS
from empatheia.metrics.retrieval import BlockProtocol, block_scores, candidate_blocks
from empatheia.metrics.score import Score
from empatheia.records.dialogue import Example
from empatheia.resources import resolve_model
from empatheia.taxonomy import EMOTIONS, IGNORED
from empatheia.text.words import tokenize_words
from empatheia_research.corpora import conversations
from empatheia_research.corpora.licences import licence_text
from empatheia_research.decoding.reply_index import ReplyIndex, candidate_texts
from empatheia_research.decoding.retrieving import PairReader, Row, vectors_of
from empatheia_research.pretrained import load_pretrained
from empatheia_research.recipes.data import RetrieveData
from empatheia_research.recipes.recipe import StageConfig
from empatheia_research.responders.rashkin_retrieval import RashkinRetrieval, RetrievalConfig
from empatheia_research.side_inputs.external_vectors import ExternalVectors
from empatheia_research.side_inputs.prepended_labels import PrependedLabels
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.text.vectors import distil_vectors, load_vectors
from empatheia_research.training.evaluation import emotion_scores, reply_scores
from empatheia_research.training.sources import CorpusSource
from empatheia_research.training.stages import StageData
from empatheia_research.training.tasks.base import Task, checksum, scored, write_rows

BLOCK = 100
SHUFFLE_SEED = 0
OWN = "own"
_INDEX = {name: i for i, name in enumerate(EMOTIONS)}


class RetrieveTask(Task):
    """Trains and measures a :class:`RashkinRetrieval`, and builds the index it answers from."""

    systems = ("rashkin_retrieval",)
    fixed = ("prepend", "external")
    data: RetrieveData

    def build(self) -> None:
        """Pieces, vectors beside them, the network and its reader."""
        self.source = CorpusSource(self.data.corpus)
        if not 1 <= (k := int(self.data.prepend.get("k", 1))) <= len(EMOTIONS):
            raise self.refusal(f"data.prepend.k={k}; accepted: 1 to {len(EMOTIONS)}.")
        self.check_fields(RetrievalConfig)
        self._index: ReplyIndex | None = None
        self.tokenizer = DialogueTokenizer.from_pretrained(self.made_once("tokenizer", self._learn_tokenizer))
        self.tokenizer.remember()
        self.external = ExternalVectors(**self.data.external)
        self.model = self._make_model()
        labels = PrependedLabels(self.tokenizer, **self.data.prepend)
        self.reader = PairReader(self.tokenizer, self.model.config, labels, self.external)

    # -- parts -----------------------------------------------------------------------------------------------

    def _learn_tokenizer(self) -> DialogueTokenizer:
        settings = self.recipe.tokenizer
        if settings.kind == "hf":
            if self.recipe.encoder is None:
                raise self.refusal("tokenizer.kind=hf needs `encoder`.")
            return DialogueTokenizer.from_hf(resolve_model(self.recipe.encoder))
        if settings.kind == "bpe":
            return DialogueTokenizer.train_bpe(self._texts(), size=settings.size)
        return DialogueTokenizer.train_words(  # cased words of the released code
            self._texts(), min_count=settings.min_count, style="rashkin"
        )

    def _texts(self) -> list[str]:
        texts = [
            turn.text
            for split in self.recipe.tokenizer.splits
            for d in self.source.read(split).dialogues
            for turn in d.turns
        ]
        names = {name for stage in self.recipe.stages for name in self.stage_config(stage).extra}
        texts += [turn.text for name in sorted(names) for d in conversations.load(name) for turn in d.turns]
        if settings := self.data.prepend:
            texts += [*PrependedLabels.vocabulary(**settings)] * self.recipe.tokenizer.min_count
        return texts

    def _make_model(self) -> RashkinRetrieval:
        recipe, fields = self.recipe, dict(self.recipe.model)
        folder = None if recipe.encoder is None else str(resolve_model(recipe.encoder))
        if folder is not None:
            fields["encoder_config"] = load_pretrained(AutoConfig, folder).to_dict()
        if self.external.width:
            fields.setdefault("external_width", self.external.width)
        ids = {"vocab_size": len(self.tokenizer), "pad_token_id": self.tokenizer.pad_id}
        try:
            model = RashkinRetrieval(RetrievalConfig(**ids, **fields))
        except ValueError as problem:
            raise self.refusal(f"model: {problem}") from None
        if folder is not None:
            model.load_encoder(folder)
        settings, pieces = recipe.tokenizer, self.tokenizer.piece_texts()
        width = model.config.width
        if folder is None and settings.vectors:
            matrix, found = load_vectors(settings.vectors, pieces, width)
            model.load_word_vectors(torch.from_numpy(matrix), torch.from_numpy(found))
        elif folder is None and settings.distil:
            start = torch.from_numpy(distil_vectors(resolve_model(settings.distil), pieces, width=width))
            model.load_word_vectors(start, start.norm(dim=-1) > 0)
        return model

    # -- data ------------------------------------------------------------------------------------------------

    def examples(self, split: str, data: RetrieveData | None = None) -> list[Example]:
        """Pairs of context and reply; valid and test: listener turns, train: those of the wanted roles.

        A split that is not learnt from keeps the corpus's order.
        """
        data = data or self.data
        roles = data.roles if split == "train" else ("listener",)
        own = self.source.dialogues(split, data)
        found = [] if split == "train" and data.only_extra else [e for d in own for e in d.examples(roles)]
        if split == "train":
            for name in data.extra:
                found += [e for d in conversations.load(name) for e in d.examples(("speaker", "listener"))]
        return found

    def pairs(self, examples: Sequence[Example], with_emotion: bool = True) -> list[tuple[Row, Row, int]]:
        """(context, reply, emotion) rows."""
        keys = [f"{e.dialogue_id}#{e.turn_index}" for e in examples]
        contexts = self.reader.contexts([e.context for e in examples], keys)
        replies = self.reader.replies([e.response or "" for e in examples])
        emotions = [_INDEX.get(e.emotion or "", IGNORED) if with_emotion else IGNORED for e in examples]
        return list(zip(contexts, replies, emotions, strict=True))

    def stage_data(self, stage: StageConfig) -> StageData:
        """Pairs to learn from; the in-batch loss on valid depends on the batches, as the paper's does."""
        data = self.stage_config(stage)
        rows: dict[str, list[tuple[Row, Row, int]]] = {}
        for split in ("train", "valid"):
            pairs = rows[split] = self.pairs(self.examples(split, data), "emotion" in stage.losses)
            shown = repr([(c["ids"], r["ids"], e) for c, r, e in pairs])
            self.record.setdefault(stage.name, {})[split] = {"pairs": len(pairs), "sha256": checksum([shown])}
        lengths = {split: [max(len(c["ids"]), len(r["ids"])) for c, r, _ in pairs] for split, pairs in rows.items()}
        collate = self.reader.collate
        return StageData(
            rows["train"], lengths["train"], rows["valid"], lengths["valid"], collate, compares_in_batch=True
        )

    def candidates(self, source: str, seen: set[str] | None = None) -> list[str]:
        """Texts of one source that may be candidates; ``seen`` as in :func:`candidate_texts`."""
        if source == OWN:
            turns = [t.text for d in self.source.dialogues("train", self.data) for t in d.turns[1:]]
        else:
            turns = [turn.text for d in conversations.load(source) for turn in d.turns[1:]]
        return candidate_texts(
            turns,
            max_words=self.data.max_candidate_words,
            is_known=lambda text: self.tokenizer.unk_id not in self.tokenizer.encode(text).ids,
            drop_quotes=self.tokenizer.kind == "hf",
            seen=seen,
        )

    def index(self, source: str) -> ReplyIndex:
        """Candidates of one source with their vectors."""
        texts = self.candidates(source)
        return ReplyIndex(texts, self._candidate_vectors(texts))

    def indices(self) -> dict[str, ReplyIndex]:
        """The sets the recipe names, each source joined to those before it: ``own``, ``own+dailydialog`` ..."""
        made: dict[str, ReplyIndex] = {}
        texts: list[str] = []
        vectors: list[np.ndarray] = []
        seen: set[str] = set()
        for i, source in enumerate(self.data.candidates):
            new = self.candidates(source, seen)
            texts = texts + new
            vectors.append(self._candidate_vectors(new))
            made["+".join(self.data.candidates[: i + 1])] = ReplyIndex(texts, np.concatenate(vectors))
        return made

    def _candidate_vectors(self, texts: Sequence[str]) -> np.ndarray:
        return vectors_of(self.model, self.reader, self.reader.replies(texts), "candidate")

    # -- results ---------------------------------------------------------------------------------------------

    def save_reader(self, folder: Path) -> None:
        """Pieces, and the candidates of the first source."""
        self.tokenizer.save_pretrained(folder)
        self._index = self.index(self.data.candidates[0])
        self._index.save(folder)

    def facts(self) -> dict[str, object]:
        """``Retriever.load`` reads them."""
        return {
            "emotions": list(EMOTIONS),
            "temperature": 1.0,
            "prepend": self.reader.labels.settings(),
            "external": self.external.settings(),
            "candidates": {"source": self.data.candidates[0], "number": len(self._index or ())},
            "licence": licence_text(self.data.corpus),
        }

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """P@1,100 by the three protocols, scores of the replies chosen from each candidate set, emotion accuracy.

        ``p_at_1_100`` is ``blocks-shuffled`` (seed 0); ``blocks-ordered: ...`` and ``inline: ...`` are the others, a
        protocol the split has too few pairs or no candidates for is left out. ``bleu_avg`` and ``chosen`` are over
        the first candidate set, later sets carry their name in front. Words are the released code's: cased.
        """
        examples = self.examples(split)
        pairs = self.pairs(examples)
        contexts = vectors_of(self.model, self.reader, [pair[0] for pair in pairs], "context")
        replies = vectors_of(self.model, self.reader, [pair[1] for pair in pairs], "candidate")
        scores = block_precisions(contexts, replies) | self._inline(split, examples, contexts)
        references = [_words(example.response or "") for example in examples]
        hypotheses: list[str] = []
        for i, (name, index) in enumerate(self.indices().items()):
            begun = time.perf_counter()
            places, _ = index.best(contexts)
            seconds = time.perf_counter() - begun
            chosen = [index.texts[place] for place in places[:, 0]]
            prefix = "" if i == 0 else f"{name}: "
            words = [_words(text) for text in chosen]
            bleu = METRICS.get("bleu_avg")(tokenizer="rashkin")
            scores[f"{prefix}bleu_avg"] = scored(f"{prefix}bleu_avg", bleu, words, references)
            scores[f"{prefix}chosen"] = {
                "candidates": len(index),
                "distinct_replies": len(set(chosen)),
                "mean_words": round(sum(map(len, words)) / len(chosen), 2),
                "replies_per_second": round(len(chosen) / max(seconds, 1e-9), 1),
            }
            hypotheses = hypotheses or chosen
        others = self._family_scores(hypotheses, examples)
        others += self._emotion_scores(contexts, [pair[2] for pair in pairs])
        scores |= {score.name: score.to_dict() for score in others}
        write_rows(
            outputs,
            (
                {"id": e.dialogue_id, "turn": e.turn_index, "hyp": said, "ref": e.response}
                for e, said in zip(examples, hypotheses, strict=True)
            ),
        )
        return scores

    def _family_scores(self, chosen: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        """BLEU and Distinct on the words the generators are measured on; ``bleu_avg`` there is over cased words."""
        said = [" ".join(word.text for word in tokenize_words(text)) for text in chosen]
        gold = [" ".join(word.text for word in tokenize_words(e.response or "")) for e in examples]
        return [score for score in reply_scores(said, gold) if score.name != "bleu_avg"]

    def _emotion_scores(self, contexts: np.ndarray, gold: Sequence[int]) -> list[Score]:
        """How well the emotion head reads the contexts' vectors; nothing without one."""
        if not self.model.has_emotion_head:
            return []
        with torch.inference_mode():
            logits = self.model.emotion(torch.from_numpy(contexts).to(self.model.device))
        return emotion_scores(logits.double().softmax(-1).cpu().numpy(), gold)

    def _inline(self, split: str, examples: Sequence[Example], contexts: np.ndarray) -> dict[str, object]:
        """P@1 among the candidates the corpus lists with each reply, where it lists as many with the gold one in it."""
        lists = self.source.read(split).candidates
        wanted = [(i, lists.get((e.dialogue_id, e.turn_index), ())) for i, e in enumerate(examples)]
        usable = [
            (i, texts, texts.index(str(examples[i].response)))
            for i, texts in wanted
            if len(texts) == BLOCK and examples[i].response in texts
        ]
        if not usable:
            return {}
        place = {text: j for j, text in enumerate(dict.fromkeys(t for _, texts, _ in usable for t in texts))}
        vectors = vectors_of(self.model, self.reader, self.reader.replies(list(place)), "candidate")
        metric = METRICS.get("p_at_1_100")(n_candidates=BLOCK, protocol="inline")
        for i, texts, gold in usable:
            metric.update((contexts[i] @ vectors[[place[text] for text in texts]].T)[None], [gold])
        return {"inline: p_at_1_100": scored("inline: p_at_1_100", metric)}

    def data_record(self) -> dict[str, object]:
        """Pairs and checksums by stage, candidates."""
        number = {} if self._index is None else {"candidates": {self.data.candidates[0]: len(self._index)}}
        return {**self.record, **number}


def block_precisions(contexts: np.ndarray, replies: np.ndarray, size: int = BLOCK) -> dict[str, object]:
    """``p_at_1_100`` over shuffled and ordered blocks; nothing where there is no block but the last.

    Args:
        contexts: Vectors. Shape: (n, width).
        replies: Vectors of the gold replies, in the same order. Shape: (n, width).
        size: Candidates of a block.
    """
    found: dict[str, object] = {}
    if len(contexts) <= size:
        return found
    protocols: dict[str, BlockProtocol] = {"": "blocks-shuffled", "blocks-ordered: ": "blocks-ordered"}
    for prefix, protocol in protocols.items():
        metric = METRICS.get("p_at_1_100")(n_candidates=size, protocol=protocol, seed=SHUFFLE_SEED)
        blocks = candidate_blocks(len(contexts), size, protocol, SHUFFLE_SEED)
        for table, gold in block_scores(contexts, replies, blocks):
            metric.update(table, gold)
        name = f"{prefix}{metric.name}"
        found[name] = scored(name, metric)
    return found


def _words(text: str) -> list[str]:
    return [word.text for word in tokenize_words(text, "rashkin")]
