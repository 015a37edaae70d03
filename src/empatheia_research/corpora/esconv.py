"""ESConv (Liu et al. 2021): what a supporter does (asks, reassures, suggests ...), one of eight strategies a turn.

Two files in ``<root>/esconv_strategies``, because the corpus's own could not be had whole:

- ``supporter_turns.tsv[.gz]``: columns ``source_split``, ``strategies``, ``text``: every supporter turn, without what
  came before it. A turn with several strategies is left out: which part is which is not said.
- ``dialogues_original_dev_test.jsonl[.gz]``: the conversations of the first paper's dev and test part, a label on each
  of the supporter's messages. There is no training part: of dev nine tenths are learnt from, one tenth validates.

Both are read as any corpus with labels of turns (``turn_labels``).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from empatheia.errors import DataError
from empatheia.reading import Problem, csv_reader, read_text, report
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.resources import find_corpus_file
from empatheia_research.corpora import conversations
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.loading import LoadedCorpus, canonical_split

FOLDER = "esconv_strategies"
TURNS, DIALOGUES = "supporter_turns.tsv", "dialogues_original_dev_test.jsonl"
STRATEGIES = (
    *("Affirmation and Reassurance", "Information", "Others", "Providing Suggestions", "Question"),
    *("Reflection of feelings", "Restatement or Paraphrasing", "Self-disclosure"),
)
"""Names of the corpus, in alphabetical order."""
_LICENCE = Licence("CC BY-NC 4.0", True, "Non-commercial like the weights; for research.", "Liu et al. 2021")
FACTS = {
    "esconv": CorpusFacts(file=f"{FOLDER}/{DIALOGUES}", licence=_LICENCE),
    "esconv_turns": CorpusFacts(file=f"{FOLDER}/{TURNS}", licence=_LICENCE),
}
_GET = "the corpus is thu-coai's Emotional-Support-Conversation; see docs/concepts/data.md for the two files' form"
_COLUMNS = ("source_split", "strategies", "text")


def load_turns(split: str, root: str | Path | None = None, strict: bool = False) -> LoadedCorpus:
    """Supporter turns by themselves, each a conversation of one listener turn with its strategy.

    Args:
        split: ``train``, ``valid`` or ``test``.
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.
        strict: Raise at the first line that cannot be used.

    Raises:
        MissingResourceError: The file is not there.
        DataError: There is no such split, no line can be used, or ``strict`` and a line is bad.
    """
    name = canonical_split(split)
    path = find_corpus_file(FOLDER, TURNS, root, _GET)
    rows = csv_reader(read_text(path).split("\n"), delimiter="\t", quoting=csv.QUOTE_NONE)
    places = {column: place for place, column in enumerate(next(rows, []))}
    if lacking := [column for column in _COLUMNS if column not in places]:
        raise DataError(f"{path}: no column {lacking[0]!r}; needed: {', '.join(_COLUMNS)}.")
    dialogues: list[Dialogue] = []
    labels: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    n_several = 0
    for line, row in enumerate(rows, start=2):
        if not row:
            continue
        cells = dict(zip(places, row, strict=False))
        if cells.get("source_split") != name:
            continue
        strategy, text = cells.get("strategies", ""), cells.get("text", "").strip()
        if "," in strategy:
            n_several += 1
        elif strategy not in STRATEGIES or not text:
            found = f"strategy {strategy!r}" if text else "no text"
            problems.append(Problem(str(path), line, f"{found}; accepted: {', '.join(STRATEGIES)}, a text; left out"))
        else:
            made = Dialogue(f"{name}/{line}", (Turn("listener", text),), source=f"esconv_turns/{name}")
            dialogues.append(made)
            labels[made.id] = (strategy,)
    report(problems, strict)
    if not dialogues:
        raise DataError(f"{path}: no turn of split {name!r} can be used.")
    notes = (f"{n_several:,} turns with several strategies are left out",) if n_several else ()
    return LoadedCorpus("esconv_turns", name, path, tuple(dialogues), (), tuple(problems), notes, turn_labels=labels)


def load_dialogues(split: str, root: str | Path | None = None, strict: bool = False) -> LoadedCorpus:
    """Whole conversations, the supporter's messages with their strategies.

    Args:
        split: ``train`` and ``valid``, cut from the first paper's dev part by a hash of the texts, or its ``test``.
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.
        strict: Raise at the first line that cannot be used.

    Raises:
        MissingResourceError: The file is not there.
        DataError: There is no such split, no line can be used, or ``strict`` and a line is bad.
    """
    name = canonical_split(split)
    path = find_corpus_file(FOLDER, DIALOGUES, root, _GET)

    def shaped(record: Mapping[str, Any], line: int) -> dict[str, Any]:
        return {**record, "split": record.get("orig_split")}

    found = conversations.read(path, "esconv", "test" if name == "test" else "valid", strict, shaped)
    if name == "test":
        return found
    kept = tuple(d for d in found if (conversations.part_of(d) == "valid") == (name == "valid"))
    labels = {dialogue.id: found.turn_labels[dialogue.id] for dialogue in kept if dialogue.id in found.turn_labels}
    notes = (*found.notes, "train and valid are nine tenths and one tenth of the first paper's dev part")
    return replace(found, split=name, dialogues=kept, notes=notes, turn_labels=labels)
