"""What is shown: contexts and the candidates of several systems, out of runs, reply files or dialogues.

Texts are kept as they are unless the design asks for one case and spacing; what could tell a system from the others is
warned of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from empatheia.errors import DataError
from empatheia.reading import parse_json
from empatheia.registry import nearest
from empatheia.replies.alignment import OUTPUTS, AnswerFile, Item, align, read_answers, text_key
from empatheia.replies.replies import numbered
from empatheia.replies.reply_files import read_text
from empatheia.settings import read_yaml
from empatheia_people.studies.design import GOLD, Design

MAX_TEXT = 20_000
"""Characters of a reply or a turn that is shown."""
_SET_OF = {"empathetic_dialogues": "ED", "edos": "EDOS", "opensubtitles": "OS", "sample": "ED"}
_TELLS = re.compile(
    r"\bas an? (ai|artificial intelligence|language model|chat ?bot|assistant)\b|\bopenai\b|\bgpt\b", re.I
)
_MARKUP = re.compile(r"</?[a-z][^<>]*>|\*\*|```|^#+ |\[(SEP|CLS|PAD|UNK|MASK)\]|</?s>|<unk>", re.M)
_SPACED = re.compile(r" [.,!?]|\b\w+ n't\b| '(s|m|re|ve|ll|d)\b")


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one system says.

    Attributes:
        system: Its name; ``gold`` for the reply of the corpus.
        text: The reply; empty if it has none.
        turns: A whole dialogue in place of a reply (pairwise comparison of dialogues); else empty.
        label: The first emotion or intent the system names, or empty.
    """

    system: str
    text: str
    turns: tuple[str, ...] = ()
    label: str = ""

    @property
    def key(self) -> str:
        """Equal for candidates that look the same."""
        return "\n".join(self.turns) or " ".join(self.text.split())


@dataclass(frozen=True, slots=True)
class StudyItem:
    """A context with its candidates.

    Attributes:
        id: Unique in the study.
        set: Test set.
        context: Turns, the speaker's first.
        candidates: By system, in the order of the systems.
        emotion: Of the corpus, or empty.
        reference: Reply of the corpus, or None.
    """

    id: str
    set: str
    context: tuple[str, ...]
    candidates: Mapping[str, Candidate]
    emotion: str = ""
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Material:
    """All items of a study.

    Attributes:
        items: In the order of the files.
        systems: Their names, in the order of the files; without gold.
        notes: What whoever runs the study should know.
        left_out: Reason and number of items.
    """

    items: tuple[StudyItem, ...]
    systems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


def read_material(
    design: Design,
    places: Sequence[str],
    *,
    allow_missing: bool = False,
    data: str | Path | None = None,
) -> Material:
    """Items out of runs and files.

    Args:
        design: Of the study.
        places: ``PLACE``, ``SET=PLACE`` or ``SET:SYSTEM=PLACE``: run folders, files that ``empatheia score`` reads, or
            JSON lines of dialogues where the protocol shows those. A set or system that is not named is the file's.
        allow_missing: Items that a system did not answer are left out; else they are an error.
        data: Folder of corpora for the contexts of runs.

    Raises:
        DataError: A file cannot be read; systems answered other contexts; an item lacks a system.
        ConfigError: The design names a system that no file holds.
    """
    if design.protocol in ("pairwise_dialogue", "turn_annotation"):
        return _checked(design, _dialogues(design, places), allow_missing)
    by_set: dict[str, list[AnswerFile]] = {}
    for place in places:
        name, system, path = _parts(place)
        is_plain = Path(path).is_file() and Path(path).name != OUTPUTS
        file = read_answers(path, name=Path(path).stem if is_plain else "", data=data)
        if system:
            file = _named(file, system)
        by_set.setdefault(name or _set_of(design, file), []).append(file)
    items: list[StudyItem] = []
    notes: list[str] = []
    for name, files in by_set.items():
        notes += [f"{file.title}: {note}" for file in files for note in file.notes]
        items += _items_of(name, _same_names(files), len(by_set) > 1)
    return _checked(design, Material(tuple(items), _systems_of(items), tuple(notes)), allow_missing)


