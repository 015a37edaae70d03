"""What became of a file's sentences in a run, and why: turn, dialogue, the step that dropped them, where they are.

The file is read again with the settings of the run; what the steps over all files decided is looked up in the shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from empatheia.errors import DataError
from empatheia.reading import UnreadableError, read_array
from empatheia_people.curation.cleaning import Cleaner, CleaningCounts
from empatheia_people.curation.dialogues import dialogues_of
from empatheia_people.curation.pair_features import strip_marks
from empatheia_people.curation.records import Script, ScriptDialogue, Sentence
from empatheia_people.curation.run import settings_of
from empatheia_people.curation.samples import corpus_files
from empatheia_people.curation.segmenter import PairModel, chat_turn, load_segmenter, new_turns, turns_of
from empatheia_people.curation.settings import CurationSettings
from empatheia_people.curation.shards import rows_of
from empatheia_people.curation.sources import Source, by_film, find_sources, reason_of, shard_of
from empatheia_research.shipped import shipped_path

_MOST_NAMED = 5


@dataclass(slots=True)
class ExplainedSentence:
    """A sentence of the file.

    Attributes:
        line: Its number in the file, from 1.
        text: As the file has it.
        start: Milliseconds, None if missing.
        end: As ``start``.
        turn: ``new`` or ``same`` with the reason.
    """

    line: int
    text: str
    start: int | None
    end: int | None
    turn: str


@dataclass(slots=True)
class ExplainedTurn:
    """What cleaning made of a turn.

    Attributes:
        sentences: It is made of.
        cleaned: Its text afterwards, None if it was dropped.
        changed: Steps that changed it.
        dropped: The step that dropped it, "" if none did.
    """

    sentences: list[ExplainedSentence]
    cleaned: str | None
    changed: list[str]
    dropped: str


@dataclass(slots=True)
class ExplainedDialogue:
    """A dialogue as it was cut, before cleaning.

    Attributes:
        key: Of it; its parts have a number more.
        why: It begins here.
        turns: In order.
        outcome: Key of each part that cleaning left, to what became of it; nothing if none was left.
    """

    key: str
    why: str
    turns: list[ExplainedTurn]
    outcome: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Explanation:
    """A file.

    Attributes:
        place: Of the file.
        note: Why it was not read, "" if it was.
        dialogues: Those that were asked for.
    """

    place: str
    note: str = ""
    dialogues: list[ExplainedDialogue] = field(default_factory=list)


def explain(folder: Path, file: str, line: int | None = None) -> Explanation:
    """What became of a file, or of the dialogue that one of its sentences is in.

    Args:
        folder: Of a run.
        file: Path of the file or its end, ``FILM/SUBTITLE``, or the key of a dialogue.
        line: Number of a sentence, from 1; None = all.

    Raises:
        DataError: There is no such run, file, dialogue or sentence, or several files fit.
    """
    settings = settings_of(folder)
    sources = find_sources(map(shipped_path, settings.inputs)).sources
    source, dialogue = _chosen(sources, file)
    out = Explanation(source.place)
    most = settings.read.most_mb << 20
    groups, problems = by_film([one for one in sources if one.movie == source.movie], most)
    if reason := dict(problems).get(source.place):
        out.note = f"not read: {reason}"
        return out
    best = next(group[0] for group in groups if source in group)
    try:
        scripts = list(source.scripts(most, settings.read.recase))
    except (OSError, UnreadableError) as error:
        out.note = f"not read: {reason_of(error)}"
        return out
    if best != source:
        out.note = f"not chosen: of the film's files {best.place} is the most confident, or has most sentences"
    work = _Reading(folder, settings, load_segmenter(settings.segment.segmenter))
    for script in scripts:
        out.dialogues += [one for one in work.dialogues(script, is_read=best == source) if _fits(one, dialogue, line)]
    if not out.dialogues and (dialogue or line is not None):
        n = sum(len(script.sentences) for script in scripts)
        raise DataError(f"{source.place} has no such dialogue or sentence; it has {n:,} sentences, numbered from 1.")
    return out


def _chosen(sources: list[Source], file: str) -> tuple[Source, str]:
    """The file that is meant, and the key of the dialogue, if one is."""
    wanted = file.replace("\\", "/")
    parts = wanted.split("/")
    if len(parts) == 3 and parts[2][:5].isdecimal():
        for one in sources:
            if (one.movie, one.subtitle) == (parts[0], parts[1]):
                return one, "/".join([*parts[:2], parts[2].split("-")[0]])
    fit = [
        one
        for one in sources
        if f"{one.movie}/{one.subtitle}" == wanted
        or f"/{one.place.replace(':', '/')}".endswith(f"/{wanted.lstrip('./')}")
    ]
    if len(fit) == 1:
        return fit[0], ""
    if fit:
        named = ", ".join(one.place for one in fit[:_MOST_NAMED])
        raise DataError(f"{len(fit)} files end with {file[:80]!r}: {named}. Give more of the path.")
    raise DataError(
        f"no file {file[:80]!r} among the {len(sources):,} of the run. Give a path or its end, FILM/SUBTITLE, or a key"
        " as `empatheia curate sample` shows them."
    )


def _fits(one: ExplainedDialogue, key: str, line: int | None) -> bool:
    lines = {sentence.line for turn in one.turns for sentence in turn.sentences}
    return (not key or one.key == key) and (line is None or line in lines)


class _Reading:
    """Goes through the steps of a run once more, for one file.

    Args:
        folder: Of the run.
        settings: Of it.
        model: Finds the turns.
    """

    def __init__(self, folder: Path, settings: CurationSettings, model: PairModel) -> None:
        self.folder, self.settings, self.model = folder, settings, model
        self.cleaner: Cleaner = settings.clean.cleaner()

    def dialogues(self, script: Script, is_read: bool) -> Iterator[ExplainedDialogue]:
        """All of a file, with what became of them if the run read it."""
        segment, rule = self.settings.segment, self.settings.dialogues
        sentences = iter(self._sentences(script))
        marks, pause = segment.use_marks, segment.longest_pause_ms
        turns = turns_of(script, self.model, segment.threshold, marks, pause, rule.chat_gap_ms)
        fates = self._fates(script) if is_read else {}
        before: ScriptDialogue | None = None
        cut = dialogues_of(script, turns, rule.max_gap_ms, rule.chat_gap_ms, rule.backwards_ms, rule.max_turns)
        for raw in cut:
            own = []
            for turn in raw.turns:
                counts = CleaningCounts()
                text = self.cleaner.utterance(turn.text, counts)
                said = [next(sentences) for _ in range(turn.n_sentences)]
                own.append(ExplainedTurn(said, text, sorted(counts.changed), next(iter(counts.dropped), "")))
            parts = [one.key for one in self.cleaner.dialogue(raw)]
            outcome = {key: fates.get(key, "not in the run") for key in parts}
            yield ExplainedDialogue(raw.key, _why_cut(before, raw), own, outcome)
            before = raw

    def _sentences(self, script: Script) -> list[ExplainedSentence]:
        segment, said = self.settings.segment, script.sentences
        if not said:
            return []
        reasons = ["new: the file begins"]
        if script.kind == "chat":
            gap = self.settings.dialogues.chat_gap_ms
            reasons += [_by_speaker(chat_turn(one, after, gap)) for one, after in pairwise(said)]
        else:
            limit = self.model.threshold if segment.threshold is None else segment.threshold
            is_new = new_turns(said, self.model, segment.threshold, segment.use_marks, segment.longest_pause_ms)
            same = self.model.same_turn_probability(said)
            for (one, after), p, new in zip(pairwise(said), same, is_new[1:], strict=True):
                reasons.append(_by_model(one, after, float(p), limit, bool(new), segment.use_marks))
        return [
            ExplainedSentence(i, one.text, one.start, one.end, reason)
            for i, (one, reason) in enumerate(zip(said, reasons, strict=True), 1)
        ]

    def _fates(self, script: Script) -> dict[str, str]:
        """Key of each clean dialogue of the file to what became of it."""
        number = shard_of(script.movie, self.settings.shards)
        shard = self.folder / "dialogues" / f"shard-{number:05}.parquet"
        mask = self.folder / "unique" / f"shard-{number:05}.npy"
        if not mask.is_file():
            return {}
        rows = rows_of(shard, ["key", "text_hash", "ending_hash"])
        prefix = f"{script.movie}/{script.subtitle}/"
        own = [(row, kept) for row, kept in zip(rows, read_array(mask), strict=True) if row["key"].startswith(prefix)]
        out = {row["key"]: "kept" for row, kept in own if kept}
        dropped = {row["key"]: row["text_hash"] for row, kept in own if not kept}
        twins = self._kept_twins(set(dropped.values())) if dropped else {}
        for key, text_hash in dropped.items():
            twin = twins.get(text_hash)
            out[key] = f"dropped: equal to {twin}" if twin else "dropped: over the cap of dialogues that end so"
        return out | {key: place for key, place in self._places(number).items() if key in out}

    def _kept_twins(self, hashes: set[int]) -> dict[int, str]:
        """Hash of a text to the key of the dialogue that has it and was kept, or that lost to the cap itself."""
        out: dict[int, str] = {}
        for number in range(self.settings.shards):
            name = f"shard-{number:05}"
            keep = read_array(self.folder / "unique" / f"{name}.npy")
            rows = rows_of(self.folder / "dialogues" / f"{name}.parquet", ["key", "text_hash"])
            out |= {
                row["text_hash"]: row["key"]
                for row, kept in zip(rows, keep, strict=True)
                if kept and row["text_hash"] in hashes
            }
        return out

    def _places(self, number: int) -> dict[str, str]:
        """Key to part, split and emotionality, of a shard of the corpus."""
        out = {}
        for part, split, path in corpus_files(self.folder):
            if path.name == f"shard-{number:05}.parquet":
                for row in rows_of(path, ["key", "emotionality"]):
                    score = "" if row["emotionality"] is None else f", emotionality {row['emotionality']:.4f}"
                    out[row["key"]] = f"in {part}/{split}{score}"
        return out


def _by_speaker(why: str) -> str:
    return "same: the file names the speakers" if why == "same" else f"new: {why}"


def _by_model(one: Sentence, after: Sentence, p: float, limit: float, new: bool, use_marks: bool) -> str:
    word = "new" if new else "same"
    _, dash, name = strip_marks(after.text)
    if use_marks and one.speaker and after.speaker:
        return f"{word}: the file names the speakers"
    if use_marks and (dash or name):
        return f"{word}: {'a dash' if dash else 'a name'} before it"
    if new != (p < limit):
        return f"{word}: the pause is longer than segment.longest_pause_ms"
    return f"{word}: the same person with probability {p:.2f}, {limit:.2f} needed"


def _why_cut(before: ScriptDialogue | None, after: ScriptDialogue) -> str:
    if before is None:
        return "the file begins"
    one, other = before.turns[-1], after.turns[0]
    if one.dialogue != other.dialogue:
        return "the source begins another dialogue"
    if one.end is None or other.start is None:
        return "the one before has dialogues.max_turns turns"
    gap = other.start - one.end
    return f"{gap / 1000:.3f} s after the turn before" if gap >= 0 else f"times jump back by {-gap / 1000:.3f} s"


def as_record(found: Explanation) -> dict[str, object]:
    """For JSON."""
    from dataclasses import asdict

    return asdict(found)
