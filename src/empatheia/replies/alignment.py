"""What several systems answered to the same contexts: outputs of runs and anybody's reply files, brought together.

The outputs of a run name the dialogue and the turn, so their contexts come from the corpus; other files bring their
contexts along, often lower-cased and cut into words. Contexts are compared by their letters and digits, after the
contractions that the systems of this family expand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from empatheia.errors import DataError, EmpatheiaError
from empatheia.reading import files_below, parse_json, read_record, read_text
from empatheia.records.dialogue import Dialogue, Span
from empatheia.registry import Registry
from empatheia.replies.replies import ReplyFile, SystemReply, numbered
from empatheia.replies.reply_files import read_replies
from empatheia.text.words import CONTRACTIONS

OUTPUTS = "outputs.jsonl"
GENERIC = ("reply",)
"""What readers call the system of a file that names none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One system's reply to one context.

    Attributes:
        system: Who answered.
        reply: The reply; may be empty.
        context: Turns before it, the speaker's first; empty where nobody knows them.
        reference: Gold reply, or None.
        emotion: Gold emotion, or None.
        predicted: The system's emotions, best first; empty where it names none.
        causes: What it took for the cause of the emotion, as spans of the context's turns.
        id: ``dialogue/turn`` where the file names them, else empty.
        line: 1-based line of its file.
    """

    system: str
    reply: str
    context: tuple[str, ...] = ()
    reference: str | None = None
    emotion: str | None = None
    predicted: tuple[str, ...] = ()
    causes: tuple[Span, ...] = ()
    id: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """A context and who answered what.

    Attributes:
        id: ``dialogue/turn``, or ``#n``, the place in the first file that has it.
        context: Turns, the speaker's first.
        reference: Gold reply, or None.
        emotion: Gold emotion, or None.
        answers: By system.
    """

    id: str
    context: tuple[str, ...]
    reference: str | None
    emotion: str | None
    answers: Mapping[str, Answer]


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """Answers as read from one place.

    Attributes:
        place: File or run folder.
        title: Name of the run, or of the file.
        answers: By system, in file order.
        notes: What a reader should know.
    """

    place: Path
    title: str
    answers: Mapping[str, tuple[Answer, ...]]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Place:
    """An item while answers are still coming in."""

    id: str
    first: Answer
    answers: dict[str, Answer] = field(default_factory=dict)


class _Places:
    """Items while answers are still coming in, found by dialogue and turn, by text or by context."""

    def __init__(self) -> None:
        self.all: list[_Place] = []
        self._by_id: dict[str, _Place] = {}
        self._by_text: dict[tuple[str, str | None], list[_Place]] = {}
        self._by_context: dict[str, list[_Place]] = {}

    def find(self, system: str, answer: Answer) -> _Place | None:
        """The item that a system's answer belongs to, or None."""
        if answer.id and (place := self._by_id.get(answer.id)) is not None:
            return place
        key = text_key(*answer.context)
        if not key:
            return None
        same = _free(self._by_text.get((key, _reference_key(answer)), ()), system, answer)
        return same or _only_one(self._by_context.get(key, ()), system, answer)

    def add(self, number: int, answer: Answer) -> _Place:
        """A new item, of which this is the first answer; ``number`` names it if the answer does not."""
        place = _Place(answer.id or f"#{number}", answer)
        key = text_key(*answer.context)
        self.all.append(place)
        self._by_text.setdefault((key, _reference_key(answer)), []).append(place)
        self._by_context.setdefault(key, []).append(place)
        if answer.id:
            self._by_id[answer.id] = place
        return place


