"""Dialogue corpora kept as one JSON object a line: DailyDialog, ESConv, DREAM and others.

Line: ``{"id", "turns": [{"speaker", "text", "label"?}], "split"?, "situation"?, "context"?, "emotion"?}``, in
``<root>/dialogue_corpora/<name>.jsonl[.gz]`` or ``<root>/dailydialog/*.jsonl[.gz]``. Persons become roles:
the first to speak is ``speaker``, and the role changes whenever the person does, so with more than two
persons ``listener`` is whoever answers. ESConv's seeker and the user of Schema-Guided Dialogue are always
``speaker``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from empatheia.errors import ConfigError, DataError
from empatheia.reading import Json, Problem, UnreadableError, numbered_lines, parse_json, read_json, report
from empatheia.records.dialogue import ROLES, Dialogue, Role, Turn
from empatheia.registry import nearest
from empatheia.resources import find_corpus_file
from empatheia.settings import read_yaml
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.licences import LICENCES
from empatheia_research.corpora.loading import SPLITS, LoadedCorpus

__all__ = ["EXPECTED", "LICENCES", "NAMES", "Licence", "excerpts", "load", "merged", "read"]

FOLDER = "dialogue_corpora"
GET = "the corpus's own publisher (see `empatheia data list`), then put it there in this form"
_TOLD = read_yaml(Path(__file__).with_suffix(".yaml"))
EXPECTED: dict[str, int] = {name: told["expected"] for name, told in _TOLD.items()}
"""Number of dialogues in the copies this project was developed on."""
NAMES = tuple(EXPECTED)
"""Registered names."""

FACTS: dict[str, CorpusFacts] = {
    name: CorpusFacts(tuple(told.get("splits", SPLITS)), told["file"], Licence(**told["licence"]))
    for name, told in _TOLD.items()
}
"""By registered name."""

_DAILYDIALOG_FILES = {"train": "train_partial.jsonl", "valid": "validation.jsonl", "test": "test.jsonl"}
_FIXED_ROLES: dict[str, Role] = {
    "seeker": "speaker",
    "supporter": "listener",
    "USER": "speaker",
    "SYSTEM": "listener",
    "speaker": "speaker",
    "listener": "listener",
}
_SPLITS = {"dev": "valid", "val": "valid", "validation": "valid", "train?": "train"}
_SPLITS |= {"test_freq": "test", "test_rare": "test"}


def load(name: str, split: str | None = None, root: str | Path | None = None, strict: bool = False) -> LoadedCorpus:
    """One corpus, or one split of it.

    Args:
        name: One of ``NAMES``.
        split: None = what one may learn from: DailyDialog's training part, all of every other corpus (no
            other serves as a test set here); ``all``; or ``train``, ``valid``, ``test`` where the corpus
            marks them (ESConv also ``failed``).
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.
        strict: Raise at the first line that cannot be used.

    Raises:
        ConfigError: Unknown corpus.
        MissingResourceError: Its file is not there.
        DataError: The corpus has no such split, or ``strict`` and a line is bad.
    """
    if name not in NAMES:
        raise ConfigError(f"unknown dialogue corpus {name!r}.{nearest(name, list(NAMES))} Known: {', '.join(NAMES)}.")
    if split is None:
        split = "train" if name == "dailydialog" else "all"
    split = _SPLITS.get(split, split)
    if name == "dailydialog":
        return _load_dailydialog(split, root, strict)
    path = find_corpus_file(FOLDER, f"{name}.jsonl", root, GET)
    return read(path, name, split, strict)


def _load_dailydialog(split: str, root: str | Path | None, strict: bool) -> LoadedCorpus:
    if split != "all" and split not in _DAILYDIALOG_FILES:
        raise DataError(f"dailydialog has no split {split!r}; accepted: all, {', '.join(_DAILYDIALOG_FILES)}.")
    wanted = list(_DAILYDIALOG_FILES) if split == "all" else [split]
    parts = [
        read(find_corpus_file("dailydialog", _DAILYDIALOG_FILES[s], root, GET), "dailydialog", s, strict)
        for s in wanted
    ]
    notes = ()
    if "train" in wanted:
        notes = (
            "The training part is 3,381 of 11,118 dialogues; 54 are near-duplicates of valid or test ones.",
            "It holds the text of 120 of RECCON's 225 test dialogues and 11 of its 47 validation dialogues.",
        )
    return LoadedCorpus(
        "dailydialog",
        split,
        parts[0].path,
        tuple(dialogue for part in parts for dialogue in part),
        problems=tuple(problem for part in parts for problem in part.problems),
        notes=notes,
        turn_labels={id: labels for part in parts for id, labels in part.turn_labels.items()},
    )


def read(
    path: str | Path,
    name: str,
    split: str = "all",
    strict: bool = False,
    shaped: Callable[[Mapping[str, Json], int], Mapping[str, Json]] = lambda record, line: record,
) -> LoadedCorpus:
    """Any file of this form; a line that cannot be used is reported and left out.

    Args:
        path: The file.
        name: Of the corpus.
        split: ``all``, or which lines count.
        strict: Raise at the first line that cannot be used.
        shaped: Brings an object and its line number into this form.

    Raises:
        DataError: Nothing of this split is in the file, or ``strict`` and a line is bad. A file that names no splits at
            all is cut into ``train``, ``valid`` and ``test``, see :func:`part_of`.
    """
    path = Path(path)
    dialogues: list[Dialogue] = []
    labels: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    seen: set[str] = set()
    found: set[str] = set()
    for number, value in _values(path):
        try:
            record = _record(value, number, shaped)
            own_split = _SPLITS.get(str(record.get("split") or ""), str(record.get("split") or ""))
            found.add(own_split)
            if split != "all" and own_split != split:
                continue
            source = f"{name}/{own_split}" if own_split else name
            dialogue, turn_labels = _dialogue(record, source)
            if dialogue.id in seen:
                raise DataError(f"id {dialogue.id!r} was used by an earlier line")
        except DataError as error:
            problems.append(Problem(str(path), number, f"{error}; left out"))
            continue
        seen.add(dialogue.id)
        dialogues.append(dialogue)
        if any(turn_labels):
            labels[dialogue.id] = turn_labels
    if not dialogues and split in SPLITS and found == {""}:
        return _cut(read(path, name, "all", strict, shaped), split)
    report(problems, strict)
    if not dialogues:
        accepted = ", ".join(["all", *sorted(found - {""})])
        raise DataError(
            f"{path}: no dialogue of split {split!r}; accepted: {accepted}. Learn from one of these (data.learn, where"
            f' the task has it), write "split": "{split}" into the lines that shall be {split}, or take the corpus into'
            " a pool (data.corpus=pooled data.pool=[...], cut 80/10/10)."
        )
    return LoadedCorpus(name, split, path, tuple(dialogues), problems=tuple(problems), turn_labels=labels)


def _values(path: Path) -> Iterator[tuple[int, Json | UnreadableError]]:
    """Lines with their numbers, parsed; of a ``.json`` file the items of its list, numbered from 1."""
    if path.name.removesuffix(".gz").endswith(".json"):
        whole = read_json(path)
        yield from enumerate(whole if isinstance(whole, list) else [whole], 1)
        return
    for number, line in numbered_lines(path):
        if line.strip():
            try:
                yield number, parse_json(line)
            except UnreadableError as error:
                yield number, error


def _cut(whole: LoadedCorpus, split: str) -> LoadedCorpus:
    """A split of a corpus that has none of its own.

    Raises:
        DataError: None of its few dialogues falls into it.
    """
    kept = tuple(dialogue for dialogue in whole if part_of(dialogue) == split)
    if not kept:
        raise DataError(
            f"{whole.path}: the file names no splits, and none of its {len(whole)} dialogues falls into {split!r} where"
            f' they are cut by a hash of their texts. Write "split": "train", "valid" or "test" into its lines.'
        )
    labels = {dialogue.id: whole.turn_labels[dialogue.id] for dialogue in kept if dialogue.id in whole.turn_labels}
    note = "the file names no splits: 80 % are train, 10 % valid and 10 % test, by a hash of the texts"
    return replace(whole, split=split, dialogues=kept, notes=(*whole.notes, note), turn_labels=labels)


def part_of(dialogue: Dialogue) -> str:
    """``train`` (eight tenths), ``valid`` or ``test`` (one tenth each), by the whole text: equal ones are together."""
    tenth = int(text_hash(dialogue)[:8], 16) % 10
    return SPLITS[max(0, tenth - 7)]


def text_hash(dialogue: Dialogue) -> str:
    """Of a conversation's texts without regard to case and blanks."""
    text = "\n".join(" ".join(turn.text.lower().split()) for turn in dialogue.turns)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _record(
    value: Json | UnreadableError, number: int, shaped: Callable[[Mapping[str, Json], int], Mapping[str, Json]]
) -> Mapping[str, Any]:
    if isinstance(value, UnreadableError):
        raise DataError(f"not JSON ({value})") from value
    if not isinstance(value, dict):
        raise DataError(f"{type(value).__name__}, expected an object")
    record = shaped(value, number)
    for key in ("id", "turns"):
        if not record.get(key):
            raise DataError(f"no {key!r}")
    if not isinstance(record["turns"], list):
        raise DataError(f"'turns' is a {type(record['turns']).__name__}, expected a list")
    return record