def _parts(place: str) -> tuple[str, str, str]:
    """Set, system and path of an argument; a path with ``=`` in it is written with ``./`` before it."""
    head, equals, path = place.partition("=")
    if not equals or "/" in head or Path(place).exists():
        return "", "", place
    name, _, system = head.partition(":")
    return name, system, path


def _set_of(design: Design, file: AnswerFile) -> str:
    if design.composition.default_set:
        return design.composition.default_set
    recipe = file.place / "recipe.yaml"
    if file.place.is_dir() and recipe.is_file():
        found = read_yaml(recipe).get("data")
        corpus = str(found.get("corpus", "empathetic_dialogues")) if isinstance(found, dict) else "empathetic_dialogues"
        return _SET_OF.get(corpus, corpus)
    return "all"


def _named(file: AnswerFile, system: str) -> AnswerFile:
    if len(file.answers) != 1:
        raise DataError(f"{file.place} holds {len(file.answers)} systems, so they cannot all have the name {system!r}.")
    (answers,) = file.answers.values()
    return replace(file, answers={system: tuple(replace(answer, system=system) for answer in answers)})


def _same_names(files: Sequence[AnswerFile]) -> list[AnswerFile]:
    """Files whose systems have names of their own: a second one of the same name gets a number."""
    seen: Counter[str] = Counter()
    out = []
    for file in files:
        renamed = {}
        for system, answers in file.answers.items():
            seen[system] += 1
            name = system if seen[system] == 1 else f"{system} ({seen[system]})"
            renamed[name] = tuple(replace(answer, system=name) for answer in answers)
        out.append(replace(file, answers=renamed))
    return out


def _items_of(name: str, files: Sequence[AnswerFile], is_one_of_several: bool) -> list[StudyItem]:
    found: list[Item] = align(files)
    prefix = f"{name}/" if is_one_of_several else ""
    return [
        StudyItem(
            prefix + item.id,
            name,
            item.context,
            {
                system: Candidate(system, answer.reply.strip(), label=answer.predicted[0] if answer.predicted else "")
                for system, answer in item.answers.items()
            },
            item.emotion or "",
            item.reference,
        )
        for item in found
    ]


def _systems_of(items: Iterable[StudyItem]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(system for item in items for system in item.candidates))


def _dialogues(design: Design, places: Sequence[str]) -> Material:
    """Items from JSON lines ``{"id", "system", "turns": [...], "emotion"}``, joined by ``id``."""
    found: dict[str, StudyItem] = {}
    for place in places:
        name, system, path = _parts(place)
        for number, line in numbered(read_text(Path(path))):
            if not line.strip():
                continue
            row = _row_of(line, path, number)
            turns = tuple(_turn_text(turn, path, number) for turn in row["turns"])
            speaker = system or str(row.get("system") or Path(path).stem)
            id = str(row.get("id") or f"#{number}")
            is_shown = design.protocol == "turn_annotation"
            item = found.get(id) or StudyItem(
                id, name or "all", turns if is_shown else (), {}, str(row.get("emotion") or "")
            )
            if speaker in item.candidates:
                raise DataError(f"{path}:{number}: system {speaker!r} has a second dialogue {id!r}; give each an id.")
            found[id] = replace(item, candidates={**item.candidates, speaker: Candidate(speaker, "", turns)})
    items = tuple(found.values())
    return Material(items, _systems_of(items))


def _row_of(line: str, path: str, number: int) -> dict[str, Any]:
    try:
        row = parse_json(line)
    except ValueError as error:
        raise DataError(f"{path}:{number}: not valid JSON: {error}.") from None
    if not isinstance(row, dict) or not isinstance(row.get("turns"), list) or not row["turns"]:
        raise DataError(
            f'{path}:{number}: not a dialogue; accepted: {{"id": ..., "system": ..., "turns": ["...", ...]}}.'
        )
    return row


def _turn_text(turn: Any, path: str, number: int) -> str:
    text = turn.get("text") if isinstance(turn, dict) else turn
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{path}:{number}: a turn is {turn!r:.60}; accepted: a text, or an object with `text`.")
    return text.strip()