def find_runs(folder: str | Path) -> list[Path]:
    """Run folders below a folder (itself too) whose outputs are replies, in order of their paths.

    Raises:
        DataError: There is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder} of runs; name the one given to `empatheia train --out`.")
    return [path.parent for path in files_below(folder, OUTPUTS) if _holds_replies(path)]


def read_answers(place: str | Path, format: str = "auto", name: str = "", data: str | Path | None = None) -> AnswerFile:
    """Reads the outputs of a run, or a file of replies.

    Args:
        place: Run folder, its ``outputs.jsonl``, or a file that ``empatheia score`` reads.
        format: See :func:`~empatheia.replies.reply_files.read_replies`.
        name: What to call it; None = the run's recipe, size and seed, or the file's name. A file with several systems
            gives each as ``name: system``.
        data: Folder of corpora, for the contexts of runs; None = EMPATHEIA_DATA, then the cache.

    Raises:
        DataError: The file cannot be read, or the folder is no finished run.
        ConfigError: Unknown format.
    """
    path = Path(place)
    run = path if path.is_dir() else path.parent if path.name == OUTPUTS else None
    if path.is_dir():
        path = path / OUTPUTS
        if not path.is_file():
            raise DataError(f"{place} has no {OUTPUTS}: the run is not finished, or this is no run folder.")
    title = name or title_of(path if run is None else run)
    file = read_replies(path, format)
    rows = _rows(path) if file.format == "jsonl" else {}
    notes = list(file.notes)
    sources = _contexts(run, data)
    answers: dict[str, tuple[Answer, ...]] = {}
    n_bad_spans = 0
    labels = labels_of(file, title)
    for system, replies in file.replies.items():
        label = labels[system]
        made = []
        for reply in replies:
            answer, n_bad = _answer(label, reply, rows.get(reply.line, {}), sources)
            n_bad_spans += n_bad
            made.append(answer)
        answers[label] = tuple(made)
    if sources.trouble:
        notes.append(sources.trouble)
    if n_bad_spans:
        notes.append(f"{n_bad_spans:,} cause spans do not fit their turns and are left out")
    return AnswerFile(path if run is None else run, title, answers, tuple(notes))


def align(files: Iterable[AnswerFile]) -> list[Item]:
    """Items with everybody's answers, in the order they are first met.

    Answers belong to one item if they name the same dialogue and turn; or if contexts and references are the same in
    letters and digits; or, where one has no reference, if just one item has that context.

    Args:
        files: Of :func:`read_answers`. Those that name dialogues give the text that is kept.

    Raises:
        DataError: Two files have a system of the same name.
    """
    chosen = list(files)
    names = [system for file in chosen for system in file.answers]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"two files name a system {twice[0]!r}; give them different names.")
    places = _Places()
    for file in sorted(chosen, key=lambda file: not _names_dialogues(file)):
        for system, answers in file.answers.items():
            for number, answer in enumerate(answers, 1):
                place = places.find(system, answer) or places.add(number, answer)
                place.answers.setdefault(system, answer)
    return [_item(place) for place in _with_own_ids(places.all)]


def _names_dialogues(file: AnswerFile) -> bool:
    return any(answer.id for answers in file.answers.values() for answer in answers[:1])


def text_key(*texts: str) -> str:
    """Letters and digits of texts after the family's contractions, so that tokenised and raw text compare equal.

    >>> text_key("I don't know.") == text_key("i do not know .")
    True
    """
    joined = "\n".join(texts).lower().replace("\u2019", "'")
    for short, long in CONTRACTIONS.items():
        joined = joined.replace(short, long)
    return "".join(character for character in joined if character.isalnum())


class RunContexts(Protocol):
    """The dialogues that a run answered, which its outputs only name.

    Attributes:
        trouble: Why some are missing; empty where nothing is.
    """

    trouble: str

    def of(self, dialogue: str) -> Dialogue | None:
        """The dialogue of that id; None where there is none, and then ``trouble`` may say why."""
        ...


CONTEXTS = Registry("contexts", {})
"""What finds the dialogues of a run: under ``corpus`` a class made with a run's folder and a folder of corpora."""


class _NoContexts:
    """Stands for the corpora where the package that reads them is not installed."""

    def __init__(self, trouble: str) -> None:
        self._why = trouble
        self.trouble = ""

    def of(self, dialogue: str) -> Dialogue | None:
        """None, and from then on ``trouble`` says why."""
        self.trouble = self._why
        return None


def _contexts(run: Path | None, data: str | Path | None) -> RunContexts:
    try:
        return CONTEXTS.get("corpus")(run, data)
    except EmpatheiaError as error:
        return _NoContexts(f"contexts are missing: {error}")


def _answer(label: str, reply: SystemReply, row: Mapping[str, Any], contexts: RunContexts) -> tuple[Answer, int]:
    """The answer, and how many cause spans were dropped."""
    context, emotion, identity = reply.context, reply.emotion, ""
    dialogue, turn = row.get("id"), row.get("turn")
    if isinstance(dialogue, str) and isinstance(turn, int):
        identity = f"{dialogue}/{turn}"
        found = None if context else contexts.of(dialogue)
        if found is not None:
            context = tuple(t.text for t in found.turns[:turn])
            emotion = emotion or found.emotion
    causes, n_bad = _causes(row.get("causes"), context)
    made = Answer(label, reply.reply, context, reply.reference, emotion, reply.predicted, causes, identity, reply.line)
    return made, n_bad


