"""RecEC (Gao et al. 2021): emotion-cause labels for whole turns of EmpatheticDialogues' valid and test.

JSON lines, one conversation each: ``conv_id``, ``utters`` (token lists, lower-cased, NLTK style, contractions
split), ``context`` (emotion), ``emotion_cause`` (0-based turn indices). The labels come from a RECCON model,
not from people (authors' check: 89 % accuracy). As released they were evidently made once a conversation,
with its **last speaker turn** as target: for an earlier prefix they look into the future. The train file is
not generally to be had.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from empatheia.errors import DataError
from empatheia.reading import Problem, UnreadableError, numbered_lines, parse_json, report
from empatheia.records.dialogue import ROLES, CauseAnnotation, Dialogue, Turn
from empatheia.resources import find_corpus_file
from empatheia.taxonomy import EMOTIONS, canonical_emotion
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.loading import LoadedCorpus, canonical_split, is_sample, sample_root

__all__ = ["EXPECTED", "FOLDER", "NAME", "last_speaker_turn", "load", "read", "sample_root"]

NAME = "recec"
FOLDER = "recec"
FACTS = CorpusFacts(
    splits=("valid", "test"),
    file="recec/test_with_cause.jsonl",
    licence=Licence(
        "none stated; text CC BY-NC 4.0",
        False,
        "Labels without a licence; the package makes its own with a RECCON annotator.",
        "github.com/A-Rain/EmpDialogue_RecEC",
    ),
)
ANNOTATOR = "recec/released"
GET = "https://github.com/A-Rain/EmpDialogue_RecEC (its data/<split>_with_cause.json files)"
EXPECTED = {"valid": (2_769, 12_074, 4_884), "test": (2_546, 10_969, 4_463)}
"""Conversations, turns and cause turns, by split."""


def load(split: str, root: str | Path | None = None, strict: bool = False) -> LoadedCorpus:
    """One split, from ``<root>/recec/<split>_with_cause.{jsonl,json}[.gz]``.

    Args:
        split: ``valid`` or ``test``; ``train`` where one has it (the sample does).
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.
        strict: Raise at the first line that cannot be used, or when the counts are not the released ones.

    Returns:
        Dialogues made from the tokens, and one annotation for each with ``conv_id`` as its dialogue id, so
        that it also fits the original text.

    Raises:
        MissingResourceError: The file is not there.
        DataError: ``strict`` and something is wrong, or nothing can be used.
    """
    name = canonical_split(split)
    path = find_corpus_file(FOLDER, (f"{name}_with_cause.jsonl", f"{name}_with_cause.json"), root, GET)
    corpus = read(path, name, strict, "recec/sample" if is_sample(path) else ANNOTATOR)
    found = (len(corpus), sum(len(d.turns) for d in corpus), sum(len(a.turns) for a in corpus.annotations))
    if strict and not is_sample(path) and found != EXPECTED.get(name, found):
        raise DataError(f"{path}: conversations, turns, cause turns are {found}; released: {EXPECTED[name]}.")
    return corpus


def read(path: str | Path, split: str, strict: bool = False, annotator: str = ANNOTATOR) -> LoadedCorpus:
    """Any file in this form.

    Raises:
        DataError: No line can be used, or ``strict`` and one cannot.
    """
    path = Path(path)
    dialogues: dict[str, Dialogue] = {}
    annotations: list[CauseAnnotation] = []
    problems: list[Problem] = []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            dialogue, causes = _conversation(line, f"{NAME}/{split}")
            if dialogue.id in dialogues:
                raise DataError(f"conv_id {dialogue.id!r} was used by an earlier line")
        except DataError as error:
            problems.append(Problem(str(path), number, f"{error}; left out"))
            continue
        dialogues[dialogue.id] = dialogue
        target = last_speaker_turn(len(dialogue.turns))
        annotations.append(CauseAnnotation(dialogue.id, target, causes, annotator=annotator, emotion=dialogue.emotion))
    if not dialogues:
        first = f"; the first: {problems[0]}" if problems else ""
        raise DataError(
            f"{path}: no conversation in this file ({len(problems)} lines could not be used{first}). Fetch it again."
        )
    report(problems, strict)
    return LoadedCorpus(NAME, split, path, tuple(dialogues.values()), tuple(annotations), tuple(problems))


def last_speaker_turn(n_turns: int) -> int:
    """0-based index of the last speaker turn of a conversation whose speaker opens.

    >>> last_speaker_turn(4), last_speaker_turn(5), last_speaker_turn(1)
    (2, 4, 0)
    """
    return (n_turns - 1) // 2 * 2


def _conversation(line: str, source: str) -> tuple[Dialogue, tuple[int, ...]]:
    """A conversation and its cause turns.

    Raises:
        DataError: The line is not one.
    """
    try:
        record: Any = parse_json(line)
    except UnreadableError as error:
        raise DataError(f"not JSON ({error})") from error
    if not isinstance(record, Mapping):
        raise DataError(f"{type(record).__name__}, expected an object")
    for key in ("conv_id", "utters", "context", "emotion_cause"):
        if key not in record:
            raise DataError(f"no {key!r}")
    utters = record["utters"]
    if not isinstance(utters, list) or not utters or not all(isinstance(u, list) and u for u in utters):
        raise DataError("'utters' is not a list of token lists")
    turns = tuple(Turn(ROLES[i % 2], " ".join(map(str, tokens))) for i, tokens in enumerate(utters))
    causes = record["emotion_cause"]
    if not isinstance(causes, list) or not all(isinstance(i, int) and 0 <= i < len(turns) for i in causes):
        raise DataError(f"'emotion_cause' {causes!r} is not a list of indices from 0 to {len(turns) - 1}")
    emotion = canonical_emotion(str(record["context"]), EMOTIONS)
    return Dialogue(str(record["conv_id"]), turns, emotion, source=source), tuple(sorted(set(causes)))
