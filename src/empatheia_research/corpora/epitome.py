"""EPITOME (Sharma et al. 2020): how strongly a reply shows each of three mechanisms of empathy, and where.

Three quoted CSV files of one corpus, ``epitome/{emotional-reactions,interpretations,explorations}-reddit.csv``: seeker
post, response post, level (0 none, 1 weak, 2 strong), rationales (parts of the response, each ended by ``|``). The text
is about mental health and may distress. Released faults that are mended and counted here:

- the files hold one text in two versions (blanks; in the first the word "Reddit" is cut out): the version of
  ``interpretations`` is kept and rows are joined by their ids;
- 61 rows repeat a pair, some with another level: the first row counts;
- rationales differ from the response in blanks, HTML entities and cut-out words: they are found all the same and become
  character spans; one that cannot be found is left out and the pair says so.

No official split is published. The one made here has the paper's sizes (75/5/20), follows from ids, texts and levels,
gives each split its share of every combination of levels, and keeps together what has one author's post or nearly the
same text.
"""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal

from empatheia.errors import DataError
from empatheia.reading import CsvRows, Problem, read_text, report
from empatheia.records.dialogue import Dialogue, Span, Turn
from empatheia.resources import find_corpus_file
from empatheia.taxonomy import MECHANISMS
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.loading import SPLITS, LoadedCorpus, canonical_split, is_sample

NAME = "epitome"
FOLDER = "epitome"
FACTS = CorpusFacts(
    file="epitome/interpretations-reddit.csv",
    licence=Licence(
        "academic, non-commercial; attribution",
        False,
        "For academic research, to be passed on under a like licence; `empatheia train recipes/epitome/shared.yaml`"
        " makes the model from one's own copy.",
        "Sharma et al. 2020, github.com/behavioral-data/Empathy-Mental-Health",
    ),
)
GET = "git clone https://github.com/behavioral-data/Empathy-Mental-Health and put dataset/*-reddit.csv there"
FILES: dict[str, str] = {
    "emotional reaction": "emotional-reactions-reddit.csv",
    "interpretation": "interpretations-reddit.csv",
    "exploration": "explorations-reddit.csv",
}
"""Mechanism to file."""
TEXT_OF = "interpretation"
"""Mechanism whose file gives the text of a pair: it is whole there (and the same in ``exploration``)."""
LEVELS = (0, 1, 2)
PAIRS = 3_023
LEVEL_COUNTS: dict[str, tuple[int, int, int]] = {
    "emotional reaction": (2_037, 895, 152),
    "interpretation": (1_626, 114, 1_344),
    "exploration": (2_604, 104, 376),
}
"""Rows of each level in the released files, duplicates included."""
SHARES: dict[str, float] = {"train": 0.75, "valid": 0.05, "test": 0.20}
SHINGLE_WORDS = 5
SIMILAR = 0.5
ALIGNED = 0.9

RESPONSE_TURN = 1
_COLUMNS = ("sp_id", "rp_id", "seeker_post", "response_post", "level", "rationales")
_ENTITY = re.compile(r"&(?:amp;)?#?\w+;")
_CUT_OUT = re.compile(r"(?:sub)?reddit")

Found = Literal["exact", "blanks", "repaired", "aligned"]


@dataclass(frozen=True, slots=True)
class MechanismLabel:
    """Gold label of one mechanism in one response.

    Attributes:
        level: 0 none, 1 weak, 2 strong.
        rationales: Parts of the response (turn 1) that show it, in reading order; empty at level 0.
        n_lost: Rationales of the file that are not in the response; while above 0 the spans are incomplete.
    """

    level: int
    rationales: tuple[Span, ...] = ()
    n_lost: int = 0

    @property
    def is_present(self) -> bool:
        """Weak and strong as one "yes" (Chen et al. 2022)."""
        return self.level > 0


