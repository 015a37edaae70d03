"""The bundled sample: self-written conversations in official formats, laid out like a data folder.

Free of third-party text, so it travels with the package: demos, tests and smoke runs need nothing else.
Numbers measured on it say nothing about the real corpora.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from empatheia_research.corpora import empathetic_dialogues
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.loading import LoadedCorpus, canonical_split, sample_root

__all__ = ["NAME", "load", "root", "sample_root"]

NAME = "sample"
FACTS = CorpusFacts(licence=Licence("MIT", True, "Written for this package.", "bundled"))
root = sample_root


def load(split: str, root: str | Path | None = None, strict: bool = False) -> LoadedCorpus:
    """One split of the sample in EmpatheticDialogues form.

    Args:
        split: ``train``, ``valid`` or ``test``.
        root: Ignored unless given; then a folder with the same layout.
        strict: Raise at the first row that cannot be used.

    Raises:
        DataError: A row is bad and ``strict``.
    """
    name = canonical_split(split)
    base = Path(root) if root is not None else sample_root()
    corpus = empathetic_dialogues.read(base / empathetic_dialogues.FOLDER / f"{name}.csv", name, strict)
    return replace(corpus, name=NAME)
