"""Pairs of sentences of which it is known whether the same person goes on, by film: what a segmenter learns from.

Timed ones are subtitle files with a table of true speakers beside them (``NAME.srt`` and ``NAME.truth.tsv`` with the
columns ``dialogue_id``, ``speaker``, ``start_ms``, ``end_ms``), as they are made from MELD's annotation. Untimed ones
come from any conversation with known speakers, and from dashes inside of a subtitle block. A dash or a name that gave a
label is never among the features.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from empatheia.errors import DataError, MissingResourceError
from empatheia.reading import CsvRows, files_below, read_bytes, read_text
from empatheia_people.curation.pair_features import SLOTS, pair_features, strip_marks
from empatheia_people.curation.records import Script, Sentence
from empatheia_people.curation.subtitles import read_subtitles, split_sentences

CUES, SENTENCES = "cues", "sentences"
"""Pairs of whole cues; pairs of sentences, of which a cue may have several."""


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """Pairs of neighbouring sentences.

    Attributes:
        features: Buckets. Shape: (n, n_slots), int32.
        is_new: Whether another person speaks. Shape: (n,), bool.
        films: Number of the film each is of. Shape: (n,), int64.
        crosses: Whether there is a border of a cue between them. Shape: (n,), bool.
        rules: Baseline to whether it says "same". Each of shape (n,), bool.
        texts: The two sentences of each.
    """

    features: np.ndarray
    is_new: np.ndarray
    films: np.ndarray
    crosses: np.ndarray
    rules: dict[str, np.ndarray]
    texts: tuple[tuple[str, str], ...]

    def __len__(self) -> int:
        return len(self.is_new)


@dataclass(frozen=True, slots=True)
class LabelledFilm:
    """Sentences with who says them and in which dialogue; -1 = in none, so that no pair is made of it.

    Attributes:
        name: Of the film or episode.
        sentences: In order.
        speakers: One a sentence.
        dialogues: One a sentence.
    """

    name: str
    sentences: tuple[Sentence, ...]
    speakers: tuple[str, ...]
    dialogues: tuple[str, ...]

    def split(self) -> LabelledFilm:
        """The same in sentences: those of one cue share its block, the first has its start and the last its end."""
        out: list[tuple[Sentence, str, str]] = []
        for one, speaker, dialogue in zip(self.sentences, self.speakers, self.dialogues, strict=True):
            parts = split_sentences(one.text) or [one.text]
            for k, part in enumerate(parts):
                start, end = one.start if k == 0 else None, one.end if k == len(parts) - 1 else None
                out.append((one._replace(text=part, start=start, end=end), speaker, dialogue))
        sentences, speakers, dialogues = zip(*out, strict=True) if out else ((), (), ())
        return LabelledFilm(self.name, sentences, speakers, dialogues)


def read_films(folder: str | Path) -> list[LabelledFilm]:
    """Every ``NAME.srt`` of a folder that has a ``NAME.truth.tsv``.

    Raises:
        MissingResourceError: There is none.
        DataError: A table does not fit its subtitles.
    """
    out = []
    for table in files_below(folder, "*.truth.tsv"):
        subtitles = table.with_name(table.name.removesuffix(".truth.tsv") + ".srt")
        rows = list(CsvRows(read_text(table), table, delimiter="\t"))
        script = read_subtitles(read_bytes(subtitles), ".srt", subtitles.stem)
        cues = _cues(script)
        if len(cues) != len(rows):
            raise DataError(f"{table} has {len(rows)} rows and {subtitles.name} {len(cues)} cues; one each is needed.")
        try:
            sentences = tuple(
                Sentence(text, int(row["start_ms"]), int(row["end_ms"]), k, k)
                for k, (text, row) in enumerate(zip(cues, rows, strict=True))
            )
            dialogues = tuple(f"{row.get('meld_split', '')}/{row['dialogue_id']}" for row in rows)
            speakers = tuple(row["speaker"] for row in rows)
        except (KeyError, ValueError) as error:
            raise DataError(f"{table}: {type(error).__name__} {error}; see its columns.") from None
        out.append(LabelledFilm(subtitles.stem, sentences, speakers, dialogues))
    if not out:
        raise MissingResourceError(
            f"no NAME.srt with a NAME.truth.tsv in {folder}. Give the folder of subtitles with true speakers, e.g."
            " --data srt/meld_episodes below EMPATHEIA_DATA."
        )
    return out


def _cues(script: Script) -> list[str]:
    """Texts of whole cues; a sentence that went over several is cut at none of them here, as cues are never joined."""
    blocks: dict[int, list[str]] = {}
    for one in script.sentences:
        blocks.setdefault(one.first_block, []).append(one.text)
        for missing in range(one.first_block + 1, one.last_block + 1):
            blocks.setdefault(missing, [])
    return [" ".join(texts) for _, texts in sorted(blocks.items())]


def pairs_of(films: Iterable[LabelledFilm], first_film: int = 0) -> LabelledPairs:
    """All pairs inside of dialogues."""
    from empatheia_people.curation.segmenter import RULES

    parts = [_of_film(film, number) for number, film in enumerate(films, first_film) if len(film.sentences) > 1]
    if parts:
        return joined(*parts)
    none = np.zeros(0, bool)
    empty = dict.fromkeys(RULES, none)
    return LabelledPairs(np.zeros((0, len(SLOTS)), np.int32), none, np.zeros(0, np.int64), none, empty, ())


def _of_film(film: LabelledFilm, number: int) -> LabelledPairs:
    """The pairs inside of dialogues of one film, of at least two sentences."""
    from empatheia_people.curation.segmenter import RULES

    said = film.sentences
    neighbours = [(i, i + 1) for i in range(len(said) - 1)]
    inside = np.array([film.dialogues[a] == film.dialogues[b] != "" for a, b in neighbours])
    is_new = np.array([film.speakers[a] != film.speakers[b] for a, b in neighbours])
    crosses = np.array([said[a].last_block != said[b].first_block or said[a].last_block < 0 for a, b in neighbours])
    plain = [strip_marks(one.text)[0] for one in said]
    return LabelledPairs(
        pair_features(said)[inside],
        is_new[inside],
        np.full(inside.sum(), number),
        crosses[inside],
        {name: rule.is_same(said)[inside] for name, rule in RULES.items()},
        tuple((plain[a], plain[b]) for (a, b), is_inside in zip(neighbours, inside, strict=True) if is_inside),
    )


def joined(*parts: LabelledPairs) -> LabelledPairs:
    """Several sets as one."""
    return LabelledPairs(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.is_new for part in parts]),
        np.concatenate([part.films for part in parts]),
        np.concatenate([part.crosses for part in parts]),
        {name: np.concatenate([part.rules[name] for part in parts]) for name in parts[0].rules},
        tuple(pair for part in parts for pair in part.texts),
    )


def films_of_script(script: Script) -> list[LabelledFilm]:
    """A conversation with known speakers (Cornell, MELD, chats), or the dashes inside of a subtitle's blocks."""
    if script.kind == "chat":
        said = tuple(one for one in script.sentences if one.speaker)
        return [_film(script.movie, said, [one.speaker for one in said], [str(one.dialogue) for one in said])]
    dialogues = [""] * len(script.sentences)
    speakers = [""] * len(script.sentences)
    for i, (one, after) in enumerate(zip(script.sentences[:-1], script.sentences[1:], strict=True)):
        if one.last_block == after.first_block and strip_marks(after.text)[1]:
            dialogues[i] = dialogues[i + 1] = str(one.last_block)
            speakers[i + 1] = "b" if speakers[i] == "a" else "a"
            speakers[i] = speakers[i] or "b"
    return [_film(script.movie, script.sentences, speakers, dialogues)]


def _film(name: str, sentences: Sequence[Sentence], speakers: Sequence[str], dialogues: Sequence[str]) -> LabelledFilm:
    return LabelledFilm(name, tuple(sentences), tuple(speakers), tuple(dialogues))
