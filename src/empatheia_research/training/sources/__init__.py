"""What tasks learn from: example sources give conversations and examples, label sources the targets beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from empatheia.records.dialogue import Dialogue
from empatheia_research.corpora import CORPORA, sample
from empatheia_research.corpora.loading import LoadedCorpus
from empatheia_research.recipes.data import TaskData


def folder_of(corpus: str) -> Path | None:
    """Where a corpus's files are looked for: the sample's folder for ``sample``; None = the user's data folder."""
    return sample.root() if corpus == sample.NAME else None


class CorpusSource:
    """Example source: the conversations of a registered corpus, each split read once.

    Args:
        corpus: Its name.

    Raises:
        ConfigError: There is no such corpus.
    """

    def __init__(self, corpus: str) -> None:
        CORPORA.target(corpus)  # an unknown name is refused before anything is built
        self.corpus = corpus
        self.splits: dict[str, LoadedCorpus] = {}

    def read(self, split: str) -> LoadedCorpus:
        """A split, whole."""
        if split not in self.splits:
            self.splits[split] = CORPORA.get(self.corpus)(split)
        return self.splits[split]

    def dialogues(self, split: str, data: TaskData) -> Sequence[Dialogue]:
        """The conversations of a split, up to the limit that ``data`` sets."""
        return self.read(split).dialogues[: getattr(data, f"{split}_limit")]