def _causes(given: Any, context: Sequence[str]) -> tuple[tuple[Span, ...], int]:
    """Spans inside the context's turns, in reading order, and how many do not fit."""
    if not isinstance(given, list):
        return (), 0
    spans = []
    for each in given:
        named = each if isinstance(each, dict) else {}
        places = [place for key in ("turn", "start", "end") if isinstance(place := named.get(key), int)]
        if len(places) == 3 and 0 <= places[0] < len(context) and 0 <= places[1] < places[2] <= len(context[places[0]]):
            spans.append(Span(*places))
    return tuple(sorted(spans, key=lambda s: (s.turn, s.start))), len(given) - len(spans)


def _rows(path: Path) -> dict[int, dict[str, Any]]:
    return {number: parse_json(line) for number, line in numbered(read_text(path)) if line.strip()}


def title_of(place: Path) -> str:
    """What a file or a run folder is called: the run's recipe, size and seed, or the name of the file."""
    if place.is_file():
        return place.name
    try:
        record = read_record(place / "metrics.json")
        return f"{record['recipe']} {record['size']}-seed{record['seed']}"
    except (OSError, ValueError, KeyError, TypeError):
        return place.absolute().name


def labels_of(file: ReplyFile, title: str) -> dict[str, str]:
    """What each system of a file is called among those of other files: the title alone where it has one without a name.

    Args:
        file: As read.
        title: See :func:`title_of`.
    """
    if len(file.replies) == 1 and (only := file.systems[0]) in (*GENERIC, title, file.path.name):
        return {only: title}
    return {system: f"{title}: {system}" for system in file.systems}


def paired(first: Sequence[SystemReply], second: Sequence[SystemReply]) -> tuple[list[SystemReply], list[SystemReply]]:
    """The replies of two systems to the same items, in one order; what only one of them answered is left out.

    Item by item where the references, or the contexts, are the same in letters and digits all along, or where neither
    file has any of both; else by context and reference, as :func:`align`.

    Raises:
        DataError: No item is in both.
    """
    if _are_in_step(first, second):
        return list(first), list(second)
    files = [
        AnswerFile(Path(name), name, {name: tuple(_as_answer(name, reply) for reply in each)})
        for name, each in (("first", first), ("second", second))
    ]
    by_line = [{reply.line: reply for reply in each} for each in (first, second)]
    both = [item.answers for item in align(files) if len(item.answers) == 2]
    if not both:
        raise DataError(
            f"no item is in both files ({len(first):,} and {len(second):,} items): neither references in one order nor"
            " contexts agree. Give replies to the same items, with their contexts where the order differs."
        )
    return [by_line[0][one["first"].line] for one in both], [by_line[1][one["second"].line] for one in both]


def _are_in_step(first: Sequence[SystemReply], second: Sequence[SystemReply]) -> bool:
    """Whether item i of one is item i of the other, as far as references and contexts tell."""
    golds = [[text_key(reply.reference or "") for reply in each] for each in (first, second)]
    if any(golds[0]) and golds[0] == golds[1]:
        return True
    contexts = [[text_key(*reply.context) for reply in each] for each in (first, second)]
    return golds[0] == golds[1] and contexts[0] == contexts[1]


def _as_answer(system: str, reply: SystemReply) -> Answer:
    return Answer(system, reply.reply, reply.context, reply.reference, line=reply.line)


def _holds_replies(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as stream:
        line = stream.readline()
    try:
        row = parse_json(line)
    except ValueError:
        return False
    return isinstance(row, dict) and "hyp" in row and "turn" in row


def _reference_key(answer: Answer) -> str | None:
    return None if answer.reference is None else text_key(answer.reference)


def _free(places: Sequence[_Place], system: str, answer: Answer) -> _Place | None:
    """The first place this system has not answered, unless it names another dialogue."""
    fitting = (p for p in places if system not in p.answers and not (answer.id and p.first.id))
    return next(fitting, None)


def _only_one(places: Sequence[_Place], system: str, answer: Answer) -> _Place | None:
    if len(places) != 1 or (answer.reference is not None and places[0].first.reference is not None):
        return None
    return _free(places, system, answer)


def _with_own_ids(places: Sequence[_Place]) -> Sequence[_Place]:
    """Identities made unique: several files may count from 1."""
    seen: dict[str, int] = {}
    for place in places:
        seen[place.id] = seen.get(place.id, 0) + 1
        if seen[place.id] > 1:
            place.id = f"{place.id}.{seen[place.id]}"
    return places


def _item(place: _Place) -> Item:
    known = [place.first, *place.answers.values()]
    reference = next((a.reference for a in known if a.reference is not None), None)
    emotion = next((a.emotion for a in known if a.emotion), None)
    answers = {
        # spans count characters of the answer's own context; elsewhere they would point at other words
        system: answer if answer.context == place.first.context else replace(answer, causes=())
        for system, answer in place.answers.items()
    }
    return Item(place.id, place.first.context, reference, emotion, answers)
