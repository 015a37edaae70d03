"""EmpatheticDialogues (Rashkin et al., ACL 2019): 24,850 conversations told under 32 emotion labels.

Official files ``train.csv``, ``valid.csv``, ``test.csv``: UTF-8, one utterance a line, **not quoted**; a
comma in a text is written ``_comma_``. Eight fields; valid and test rows have a ninth without a header: reply
candidates, separated by ``|``, a pipe in them written ``_pipe_``. Odd ``utterance_idx`` = speaker, even =
listener. Licence of the data: CC BY-NC 4.0. Texts are kept as released; only blanks around them are stripped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from empatheia.errors import DataError
from empatheia.reading import Problem, numbered_lines, report, whole_number
from empatheia.records.dialogue import ROLES, Dialogue, Turn
from empatheia.resources import find_corpus_file
from empatheia.taxonomy import EMOTIONS, canonical_emotion
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.loading import LoadedCorpus, canonical_split, is_sample, sample_root

__all__ = ["FOLDER", "NAME", "OFFICIAL", "SHA256", "SIZE", "URLS", "decode", "load", "read", "sample_root"]

NAME = "empathetic_dialogues"
FOLDER = "empatheticdialogues"
FACTS = CorpusFacts(
    file="empatheticdialogues/train.csv",
    licence=Licence(
        "CC BY-NC 4.0", True, "Non-commercial like the weights; the author is named.", "Rashkin et al. 2019, Meta"
    ),
)
URLS = (
    "https://dl.fbaipublicfiles.com/parlai/empatheticdialogues/empatheticdialogues.tar.gz",
    "http://parl.ai/downloads/empatheticdialogues/empatheticdialogues.tar.gz",
)
SHA256 = "56f234d77b7dd1f005fd365bb17769cfe346c3c84295b69bc069c8ccb83be03d"
SIZE = 28_022_709
GET = f"empatheia data get {NAME}"
HEADER = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags"
OFFICIAL = {"train": (19_533, 84_169), "valid": (2_770, 12_078), "test": (2_547, 10_973)}
_TRAIN_WITHOUT_LAST = (19_532, 84_165)
_MISSING = "hit:12424_conv:24849"


@dataclass
class _Conversation:
    """A conversation while its rows are read; ``broken`` once a row of it could not be used."""

    id: str
    emotion: str
    situation: str
    turns: list[Turn] = field(default_factory=list)
    broken: bool = False


def load(split: str, root: str | Path | None = None, strict: bool = False) -> LoadedCorpus:
    """One official split, from ``<root>/empatheticdialogues/<split>.csv[.gz]``.

    Args:
        split: ``train``, ``valid`` or ``test``.
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.
        strict: Raise at the first row that cannot be used, or when the counts are not the official ones
            (train without its last conversation is accepted and noted).

    Raises:
        MissingResourceError: The file is not there.
        DataError: The file is not in the official format, or ``strict`` and something is wrong.
    """
    name = canonical_split(split)
    path = find_corpus_file(FOLDER, f"{name}.csv", root, GET)
    corpus = read(path, name, strict)
    if is_sample(path):
        return corpus
    note = _count_note(name, len(corpus), sum(len(d.turns) for d in corpus))
    if strict and note and _MISSING not in note:
        raise DataError(f"{path}: {note}")
    return LoadedCorpus(
        NAME,
        name,
        path,
        corpus.dialogues,
        problems=corpus.problems,
        notes=(*corpus.notes, note) if note else corpus.notes,
        candidates=corpus.candidates,
    )


def read(path: str | Path, split: str, strict: bool = False) -> LoadedCorpus:
    """Any file in the official format; counts are not compared with the official ones.

    A conversation is kept up to its first row that cannot be used; that row and those after it are reported.

    Raises:
        DataError: The header is another one, the file has no conversation, or ``strict`` and a row is bad.
    """
    path = Path(path)
    conversations: dict[str, _Conversation] = {}
    candidates: dict[tuple[str, int], tuple[str, ...]] = {}
    problems: list[Problem] = []
    rows = numbered_lines(path)
    number, header = next(rows, (1, ""))
    if header.strip() != HEADER:
        raise DataError(
            f"{path}:{number}: header is {header[:80]!r}; EmpatheticDialogues files start with {HEADER!r}."
            f" Get the official files with: {GET}"
        )
    last = ""
    for number, line in rows:
        fields = line.split(",")
        try:
            if len(fields) not in (8, 9):
                raise DataError(f"{len(fields)} fields, expected 8 or 9 (a comma in a text is written _comma_)")
            current = _add_row(fields, conversations, last)
        except DataError as error:
            broken = conversations.get(fields[0])
            if broken is not None:
                broken.broken = True
            problems.append(Problem(str(path), number, f"{error}; row left out"))
            last = fields[0]
            continue
        last = current.id
        if len(fields) == 9 and fields[8].strip():
            candidates[current.id, len(current.turns) - 1] = decode_candidates(fields[8])
    if not any(c.turns for c in conversations.values()):
        raise DataError(
            f"{path}: no conversation in this file ({len(problems)} rows could not be used). Fetch it again."
        )
    report(problems, strict)
    source = f"{NAME}/{split}"
    dialogues = tuple(
        Dialogue(c.id, tuple(c.turns), c.emotion, c.situation, source) for c in conversations.values() if c.turns
    )
    return LoadedCorpus(NAME, split, path, dialogues, problems=tuple(problems), candidates=candidates)


def _add_row(fields: list[str], conversations: dict[str, _Conversation], last: str) -> _Conversation:
    """Appends one row's turn to its conversation.

    Raises:
        DataError: The row contradicts the format or its conversation.
    """
    id, index, label = fields[0], fields[1], fields[2]
    current = conversations.get(id)
    if not id.strip():
        raise DataError("empty conv_id")
    if current is None:
        emotion = label if label in _KNOWN else canonical_emotion(label, EMOTIONS)
        current = conversations[id] = _Conversation(id, emotion, decode(fields[3]))
    elif id != last:
        raise DataError(f"conversation {id!r} continues after another one began")
    elif label != current.emotion and canonical_emotion(label, EMOTIONS) != current.emotion:
        raise DataError(f"context {label!r} differs from {current.emotion!r} in the same conversation {id!r}")
    if current.broken:
        raise DataError(f"comes after a row of {id!r} that could not be used")
    if index != str(len(current.turns) + 1):
        raise DataError(f"utterance_idx {index!r} in {id!r}, expected {len(current.turns) + 1} (consecutive from 1)")
    if whole_number(fields[4]) is None or _LETTER.search(fields[6]):
        raise DataError(f"speaker_idx {fields[4]!r}, selfeval {fields[6]!r}: a comma in a text that is not _comma_?")
    text = decode(fields[5])
    if not text:
        raise DataError(f"empty utterance {index} in {id!r}")
    current.turns.append(Turn(ROLES[len(current.turns) % 2], text))
    return current


_KNOWN = frozenset(EMOTIONS)
_LETTER = re.compile(r"[^\W\d_]")


def decode(field: str) -> str:
    """A text as written by its author: ``_comma_`` becomes a comma, surrounding blanks go.

    Some copies of the valid and test files wrap a field that holds a double quote in quotes and double it
    inside. That is undone where it is certain: every quote inside is doubled and there is one.

    >>> decode(" Well_comma_ hello ")
    'Well, hello'
    >>> decode('"He said ""no"" to me"')
    'He said "no" to me'
    """
    text = field.replace("_comma_", ",").strip()
    if text[:1] == '"' == text[-1:] and '""' in text[1:-1] and '"' not in text[1:-1].replace('""', ""):
        return text[1:-1].replace('""', '"').strip()
    return text


def decode_candidates(field: str) -> tuple[str, ...]:
    """Reply candidates of the ninth field; ``_pipe_`` is decoded after the split on ``|``.

    >>> decode_candidates("yes_comma_ sure|a_pipe_b")
    ('yes, sure', 'a|b')
    """
    return tuple(decode(part.replace("_pipe_", "|")) for part in field.split("|"))


def _count_note(split: str, n_dialogues: int, n_turns: int) -> str:
    """What to say about the counts; empty when they are the official ones."""
    if (n_dialogues, n_turns) == OFFICIAL[split]:
        return ""
    if split == "train" and (n_dialogues, n_turns) == _TRAIN_WITHOUT_LAST:
        return f"19,532 of 19,533 conversations: {_MISSING} (4 utterances, surprised) is known to be missing."
    official = OFFICIAL[split]
    return (
        f"{n_dialogues:,} conversations and {n_turns:,} utterances; the official {split} split has"
        f" {official[0]:,} and {official[1]:,}."
    )