def _dialogue(record: Mapping[str, Any], source: str) -> tuple[Dialogue, tuple[str, ...]]:
    """A dialogue and one label a turn (``label``, or DailyDialog's ``emotion``).

    Raises:
        DataError: A turn has no text.
    """
    turns: list[Turn] = []
    labels: list[str] = []
    previous: Any = None
    for number, item in enumerate(record["turns"], start=1):
        text = str(item.get("text") or "").strip() if isinstance(item, dict) else ""
        if not text:
            raise DataError(f"turn {number} of {record['id']!r} has no text")
        person = item.get("speaker")
        turns.append(Turn(_role(person, previous, turns), text))
        labels.append(str(item.get("label") or item.get("emotion") or ""))
        previous = person
    emotion = str(record.get("emotion") or "") or None
    situation = str(record.get("situation") or record.get("context") or "").strip() or None
    return Dialogue(str(record["id"]), tuple(turns), emotion, situation, source), tuple(labels)


def _role(person: Any, previous: Any, turns: list[Turn]) -> Role:
    """See the module's docstring; unknown persons (``?`` or none) take turns."""
    if isinstance(person, str) and person in _FIXED_ROLES:
        return _FIXED_ROLES[person]
    if not turns:
        return "speaker"
    last = turns[-1].role
    same = person == previous and person not in ("?", None, "")
    return last if same else ROLES[last == "speaker"]