@dataclass(frozen=True, slots=True)
class EpitomeCorpus(LoadedCorpus):
    """One split; as a sequence, its two-turn dialogues (speaker = seeker, listener = responder).

    Attributes:
        mechanisms: Dialogue id to one label a mechanism, in the order of :data:`empatheia.taxonomy.MECHANISMS`.
        counts: What was found and mended in the whole corpus, by name.
    """

    mechanisms: Mapping[str, tuple[MechanismLabel, ...]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of one file."""

    seeker_id: str
    response_id: str
    seeker: str
    response: str
    level: int
    rationales: str

    @property
    def id(self) -> str:
        return f"{self.seeker_id}/{self.response_id}"


def load(split: str, root: str | Path | None = None, strict: bool = False) -> EpitomeCorpus:
    """One split of the Reddit part, from ``<root>/epitome/*-reddit.csv[.gz]``.

    Args:
        split: ``train``, ``valid`` or ``test`` of the split made here, or ``all``.
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.
        strict: Raise at the first row that cannot be used, or when the counts are not the released ones.

    Raises:
        MissingResourceError: A file is not there.
        DataError: A file is not in this format, or ``strict`` and something is wrong.
    """
    name = split if split == "all" else canonical_split(split)
    paths = {mechanism: find_corpus_file(FOLDER, file, root, GET) for mechanism, file in FILES.items()}
    counts: Counter[str] = Counter()
    problems: list[Problem] = []
    rows = {mechanism: _read(path, problems) for mechanism, path in paths.items()}
    path = paths[TEXT_OF]
    counts["rows"] = len(rows[TEXT_OF])
    dialogues, labels = _join(rows, paths, counts, problems)
    if not dialogues:
        raise DataError(f"{path.parent}: no pair is in all three files. Get them again: {GET}")
    report(problems, strict)
    if strict and not is_sample(path):
        _check_counts(path.parent, rows, len(dialogues))
    if name != "all":
        chosen = split_pairs(dialogues, labels, counts)
        dialogues = [d for d in dialogues if chosen[d.id] == name]
    return EpitomeCorpus(
        NAME,
        name,
        path,
        tuple(Dialogue(d.id, d.turns, source=f"{NAME}/{name}") for d in dialogues),
        problems=tuple(problems),
        notes=tuple(_notes(counts)),
        mechanisms={d.id: labels[d.id] for d in dialogues},
        counts=dict(counts),
    )


def _check_counts(folder: Path, rows: Mapping[str, list[_Row]], n_pairs: int) -> None:
    """Raises DataError unless levels and pairs are as many as released."""
    found = {mechanism: tuple(Counter(r.level for r in own)[k] for k in LEVELS) for mechanism, own in rows.items()}
    if (found, n_pairs) != (LEVEL_COUNTS, PAIRS):
        raise DataError(f"{folder}: levels are {found} and {n_pairs} pairs; released: {LEVEL_COUNTS}, {PAIRS}.")


def _read(path: Path, problems: list[Problem]) -> list[_Row]:
    """Rows of one file, in order, duplicates included.

    Raises:
        DataError: A column is missing.
    """
    reader = CsvRows(read_text(path), path)
    if missing := [name for name in _COLUMNS if name not in (reader.fieldnames or ())]:
        raise DataError(f"{path}:1: no column {', '.join(missing)}; found {reader.fieldnames}. Get it again: {GET}")
    out = []
    for row in reader:
        level = (row["level"] or "").strip()
        ids = [(row[key] or "").strip() for key in ("sp_id", "rp_id")]
        if level not in ("0", "1", "2"):
            problems.append(Problem(str(path), reader.line_num, f"level {level!r}, accepted: 0, 1, 2; row left out"))
        elif not all(ids):
            problems.append(Problem(str(path), reader.line_num, "no sp_id or rp_id; row left out"))
        else:
            texts = [row[key] or "" for key in ("seeker_post", "response_post")]
            out.append(_Row(ids[0], ids[1], texts[0], texts[1], int(level), row["rationales"] or ""))
    return out


def _join(
    rows: Mapping[str, Sequence[_Row]], paths: Mapping[str, Path], counts: Counter[str], problems: list[Problem]
) -> tuple[list[Dialogue], dict[str, tuple[MechanismLabel, ...]]]:
    """Pairs by id, in the order of the first file, with the labels of all three."""
    first: dict[str, dict[str, _Row]] = {}
    for mechanism, own in rows.items():
        first[mechanism] = {}
        conflicts = set()
        for row in own:
            kept = first[mechanism].setdefault(row.id, row)
            counts["duplicate rows"] += kept is not row and mechanism == TEXT_OF
            if kept.level != row.level:
                conflicts.add(row.id)
        counts[f"{mechanism}: repeated pairs with another level"] = len(conflicts)
    dialogues: list[Dialogue] = []
    labels: dict[str, tuple[MechanismLabel, ...]] = {}
    for id in dict.fromkeys(id for own in first.values() for id in own):
        if absent := [mechanism for mechanism in MECHANISMS if id not in first[mechanism]]:
            problems.append(Problem(str(paths[absent[0]]), 0, f"pair {id!r} is not in this file; left out"))
            continue
        texts = [first[mechanism][id] for mechanism in MECHANISMS]
        counts["seeker posts in two versions"] += len({row.seeker for row in texts}) > 1
        counts["response posts in two versions"] += len({row.response for row in texts}) > 1
        kept = first[TEXT_OF][id]
        dialogues.append(Dialogue(id, (Turn("speaker", kept.seeker), Turn("listener", kept.response))))
        labels[id] = tuple(_label(first[m][id], m, kept.response, paths[m], counts, problems) for m in MECHANISMS)
    return dialogues, labels


def _label(
    row: _Row, mechanism: str, response: str, path: Path, counts: Counter[str], problems: list[Problem]
) -> MechanismLabel:
    parts = [part.strip() for part in row.rationales.split("|") if part.strip()]
    counts[f"{mechanism}: rationales"] += len(parts)
    if row.level == 0:
        counts[f"{mechanism}: level 0 with a rationale"] += bool(parts)
        return MechanismLabel(0)
    counts[f"{mechanism}: above 0 without a rationale"] += not parts
    places: list[tuple[int, int]] = []
    n_lost = 0
    for part in parts:
        found = locate(part, response)
        if found is None:
            n_lost += 1
            problems.append(Problem(str(path), 0, f"pair {row.id!r}: rationale {part!r} is not in the response"))
            continue
        counts[f"rationales {found[2]}"] += 1
        places.append(found[:2])
    counts["rationales lost"] += n_lost
    spans = tuple(Span(RESPONSE_TURN, start, end) for start, end in sorted(set(places)))
    return MechanismLabel(row.level, spans, n_lost)


def locate(part: str, text: str) -> tuple[int, int, Found] | None:
    """Where a rationale stands in a response, character for character or nearly so.

    Tried in this order: as it is (``exact``); without blanks (``blanks``); also without HTML entities, letter case and
    the words cut out of the release (``repaired``); the closest stretch that holds nine tenths of it (``aligned``).
    The text is never read as a pattern, so ``?`` and ``(`` are themselves (specification, E1).

    Args:
        part: One rationale; blanks around it do not count.
        text: The response.

    Returns:
        Start, end (exclusive) and how it was found; None if it is not there.

    Example:
        >>> locate("how are you <3", "Oh, how are  you &lt;3")
        (4, 22, 'repaired')
    """
    part = part.strip()
    start = text.find(part)
    if not part:
        return None
    if start >= 0:
        return start, start + len(part), "exact"
    ways: tuple[tuple[Found, bool], ...] = (("blanks", False), ("repaired", True))
    for how, is_folded in ways:
        wanted, _ = _letters(part, is_folded)
        letters, places = _letters(text, is_folded)
        start = letters.find(wanted)
        if wanted and start >= 0:
            return places[start][0], places[start + len(wanted) - 1][1], how
    wanted, _ = _letters(part, True)
    letters, places = _letters(text, True)
    blocks = SequenceMatcher(None, wanted, letters, autojunk=False).get_matching_blocks()
    blocks = [block for block in blocks if block.size > 2]
    if wanted and sum(block.size for block in blocks) >= ALIGNED * len(wanted):
        first, last = blocks[0].b, blocks[-1].b + blocks[-1].size - 1
        if last - first < 2 * len(wanted):
            return places[first][0], places[last][1], "aligned"
    return None


def _letters(text: str, is_folded: bool) -> tuple[str, list[tuple[int, int]]]:
    """The text without blanks (and, folded, without entities, case and cut-out words); where each letter stands."""
    letters: list[str] = []
    places: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        entity = _ENTITY.match(text, at) if is_folded else None
        end = entity.end() if entity else at + 1
        shown = html.unescape(html.unescape(text[at:end])) if entity else text[at]
        for letter in unicodedata.normalize("NFKC", shown).casefold() if is_folded else shown:
            if not (letter.isspace() or unicodedata.category(letter) == "Cf"):
                letters.append(letter)
                places.append((at, end))
        at = end
    joined = "".join(letters)
    if is_folded:
        for cut in reversed(list(_CUT_OUT.finditer(joined))):
            del places[cut.start() : cut.end()]
        joined = _CUT_OUT.sub("", joined)
    return joined, places


# -- the split -----------------------------------------------------------------------------------------------


def split_pairs(
    dialogues: Sequence[Dialogue], labels: Mapping[str, tuple[MechanismLabel, ...]], counts: Counter[str] | None = None
) -> dict[str, str]:
    """The split of each pair: a function of ids, texts and levels alone; the order of the rows does not matter.

    Groups of near-duplicates (:func:`near_duplicates`) are sorted by the levels of their first pair and the hash of
    its id; each in turn goes to the split that is furthest below its share.

    Args:
        dialogues: All pairs.
        labels: By id.
        counts: Gets the number of groups with more than one pair, and of the pairs in them.

    Returns:
        Dialogue id to ``train``, ``valid`` or ``test``.
    """
    by_group: dict[str, list[str]] = defaultdict(list)
    for id, leader in near_duplicates(dialogues).items():
        by_group[leader].append(id)
    if counts is not None:
        sizes = [len(ids) for ids in by_group.values() if len(ids) > 1]
        counts["groups of near-duplicates"] = len(sizes)
        counts["pairs in groups of near-duplicates"] = sum(sizes)

    def rank(leader: str) -> tuple[tuple[int, ...], str]:
        digest = hashlib.sha256(leader.encode()).hexdigest()
        return tuple(label.level for label in labels[leader]), digest

    out: dict[str, str] = {}
    taken = dict.fromkeys(SPLITS, 0)
    for leader in sorted(by_group, key=rank):
        ids = by_group[leader]
        n = len(out) + len(ids)
        target = max(SPLITS, key=lambda split: SHARES[split] * n - taken[split])
        taken[target] += len(ids)
        out.update(dict.fromkeys(ids, target))
    return out


def near_duplicates(dialogues: Sequence[Dialogue]) -> dict[str, str]:
    """Groups of pairs that must not be parted: each id to the smallest id of its group.

    Two pairs belong together when they share a seeker or response id, or when their seeker posts or their responses
    are the same words or have at least half of their five-word shingles in common (Jaccard).
    """
    leader = {d.id: d.id for d in dialogues}

    def find(id: str) -> str:
        while leader[id] != id:
            leader[id] = leader[leader[id]]
            id = leader[id]
        return id

    def join(a: str, b: str) -> None:
        small, large = sorted((find(a), find(b)))
        leader[large] = small

    seen: dict[tuple[int, str], str] = {}
    for dialogue in dialogues:
        for side, source in enumerate(dialogue.id.split("/", 1)):
            join(dialogue.id, seen.setdefault((side, source), dialogue.id))
    for turn in (0, RESPONSE_TURN):
        for a, b in _similar([(d.id, _words(d.turns[turn].text)) for d in dialogues]):
            join(a, b)
    return {id: find(id) for id in leader}


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", html.unescape(text).casefold())


def _similar(texts: Sequence[tuple[str, list[str]]]) -> Iterator[tuple[str, str]]:
    """Ids of texts with the same words, or with shingles in common; short texts must be equal."""
    shingles: dict[str, frozenset[tuple[str, ...]]] = {}
    for id, words in texts:
        n = max(1, len(words) - SHINGLE_WORDS + 1)
        shingles[id] = frozenset(tuple(words[i : i + SHINGLE_WORDS]) for i in range(n)) if words else frozenset()
    holders: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for id, own in shingles.items():
        for shingle in own:
            holders[shingle].append(id)
    shared: Counter[tuple[str, str]] = Counter()
    for ids in holders.values():
        shared.update((a, b) for i, a in enumerate(ids) for b in ids[i + 1 :])
    for (a, b), n in shared.items():
        if n >= SIMILAR * (len(shingles[a]) + len(shingles[b]) - n):
            yield a, b


def _notes(counts: Mapping[str, int]) -> Iterator[str]:
    """What a reader should know, as sentences."""
    if counts.get("duplicate rows"):
        conflicts = [f"{counts[f'{m}: repeated pairs with another level']} {m}" for m in MECHANISMS]
        yield f"{counts['duplicate rows']} rows repeat a pair, with another level: {', '.join(conflicts)}; first kept."
    mended = {how: counts.get(f"rationales {how}", 0) for how in ("blanks", "repaired", "aligned", "lost")}
    if any(mended.values()):
        yield (
            f"rationales not in the response as written: {mended['blanks']} differ in blanks, {mended['repaired']} in"
            f" entities or cut-out words, {mended['aligned']} aligned, {mended['lost']} lost."
        )
    versions = {side: counts.get(f"{side} posts in two versions", 0) for side in ("seeker", "response")}
    if any(versions.values()):
        yield f"posts that differ between the files: {versions['seeker']} seekers', {versions['response']} responses."
