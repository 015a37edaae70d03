"""The lexicon: patterns of tokens in ``data/lexicon.tsv``, each with its kind, its level and where it comes from.

A pattern is words apart: ``a|b`` is one of them, ``a?`` may be missing, ``~3`` is up to three tokens of any sort,
``@NAME`` a class defined in the file, ``^`` and ``$`` are the ends of a sentence. Whole tokens are compared, so
"skilled" never holds "killed".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, cast, get_args

from empatheia.care.normalising import Token
from empatheia.errors import DataError
from empatheia.reading import read_text
from empatheia.records.danger import KINDS, LEVELS, Kind, Level, check_name

LEXICON = Path(__file__).parent / "data" / "lexicon.tsv"
COLUMNS = ("pattern", "kind", "level", "force", "provenance", "found", "alone", "false")
Force = Literal["hard", "soft", "mask"]
MASKED = "_idiom_"
"""What masked tokens are read as."""
MOST_BETWEEN = 20
"""Words that a ``~N`` of a pattern may let stand between two others."""


@dataclass(frozen=True, slots=True)
class LexiconLine:
    """One line of the file.

    Attributes:
        pattern: As written.
        kind: None for a mask.
        level: That it has where nothing around it says otherwise.
        force: ``hard`` flags by itself, ``soft`` is evidence, ``mask`` marks harmless words.
        provenance: Where it comes from.
        number: Line of the file, counted from 1.
        expression: Regular expression over " a b c".
        keys: Of these tokens at least one is in every match.
    """

    pattern: str
    kind: Kind | None
    level: Level
    force: Force
    provenance: str
    number: int
    expression: str
    keys: frozenset[str]

    @property
    def rule(self) -> re.Pattern[str]:
        """The expression, compiled when a text first has one of the keys: most texts have few."""
        return _compiled(self.expression)


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that was found.

    Attributes:
        line: Which.
        first: Number of its first token.
        last: Number of its last token.
    """

    line: LexiconLine
    first: int
    last: int


class Lexicon:
    """Lines, and how to find them.

    Args:
        lines: In the order of the file.
    """

    def __init__(self, lines: Iterable[LexiconLine]) -> None:
        self.lines = tuple(lines)
        self._by_key: dict[str, list[int]] = {}
        for place, line in enumerate(self.lines):
            for key in line.keys:
                self._by_key.setdefault(key, []).append(place)

    def hits(self, tokens: Sequence[Token]) -> list[Hit]:
        """All lines found in a text, in its order; words of a mask belong to no other line.

        Args:
            tokens: Of the whole text.
        """
        found: list[Hit] = []
        for first, last in sentences(tokens):
            words = [token.text for token in tokens[first:last]]
            places = sorted({place for word in set(words) for place in self._by_key.get(word, ())})
            masks = [p for p in places if self.lines[p].force == "mask"]
            masked = self._found(masks, words, first)
            for hit in masked:
                for i in range(hit.first, hit.last + 1):
                    if words[i - first] != "_laugh_":
                        words[i - first] = MASKED
            found += masked
            found += self._found([p for p in places if self.lines[p].force != "mask"], words, first)
        return sorted(found, key=lambda hit: (hit.first, hit.last))

    def _found(self, places: Sequence[int], words: Sequence[str], first: int) -> list[Hit]:
        if not places:
            return []
        text = "".join(" " + word for word in words)
        numbers = _numbers(words)
        found = []
        for place in places:
            line = self.lines[place]
            for match in line.rule.finditer(text):
                if match.end() > match.start():
                    begin, end = numbers[match.start()], numbers[match.end() - 1]
                    found.append(Hit(line, first + begin, first + end))
        return found

    @classmethod
    def read(cls, path: str | Path = LEXICON) -> Lexicon:
        """From a file.

        Raises:
            DataError: It is not there, or a line cannot be used; says which.
        """
        path = Path(path)
        try:
            text = read_text(path)
        except OSError as error:
            raise DataError(
                f"the lexicon {path} cannot be read: {error.strerror}. Reinstall or name another."
            ) from error
        classes: dict[str, str] = {}
        lines: list[LexiconLine] = []
        for number, row in enumerate(text.splitlines(), 1):
            if not row.strip() or row.startswith("#") or row.split("\t")[0] == COLUMNS[0]:
                continue
            if row.startswith("@") and "=" in row.split("\t")[0]:
                name, _, members = row.partition("=")
                classes[name.strip()] = "|".join(members.split())
                continue
            lines.append(_line(row, number, classes, path))
        if not lines:
            raise DataError(f"the lexicon {path} holds no line; accepted: tab-separated {', '.join(COLUMNS)}.")
        return cls(lines)


@lru_cache(maxsize=1)
def shipped_lexicon() -> Lexicon:
    """The file of the package, read once."""
    return Lexicon.read()


def sentences(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """First and behind-last token number of every sentence."""
    out: list[tuple[int, int]] = []
    start = 0
    for place in range(1, len(tokens) + 1):
        if place == len(tokens) or tokens[place].sentence != tokens[start].sentence:
            out.append((start, place))
            start = place
    return out


def _numbers(words: Sequence[str]) -> list[int]:
    out: list[int] = []
    for number, word in enumerate(words):
        out += [number] * (len(word) + 1)
    return out


def _line(row: str, number: int, classes: dict[str, str], path: Path) -> LexiconLine:
    cells = row.split("\t")
    if len(cells) < 5:
        raise DataError(f"{path}, line {number}: {len(cells)} columns; accepted: {', '.join(COLUMNS)}, with tabs.")
    pattern, kind, level, force, provenance = (cell.strip() for cell in cells[:5])
    where = f"{path}, line {number}: "
    check_name(force, get_args(Force), where + "force")
    check_name(level, LEVELS, where + "level")
    if force != "mask":
        check_name(kind, KINDS, where + "kind")
    if not provenance:
        raise DataError(f"{where}no provenance; say where the line comes from.")
    try:
        expression, keys = expression_of(pattern, classes)
        return LexiconLine(
            pattern,
            None if force == "mask" else cast(Kind, kind),
            cast(Level, level),
            cast(Force, force),
            provenance,
            number,
            expression,
            keys,
        )
    except (KeyError, ValueError) as error:
        raise DataError(f"{where}the pattern {pattern!r} cannot be used: {error}.") from error


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def expression_of(pattern: str, classes: dict[str, str]) -> tuple[str, frozenset[str]]:
    """A pattern as an expression over " a b c", made of escaped words, and tokens one of which is in every match.

    Raises:
        ValueError: No token of it is required, or too many may stand between others.
        KeyError: A class is not defined.
    """
    out: list[str] = []
    keys: frozenset[str] | None = None
    for element in pattern.split():
        if element == "^":
            out.append("^")
        elif element == "$":
            out.append("$")
        elif element.startswith("~"):
            if not 0 < (gap := int(element[1:])) <= MOST_BETWEEN:
                raise ValueError(f"{gap} words between others; accepted: 1 to {MOST_BETWEEN}")
            out.append(rf"(?: \S+){{0,{gap}}}?")
        else:
            is_optional = element.endswith("?")
            members: list[str] = []
            for word in element.rstrip("?").split("|"):
                members += (classes[word] if word.startswith("@") else word.rstrip("?")).split("|")
            choice = "|".join(re.escape(word) for word in members)
            out.append(f"(?: (?:{choice})(?= |$))" + ("?" if is_optional else ""))
            if not is_optional and (keys is None or len(members) < len(keys)):
                keys = frozenset(members)
    if keys is None:
        raise ValueError("no required word")
    return "".join(out), keys