def _checked(design: Design, material: Material, allow_missing: bool) -> Material:
    """Systems chosen, gaps told, blanks left out, texts made alike, leaks warned of."""
    systems = _chosen(design, material.systems)
    items = [replace(i, candidates={s: i.candidates[s] for s in systems if s in i.candidates}) for i in material.items]
    complete, left_out = _fitting(design, items, systems, allow_missing)
    if not complete:
        why = ", ".join(f"{n:,} {reason}" for reason, n in left_out.items()) or "the files hold none"
        raise DataError(f"no item is left to be rated: {why}. " + " ".join(material.notes))
    if design.composition.normalise:
        complete = [_normalised(item) for item in complete]
    _check_lengths(complete)
    notes = (*material.notes, *leaks(complete, systems))
    return Material(tuple(complete), systems, notes, dict(left_out))


def _fitting(
    design: Design, items: Sequence[StudyItem], systems: Sequence[str], allow_missing: bool
) -> tuple[list[StudyItem], Counter[str]]:
    """The items that can be rated, and how many are left out for which reason."""
    complete: list[StudyItem] = []
    left_out: Counter[str] = Counter()
    for item in items:
        lacking = [system for system in systems if system not in item.candidates]
        if lacking and not allow_missing and design.protocol != "turn_annotation":
            _tell_missing(item, lacking[0], items, systems)
        if (reason := _unfit(item, design, lacks_answer=bool(lacking))) is not None:
            left_out[reason] += 1
        else:
            complete.append(_with_gold(item, design))
    return complete, left_out


def _unfit(item: StudyItem, design: Design, *, lacks_answer: bool) -> str | None:
    """Why an item is not rated; None if it is."""
    if lacks_answer and design.protocol != "turn_annotation":
        return "a system has no answer"
    if not item.context and design.protocol in ("drag", "likert", "ab"):
        return "its context is not known"
    if design.composition.blank == "leave_out" and any(not c.key for c in item.candidates.values()):
        return "an answer is empty"
    return None


def _chosen(design: Design, found: Sequence[str]) -> tuple[str, ...]:
    if unknown := [system for system in design.systems if system not in found]:
        raise DataError(
            f"no file holds the system {unknown[0]!r}.{nearest(unknown[0], list(found))} Found: {', '.join(found)}."
        )
    systems = design.systems or tuple(found)
    if design.protocol in ("ab", "pairwise_dialogue") and len(systems) + design.composition.with_gold < 2:
        raise DataError(f"a comparison needs two systems; found {', '.join(systems) or 'none'}. Give --outputs twice.")
    if GOLD in found:
        raise DataError(
            f"a system is called {GOLD!r}, which is the name of the corpus' reply; give it another:"
            " --outputs SET:NAME=FILE."
        )
    return systems


def _tell_missing(item: StudyItem, system: str, items: Sequence[StudyItem], systems: Sequence[str]) -> None:
    n_whole = sum(all(s in i.candidates for s in systems) for i in items)
    shown = " / ".join(item.context)[:120] or item.id
    raise DataError(
        f"{system} did not answer item {item.id} ({shown!r}), which {next(iter(item.candidates))} did;"
        f" {n_whole:,} of {len(items):,} items have all of {', '.join(systems)}. Are the files of one test set? With"
        " --allow-missing only the shared items are used."
    )


def _with_gold(item: StudyItem, design: Design) -> StudyItem:
    if not design.composition.with_gold:
        return item
    if item.reference is None:
        raise DataError(f"composition.with_gold: item {item.id} has no reply of the corpus.")
    return replace(item, candidates={**item.candidates, GOLD: Candidate(GOLD, item.reference.strip())})


def normalised(text: str) -> str:
    """The text with plain spacing and a capital at the beginning of each sentence, whoever wrote it.

    >>> normalised("i am sorry to hear that . what 's wrong ?")
    "I am sorry to hear that. What's wrong?"
    """
    text = " ".join(text.split())
    text = re.sub(r"\s+([.,!?;:])", r"\1", text)
    text = re.sub(r"\s+(n't|'(?:s|m|re|ve|ll|d))\b", r"\1", text, flags=re.I)
    letters = [letter for letter in text if letter.isalpha()]
    if letters and not any(letter.isupper() for letter in letters[1:]):
        text = text.lower()
    text = re.sub(r"\bi\b(?=$|[ ',.!?])", "I", text)
    return re.sub(r"(^|[.!?]\s+)([a-z])", lambda found: found[1] + found[2].upper(), text)


