"""The dialogues that a run answered: its outputs name dialogue and turn, the corpus of its recipe has the text."""

from __future__ import annotations

from pathlib import Path

from empatheia.errors import EmpatheiaError
from empatheia.records.dialogue import Dialogue
from empatheia.settings import read_yaml
from empatheia_research.corpora import CORPORA, facts_of, splits_of


class RunContexts:
    """Dialogues of a corpus, read when the first is asked for.

    Args:
        run: Folder with the ``recipe.yaml`` that names the corpus; without one it is EmpatheticDialogues.
        data: Folder of corpora; None = EMPATHEIA_DATA, then the cache.

    Attributes:
        trouble: Why dialogues are missing; empty where none is.
    """

    def __init__(self, run: Path | None, data: str | Path | None = None) -> None:
        self.corpus, self.data = _corpus_of(run), data
        self.trouble = ""
        self._found: dict[str, Dialogue] = {}
        self._left: list[str] | None = None  # splits that were not read yet

    def of(self, dialogue: str) -> Dialogue | None:
        """The dialogue of that id; None if no split has it, and then ``trouble`` may say why."""
        try:
            if self._left is None:
                self._left = list(reversed(splits_of(self.corpus)))  # test first
            load = CORPORA.get(self.corpus)
            root = self.data if facts_of(self.corpus).file else None
            while dialogue not in self._found and self._left:
                for found in load(self._left.pop(0), root=root):
                    self._found.setdefault(found.id, found)
        except EmpatheiaError as error:
            self._left, self.trouble = [], f"contexts are missing: {error}"
        return self._found.get(dialogue)


def _corpus_of(run: Path | None) -> str:
    recipe = None if run is None else run / "recipe.yaml"
    if recipe is None or not recipe.is_file():
        return "empathetic_dialogues"
    data = read_yaml(recipe).get("data")
    return str(data.get("corpus", "empathetic_dialogues")) if isinstance(data, dict) else "empathetic_dialogues"