def merged(dialogue: Dialogue) -> Dialogue:
    """The dialogue with neighbouring turns of one role joined by a blank, so that roles alternate."""
    turns: list[Turn] = []
    for turn in dialogue.turns:
        if turns and turns[-1].role == turn.role:
            turns[-1] = Turn(turn.role, f"{turns[-1].text} {turn.text}")
        else:
            turns.append(turn)
    return Dialogue(dialogue.id, tuple(turns), dialogue.emotion, dialogue.situation, dialogue.source)


def excerpts(dialogue: Dialogue, max_turns: int = 8) -> Iterator[Dialogue]:
    """Consecutive pieces of at most ``max_turns``; each starts with ``speaker``, one-turn rests go.

    Long plays and episodes become conversations of a size that response models read; ids end in ``#0``,
    ``#1`` ...

    Raises:
        ConfigError: ``max_turns`` is below 2.
    """
    if max_turns < 2:
        raise ConfigError(f"max_turns is {max_turns}; accepted: 2 or more.")
    if len(dialogue.turns) <= max_turns and dialogue.turns[0].role == "speaker":
        yield dialogue
        return
    turns = merged(dialogue).turns
    start = number = 0
    while start < len(turns):
        piece = turns[start : start + max_turns]
        if piece[0].role == "listener":
            start += 1
            continue
        if len(piece) > 1:
            yield Dialogue(
                f"{dialogue.id}#{number}", tuple(piece), dialogue.emotion, dialogue.situation, dialogue.source
            )
            number += 1
        start += max_turns


def _loader(name: str) -> Callable[..., LoadedCorpus]:
    def load_one(split: str | None = None, root: str | Path | None = None, strict: bool = False) -> LoadedCorpus:
        return load(name, split, root, strict)

    load_one.__name__ = f"load_{name}"
    load_one.__doc__ = f"``load({name!r}, ...)``: see :func:`load`."
    return load_one


load_dailydialog = _loader("dailydialog")
load_esconv_partial = _loader("esconv_partial")
load_commonsense_dialogues = _loader("commonsense_dialogues_valid_test")
load_topical_chat_test_partial = _loader("topical_chat_test_partial")
load_public_domain_plays = _loader("public_domain_plays")
load_dream = _loader("dream")
load_meld = _loader("meld")
load_emorynlp = _loader("emorynlp")
load_mutual = _loader("mutual")
load_opensubtitles_cleaned_sample = _loader("opensubtitles_cleaned_sample")
load_changelog_podcasts = _loader("changelog_podcasts")
load_schema_guided_dialogue = _loader("schema_guided_dialogue_partial")
load_switchboard_swda = _loader("switchboard_swda")