def _normalised(item: StudyItem) -> StudyItem:
    candidates = {
        system: replace(c, text=normalised(c.text), turns=tuple(map(normalised, c.turns)))
        for system, c in item.candidates.items()
    }
    reference = None if item.reference is None else normalised(item.reference)
    return replace(item, candidates=candidates, context=tuple(map(normalised, item.context)), reference=reference)


def _check_lengths(items: Sequence[StudyItem]) -> None:
    for item in items:
        texts = [*item.context, *(text for c in item.candidates.values() for text in (c.text, *c.turns))]
        longest = max(map(len, texts), default=0)
        if longest > MAX_TEXT:
            raise DataError(f"item {item.id} has a text of {longest:,} characters; accepted: {MAX_TEXT:,}.")


@dataclass(frozen=True, slots=True)
class _Looks:
    """How a system's replies look.

    Attributes:
        n_tells: Replies that say what wrote them.
        n_markup: Replies that hold markup.
        cased: Share with an upper-case letter, 0 to 1.
        spaced: Share with a blank before a mark, 0 to 1.
        length: Mean words.
    """

    n_tells: int
    n_markup: int
    cased: float
    spaced: float
    length: float


def _looks(texts: Sequence[str]) -> _Looks:
    return _Looks(
        sum(bool(_TELLS.search(t)) for t in texts),
        sum(bool(_MARKUP.search(t)) for t in texts),
        sum(t != t.lower() for t in texts) / len(texts),
        sum(bool(_SPACED.search(t)) for t in texts) / len(texts),
        sum(len(t.split()) for t in texts) / len(texts),
    )


def leaks(items: Sequence[StudyItem], systems: Sequence[str]) -> list[str]:
    """What may give a system away to raters: its name, markup, case or spacing unlike the others', length."""
    looks: dict[str, _Looks] = {}
    for system in systems:
        texts = [c.text or " ".join(c.turns) for i in items if (c := i.candidates.get(system)) is not None]
        if texts := [text for text in texts if text]:
            looks[system] = _looks(texts)
    notes = []
    for system, look in looks.items():
        if look.n_tells:
            notes.append(f"{system}: {look.n_tells:,} replies say what wrote them (as an AI ...)")
        if look.n_markup:
            notes.append(f"{system}: {look.n_markup:,} replies hold markup")
    return notes + (_contrasts(looks) if looks else [])


def _contrasts(looks: Mapping[str, _Looks]) -> list[str]:
    """What tells the two systems apart that differ the most in it."""
    notes = []
    for what, shares in (
        ("upper case", {system: look.cased for system, look in looks.items()}),
        ("blanks before marks", {system: look.spaced for system, look in looks.items()}),
    ):
        one, other = _extremes(shares)
        if shares[one] - shares[other] > 0.5:
            notes.append(
                f"{what} tell systems apart: in {100 * shares[one]:.0f} % of {one}, {100 * shares[other]:.0f} % of"
                f" {other}; --set composition.normalise=true makes them alike"
            )
    lengths = {system: look.length for system, look in looks.items()}
    one, other = _extremes(lengths)
    if lengths[one] > 2 * max(1.0, lengths[other]):
        notes.append(f"length tells systems apart: {lengths[one]:.0f} words in {one}, {lengths[other]:.0f} in {other}")
    return notes


def _extremes(numbers: Mapping[str, float]) -> tuple[str, str]:
    """The systems with the largest and the smallest number."""
    return max(numbers, key=numbers.__getitem__), min(numbers, key=numbers.__getitem__)


def same_text(one: Candidate, other: Candidate) -> bool:
    """Whether raters could not tell them apart but by case, spacing and marks."""
    return text_key(one.key) == text_key(other.key)
