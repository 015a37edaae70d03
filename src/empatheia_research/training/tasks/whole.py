"""The listener that answers by default, measured as a whole: what it perceives, and what it says.

Perception is what :func:`empatheia_research.training.tasks.perceive.perception_scores` measures, of the reader that the
listener uses (with the second look where its language model is at hand). Replies are given to everyday conversations
and to contexts of EmpatheticDialogues; nothing of a corpus but the turns is shown.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from empatheia.errors import MissingDependencyError, MissingResourceError
from empatheia.listener.perceiving import PerceivingListener
from empatheia.listener.steps.focused import FocusedListener
from empatheia.listener.steps.settings import check_settings
from empatheia.records.dialogue import Dialogue
from empatheia.text.words import tokenize_words
from empatheia_research.corpora import CORPORA, everyday, sample
from empatheia_research.corpora.everyday import EverydayItem
from empatheia_research.recipes.data import WholeData
from empatheia_research.training.evaluation import reply_scores
from empatheia_research.training.tasks.base import Measurement, write_rows
from empatheia_research.training.tasks.perceive import perception_scores

FREQUENT = 10
"""So many of the most frequent replies are counted together."""
_AT_ONCE = 32


class WholeTask(Measurement):
    """Measures the default listener; ``model`` holds settings of a listener of five steps, none = the default."""

    data: WholeData

    def build(self) -> None:
        """The listener."""
        self.meta = {"name": self.recipe.name}
        self.listener = FocusedListener(check_settings(self.recipe.model, f"recipe {self.recipe.name!r}"))

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """Scores of perception and of replies.

        Args:
            split: ``valid`` or ``test``, of every corpus.
            outputs: File for one JSON line a reply: corpus, conversation, reply.

        Returns:
            Scores by name: those of :func:`.perception_scores`; ``CORPUS replies: NAME`` for Distinct and BLEU against
            the written replies, and ``frequent``, the percentage of replies that are one of the ten most frequent.
            ``not measured`` names what is not here, ``perception`` among it where the sentence encoder is missing.
        """
        items = list(self._everyday(split))
        scores = self._perception(split, items)
        said: dict[str, list[tuple[Dialogue, str]]] = {
            everyday.NAME: [(item.dialogue, item.reply) for item in items if item.reply]
        }
        if self.data.contexts:
            said["empathetic_dialogues"] = self._contexts(split, scores)
        rows: list[dict[str, str]] = []
        for corpus, pairs in said.items():
            if not pairs:
                continue
            replies = self._replies([dialogue for dialogue, _ in pairs])
            scores |= _named(corpus, replies, [reference for _, reference in pairs])
            self.record[corpus] = {"replies": len(replies)}
            rows += [
                {"corpus": corpus, "id": dialogue.id, "reply": reply}
                for (dialogue, _), reply in zip(pairs, replies, strict=True)
            ]
        write_rows(outputs, rows)
        return scores

    def _everyday(self, split: str) -> Sequence[EverydayItem]:
        root = sample.root() / everyday.NAME if self.data.corpus == "sample" else None
        return everyday.items(split, root)[: getattr(self.data, f"{split}_limit")]

    def _perception(self, split: str, items: Sequence[EverydayItem]) -> dict[str, object]:
        try:
            reader = PerceivingListener.load(joined=self.listener.settings.perception == "joined").affect
        except (MissingResourceError, MissingDependencyError):
            return {"not measured": ["perception"]}
        return perception_scores(reader.read, split, items, None, self.data.outside)

    def _contexts(self, split: str, scores: dict[str, object]) -> list[tuple[Dialogue, str]]:
        """Contexts of EmpatheticDialogues, drawn at random, with the replies that people gave."""
        corpus = "sample" if self.data.corpus == "sample" else "empathetic_dialogues"
        try:
            dialogues = CORPORA.get(corpus)(split).dialogues
        except MissingResourceError:
            missing = scores.setdefault("not measured", [])
            if isinstance(missing, list) and "empathetic_dialogues" not in missing:
                missing.append("empathetic_dialogues")
            return []
        examples = [e for d in dialogues for e in d.examples() if e.response is not None]
        drawn = random.Random(self.recipe.seed).sample(examples, min(self.data.contexts, len(examples)))
        return [(Dialogue(f"{e.dialogue_id}/{e.turn_index}", e.context), str(e.response)) for e in drawn]

    def _replies(self, dialogues: Sequence[Dialogue]) -> list[str]:
        out: list[str] = []
        for start in range(0, len(dialogues), _AT_ONCE):
            chunk = list(dialogues[start : start + _AT_ONCE])
            out += [reply.text for reply in self.listener.respond(chunk, care=False)]
        return out


def _named(corpus: str, replies: Sequence[str], references: Sequence[str]) -> dict[str, object]:
    """Distinct and BLEU of lower-case words, and how often the same is said."""
    said, written = ([" ".join(w.text for w in tokenize_words(t)) for t in texts] for texts in (replies, references))
    out: dict[str, object] = {}
    for score in reply_scores(said, written):
        if score.name in ("dist_corpus_1", "dist_corpus_2", "bleu_nltk_4"):
            out[f"{corpus} replies: {score.name}"] = score.to_dict() | {"name": f"{corpus} replies: {score.name}"}
    out[f"{corpus} replies: frequent"] = round(100 * share_of_frequent(replies), 2)
    return out


def share_of_frequent(replies: Sequence[str], most: int = FREQUENT) -> float:
    """Share of replies that are one of the ``most`` most frequent, in [0, 1]; capitals count.

    >>> share_of_frequent(["Oh.", "Oh.", "Go on.", "Tell me."], most=1)
    0.5
    """
    return sum(n for _, n in Counter(replies).most_common(most)) / max(1, len(replies))
