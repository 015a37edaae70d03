"""EmpatheticIntents (Welivita and Pu 2020): texts of EmpatheticDialogues with one of 41 labels, what MEED2 trains on.

``train_data/{train,valid,test}.txt`` holds one example a line, ``<id> <SEP> <text>``: ids 0-31 are situations with
their emotion, 32-40 listener sentences with their intent or ``neutral``, found by trigger phrases and balanced to one
emotion's share. Two faults of the release are options: situations keep their capitals while listener sentences are
lower-cased, so case alone tells emotions from intents; and ``labels.txt`` gives ``neutral`` the id 38, which in the
data is ``questioning`` (neutral is 40). No licence is stated; the text is EmpatheticDialogues' (CC BY-NC 4.0).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from empatheia.errors import ConfigError, DataError
from empatheia.reading import Problem, numbered_lines, report, whole_number
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.resources import find_corpus_file
from empatheia.taxonomy import EMOTIONS, LABELS_41, canonical_emotion
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.loading import SPLITS, LoadedCorpus, canonical_split, is_sample, sample_root

__all__ = ["EXPECTED", "FOLDER", "NAME", "IntentText", "load", "read_label_names", "read_texts", "sample_root"]

NAME = "empathetic_intents"
FOLDER = "empathetic_intents"
FACTS = CorpusFacts(
    file="empathetic_intents/train_data/train.txt",
    licence=Licence(
        "none stated; text CC BY-NC 4.0",
        False,
        "Labels without a licence; `empatheia train recipes/meed2/emotion_intent.yaml` makes the classifier anew.",
        "Welivita and Pu 2020, github.com/anuradha1992/EmpatheticIntents",
    ),
)
GET = "git clone https://github.com/anuradha1992/EmpatheticIntents and put its datasets/train_data folder there"
SEPARATOR = " <SEP> "
EXPECTED = {"train": (25_023, 19_533, 610), "valid": (3_544, 2_770, 86), "test": (3_225, 2_523, 78)}
"""Lines, situations among them, and lines of each of the nine other classes, by split."""

Variant = Literal["clean", "repo"]
Overlaps = Literal["keep", "drop"]


@dataclass(frozen=True, slots=True)
class IntentText:
    """One example.

    Attributes:
        id: ``<split>/<line>``.
        label_id: 0-40, as in the file; index into ``taxonomy.LABELS_41``.
        label: Its name; in the ``repo`` variant the one that ``labels.txt`` gives.
        text: Lower-cased unless the variant is ``repo``.
    """

    id: str
    label_id: int
    label: str
    text: str

    @property
    def is_situation(self) -> bool:
        """Whether the speaker wrote it (emotions) rather than a listener (intents, neutral)."""
        return self.label_id < len(EMOTIONS)


def load(
    split: str,
    root: str | Path | None = None,
    strict: bool = False,
    *,
    variant: Variant = "clean",
    overlaps: Overlaps = "keep",
) -> LoadedCorpus:
    """One split as one-turn dialogues whose ``emotion`` is the label.

    Situations are a speaker's turn, the rest a listener's. See :func:`read_texts` for arguments and errors.
    """
    path, texts, problems, notes = _read(split, root, strict, variant, overlaps)
    dialogues = tuple(
        Dialogue(
            item.id,
            (Turn("speaker" if item.is_situation else "listener", item.text),),
            item.label,
            source=f"{NAME}/{canonical_split(split)}",
        )
        for item in texts
    )
    return LoadedCorpus(NAME, canonical_split(split), path, dialogues, problems=problems, notes=notes)


def read_texts(
    split: str,
    root: str | Path | None = None,
    strict: bool = False,
    *,
    variant: Variant = "clean",
    overlaps: Overlaps = "keep",
) -> tuple[IntentText, ...]:
    """One split, from ``<root>/empathetic_intents/train_data/<split>.txt[.gz]``.

    Args:
        split: ``train``, ``valid`` or ``test``.
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.
        strict: Raise at the first line that cannot be used, or when the counts are not the released ones.
        variant: ``clean`` lower-cases every text and names labels by the taxonomy. ``repo`` keeps the texts as
            released, with the leak of letter case, and names labels by ``labels.txt``, with its slip: 38 is
            ``neutral`` and 40 has no name (``"40"``). Ids are the same in both.
        overlaps: ``drop`` leaves out of train what is also in valid or test, and out of valid what is also in test
            (same text but for case and blanks), and repeated lines; ``keep`` is the release.

    Raises:
        MissingResourceError: The file is not there.
        DataError: No line can be used, or ``strict`` and something is wrong.
        ConfigError: An option is unknown.
    """
    return _read(split, root, strict, variant, overlaps)[1]


def _read(
    split: str, root: str | Path | None, strict: bool, variant: str, overlaps: str
) -> tuple[Path, tuple[IntentText, ...], tuple[Problem, ...], tuple[str, ...]]:
    for name, value, accepted in (("variant", variant, ("clean", "repo")), ("overlaps", overlaps, ("keep", "drop"))):
        if value not in accepted:
            raise ConfigError(f"{NAME}: {name} is {value!r}; accepted: {', '.join(accepted)}.")
    name = canonical_split(split)
    path = _find(name, root)
    texts, problems = _lines(path, name)
    report(problems, strict)
    notes = [note] if (note := _count_note(path, name, texts)) else []
    if strict and notes:
        raise DataError(f"{path}: {notes[0]}")
    if overlaps == "drop":
        later = {
            _key(t.text) for other in SPLITS[SPLITS.index(name) + 1 :] for t in _lines(_find(other, root), other)[0]
        }
        kept = {(_key(t.text), t.label_id): t for t in reversed(texts) if _key(t.text) not in later}
        notes.append(f"{len(texts) - len(kept):,} of {len(texts):,} texts left out: repeated, or in a later split.")
        texts = sorted(kept.values(), key=lambda t: int(t.id.rpartition("/")[2]))
    if variant == "clean":
        texts = [replace(item, text=item.text.lower()) for item in texts]
    else:
        names = read_label_names(_find("labels", root))
        texts = [replace(item, label=names.get(item.label_id, str(item.label_id))) for item in texts]
    return path, tuple(texts), tuple(problems), tuple(notes)


def read_label_names(path: str | Path) -> dict[int, str]:
    """Id to name as ``labels.txt`` (``name,id`` lines) gives it; of two names for one id the later one stands.

    Raises:
        DataError: A line is no name and number.
    """
    names: dict[int, str] = {}
    for number, line in numbered_lines(Path(path)):
        if not line.strip():
            continue
        name, _, index = line.rpartition(",")
        place = whole_number(index)
        if not name or place is None:
            raise DataError(f"{path}:{number}: {line[:60]!r} is not of the form name,id.")
        names[place] = canonical_emotion(name)
    return names


def _find(name: str, root: str | Path | None) -> Path:
    return find_corpus_file(f"{FOLDER}/train_data", f"{name}.txt", root, GET)


def _lines(path: Path, split: str) -> tuple[list[IntentText], list[Problem]]:
    """Examples with the taxonomy's names and the released text, and the lines that are none.

    Raises:
        DataError: No line can be used.
    """
    texts: list[IntentText] = []
    problems: list[Problem] = []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        index, separator, text = line.partition(SEPARATOR)
        place = whole_number(index)
        if not separator or place is None or not text.strip():
            problems.append(Problem(str(path), number, f"{line[:60]!r} is not '<id> <SEP> <text>'; left out"))
        elif place >= len(LABELS_41):
            problems.append(Problem(str(path), number, f"label id {place} is not from 0 to 40; left out"))
        else:
            texts.append(IntentText(f"{split}/{number}", place, LABELS_41[place], text.strip()))
    if not texts:
        first = f"; the first: {problems[0]}" if problems else ""
        raise DataError(
            f"{path}: no example in this file ({len(problems)} lines could not be used{first}). Fetch it again."
        )
    return texts, problems


def _key(text: str) -> str:
    return " ".join(text.lower().split())


def _count_note(path: Path, split: str, texts: list[IntentText]) -> str:
    """What to say about the counts; empty when they are the released ones."""
    if is_sample(path):
        return ""
    counts = Counter(item.label_id for item in texts)
    situations = sum(n for index, n in counts.items() if index < len(EMOTIONS))
    others = {counts[index] for index in range(len(EMOTIONS), len(LABELS_41))}
    lines, released, each = EXPECTED[split]
    if (len(texts), situations, others) == (lines, released, {each}):
        return ""
    return (
        f"{len(texts):,} lines, {situations:,} situations, {min(others)} to {max(others)} of each other class; the"
        f" released {split} split has {lines:,}, {released:,} and {each}."
    )
