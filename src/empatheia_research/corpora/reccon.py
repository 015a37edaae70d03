"""RECCON (Poria et al. 2021): gold emotion causes for utterances of DailyDialog and IEMOCAP.

Original annotation: ``{dialogue_id: [[utterance, ...]]}``, turns counted from 1; an annotated utterance lists
the turns that hold its cause ("evidence"), one span of text for each, and the letter ``b`` for a cause that
lies outside the conversation. Files ``reccon/dailydialog_{train,valid,test}.json``; the IEMOCAP part has the
same form and needs its own licence: :func:`read` takes its path. Pairs and span questions are in
``reccon_pairs.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from empatheia.errors import DataError
from empatheia.reading import Problem, UnreadableError, parse_json, read_text, report
from empatheia.records.dialogue import ROLES, CauseAnnotation, Dialogue, Example, Span, Turn
from empatheia.resources import find_corpus_file
from empatheia.taxonomy import canonical_reccon_emotion
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.loading import LoadedCorpus, canonical_split, is_sample, sample_root
from empatheia_research.corpora.reccon_pairs import pairs

__all__ = ["pairs", "sample_root"]

NAME = "reccon"
FOLDER = "reccon"
FACTS = CorpusFacts(
    file="reccon/dailydialog_train.json",
    licence=Licence(
        "none stated; DailyDialog text CC BY-NC-SA 4.0",
        True,
        "Non-commercial; the card must name the share-alike text and that the annotation states no licence.",
        "github.com/declare-lab/RECCON",
        share_alike=True,
    ),
)
ANNOTATOR = "reccon/gold"
GET = "git clone https://github.com/declare-lab/RECCON and put data/original_annotation/*.json there"
EXPECTED = {"train": (834, 8_206, 4_562), "valid": (47, 493, 200), "test": (225, 2_405, 1_099)}
"""Dialogues, utterances and annotated utterances of the DailyDialog part, by split."""
_EVIDENCE = "expanded emotion cause evidence"
_SPANS = ("expanded emotion cause span", "expanded emotion cause spans")
LATENT = "b"


def load(split: str, root: str | Path | None = None, strict: bool = False) -> LoadedCorpus:
    """One split of the DailyDialog part, from ``<root>/reccon/dailydialog_<split>.json[.gz]``.

    Args:
        split: ``train``, ``valid`` or ``test``.
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.
        strict: Raise at the first fault, or when the counts are not the published ones.

    Raises:
        MissingResourceError: The file is not there.
        DataError: The file is not in this format, or ``strict`` and something is wrong.
    """
    name = canonical_split(split)
    path = find_corpus_file(FOLDER, f"dailydialog_{name}.json", root, GET)
    corpus = read(path, name, strict)
    found = (len(corpus), sum(len(d.turns) for d in corpus), len(corpus.annotations))
    if strict and found != EXPECTED[name] and not is_sample(path):
        raise DataError(f"{path}: dialogues, utterances, annotated are {found}; published: {EXPECTED[name]}.")
    return corpus


def as_examples(split: str, root: Path | None) -> tuple[list[Example], dict[tuple[str, int], CauseAnnotation]]:
    """RECCON targets as contexts: the target's speaker is the speaker, the history ends with the target.

    Returns:
        Examples without replies, and their cause annotations by (example id, target turn).
    """
    corpus = load(split, root=root)
    by_id = {dialogue.id: dialogue for dialogue in corpus.dialogues}
    examples, causes = [], {}
    for note in corpus.annotations:
        history = by_id[note.dialogue_id].turns[: note.target + 1]
        if not any(span.turn <= note.target for span in note.spans):
            continue
        teller = history[-1].role
        turns = tuple(Turn("speaker" if turn.role == teller else "listener", turn.text) for turn in history)
        name = f"reccon/{note.dialogue_id}/{note.target}"
        examples.append(Example(turns, None, name, note.target + 1))
        causes[name, note.target] = replace(note, dialogue_id=name)
    return examples, causes


def read(path: str | Path, split: str, strict: bool = False) -> LoadedCorpus:
    """Any file in RECCON's original annotation (the IEMOCAP part, or one's own).

    The first speaker of a dialogue becomes ``speaker``, everyone else ``listener``. Every annotated utterance
    gives one annotation with ``emotion`` in normalised spelling; ``turns`` is empty when its cause is only
    latent. Spans come in the order of the file, one for each numbered entry.

    Raises:
        DataError: The file is not JSON of this shape, or ``strict`` and a dialogue has a fault.
    """
    path = Path(path)
    content = _content(path)
    dialogues: list[Dialogue] = []
    annotations: list[CauseAnnotation] = []
    labels: dict[str, tuple[str, ...]] = {}
    latent: set[tuple[str, int]] = set()
    problems: list[Problem] = []
    mended = ahead = 0
    for id, parts in content.items():
        utterances = parts[0] if isinstance(parts, list) and len(parts) == 1 else None
        try:
            dialogue, emotions = _dialogue(id, utterances, f"{NAME}/{split}")
        except DataError as error:
            problems.append(Problem(str(path), 0, f"dialogue {id!r}: {error}; left out"))
            continue
        dialogues.append(dialogue)
        labels[id] = emotions
        assert utterances is not None  # _dialogue has checked it
        mended += sum(str(u["emotion"]).strip() != emotion for u, emotion in zip(utterances, emotions, strict=True))
        for target, utterance in enumerate(utterances):
            if _EVIDENCE not in utterance:
                continue
            try:
                note = _annotation(dialogue, target, utterance, emotions[target])
            except DataError as error:
                problems.append(Problem(str(path), 0, f"dialogue {id!r}, turn {target + 1}: {error}; cause left out"))
                continue
            annotations.append(note)
            ahead += sum(turn > target for turn in note.turns)
            if LATENT in utterance[_EVIDENCE]:
                latent.add((id, target))
    if not dialogues:
        raise DataError(f"{path}: none of its {len(content)} dialogues can be used; the first: {problems[0].reason}.")
    report(problems, strict)
    return LoadedCorpus(
        NAME,
        split,
        path,
        tuple(dialogues),
        tuple(annotations),
        tuple(problems),
        _notes(mended, ahead),
        turn_labels=labels,
        latent=frozenset(latent),
    )


def _content(path: Path) -> dict[str, Any]:
    """Dialogue id to what the file has of it; raises DataError unless it is JSON of this shape."""
    try:
        content = parse_json(read_text(path))
    except UnreadableError as error:
        raise DataError(f"{path}:{error.lineno}: not JSON ({error.msg}). Get the file again: {GET}") from error
    if not isinstance(content, dict) or not content:
        raise DataError(
            f"{path}: expected an object of dialogue id -> [[utterance, ...]], found {type(content).__name__}"
        )
    return content


def _notes(mended: int, ahead: int) -> tuple[str, ...]:
    notes = []
    if mended:
        notes.append(f"{mended} stray emotion spellings mended.")
    if ahead:
        notes.append(f"{ahead} evidence entries point after their target, against the source's rule; kept as released.")
    return tuple(notes)


def _dialogue(id: str, utterances: Any, source: str) -> tuple[Dialogue, tuple[str, ...]]:
    """A dialogue and the emotion of each of its turns.

    Raises:
        DataError: A field is missing, or turns are not numbered 1, 2, ...
    """
    if not isinstance(utterances, list) or not utterances:
        raise DataError("expected a one-element list that holds the list of utterances")
    turns: list[Turn] = []
    emotions: list[str] = []
    for number, utterance in enumerate(utterances, start=1):
        if not isinstance(utterance, Mapping):
            raise DataError(f"utterance {number} is {type(utterance).__name__}, expected an object")
        for key in ("turn", "speaker", "utterance", "emotion"):
            if key not in utterance:
                raise DataError(f"utterance {number} has no {key!r}")
        if utterance["turn"] != number:
            raise DataError(f"turn {utterance['turn']!r}, expected {number} (consecutive from 1)")
        role = ROLES[utterance["speaker"] != utterances[0]["speaker"]]
        turns.append(Turn(role, str(utterance["utterance"])))
        emotions.append(canonical_reccon_emotion(str(utterance["emotion"])))
    return Dialogue(id, tuple(turns), source=source), tuple(emotions)


def _annotation(dialogue: Dialogue, target: int, utterance: Mapping[str, Any], emotion: str) -> CauseAnnotation:
    """The causes of one utterance, spans located in the text of their turns.

    Raises:
        DataError: Evidence and spans do not match, or a span is not in its turn.
    """
    evidence = utterance[_EVIDENCE]
    texts = next((utterance[key] for key in _SPANS if key in utterance), None)
    if not isinstance(evidence, list) or not isinstance(texts, list) or len(evidence) != len(texts):
        raise DataError(f"evidence {evidence!r} and spans {texts!r} are not two lists of one length")
    spans = []
    for entry, text in zip(evidence, texts, strict=True):
        if entry == LATENT:
            continue
        if not isinstance(entry, int) or not 1 <= entry <= len(dialogue.turns):
            raise DataError(f"evidence {entry!r} is neither a turn from 1 to {len(dialogue.turns)} nor 'b'")
        start = dialogue.turns[entry - 1].text.find(str(text))
        if start < 0 or not text:
            raise DataError(f"span {text!r} is not in turn {entry}: {dialogue.turns[entry - 1].text!r}")
        spans.append(Span(entry - 1, start, start + len(text)))
    turns = tuple(sorted({span.turn for span in spans}))
    return CauseAnnotation(dialogue.id, target, turns, tuple(spans), ANNOTATOR, emotion=emotion)
