"""One turn of a report: its text with what was found marked in it, and all of that again in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import Any, TypeVar

from empatheia.documents.document import Content, Marked, element, link
from empatheia.documents.emotion_timeline import polarity_class
from empatheia.taxonomy import RELATION_GROUPS, RELATION_TITLES
from empatheia.text.readable import readable

TOP_LABELS = 3
TOP_WORDS = 6
MAX_CAUSES = 8
MAX_CHARACTERS = 4000
"""Characters of one turn that a report shows."""
LEVELS = ("none", "weak", "strong")
_WORD_STEPS = 4
_LEAST_SHARE = 0.25

Record = Mapping[str, Any]
Fact = tuple[str, Content]
_Span = TypeVar("_Span", bound=tuple[int, ...])


def by_turn(records: Iterable[Record], field: str = "turn") -> dict[int, list[Record]]:
    """Records of each turn, in order."""
    found: dict[int, list[Record]] = {}
    for record in records:
        found.setdefault(int(record[field]), []).append(record)
    return found


def effects_of(causes: Iterable[Record]) -> dict[int, tuple[list[tuple[int, int, int]], list[int]]]:
    """Causes seen from the turn they are in.

    Returns:
        Turn to its causal spans as (start, end, turn explained) and to the turns explained by it as a whole.
    """
    found: dict[int, tuple[list[tuple[int, int, int]], list[int]]] = {}
    for note in causes:
        target = int(note["target"])
        with_spans = set()
        for span in note["spans"]:
            with_spans.add(span["turn"])
            spans, _ = found.setdefault(int(span["turn"]), ([], []))
            spans.append((int(span["start"]), int(span["end"]), target))
        for turn in note["turns"]:
            if turn not in with_spans:
                found.setdefault(int(turn), ([], []))[1].append(target)
    return found


def turn_item(
    turn: Record,
    index: int,
    key: str,
    found: Mapping[str, Sequence[Record]],
    effects: tuple[list[tuple[int, int, int]], list[int]],
    is_open: bool = True,
) -> Marked:
    """A list item with the turn and everything said about it.

    Args:
        turn: ``role`` and ``text``.
        index: 0-based.
        key: Prefix of the ids on the page.
        found: Part to the records of this turn.
        effects: What this turn caused, see :func:`effects_of`.
        is_open: Whether the inferences are unfolded.
    """
    text = str(turn["text"])
    words = [word for record in found.get("words", ()) for word in record["words"]]
    rationales = [span for record in found.get("mechanisms", ()) for span in record["rationales"]]
    facts = [
        *_labels("emotion", found.get("emotion", ())),
        *_sides(found.get("emotion", ())),
        *_labels("intent", found.get("intent", ())),
        *_causes(found.get("causes", ()), key),
        *_words(words),
        *_mechanisms(found.get("mechanisms", ())),
        *_labels("fitting reply", found.get("reaction", ())),
    ]
    listed = [element("div", element("dt", name), element("dd", value)) for name, value in facts]
    who = element("p", element("span", str(index + 1), class_="number"), f" {turn['role']}", class_="who")
    body = [
        element("p", *marked(text, words, effects[0], rationales, key), class_="said"),
        *_whole(effects[1], key),
        *([element("dl", *listed)] if listed else []),
        *_inferences(found.get("inferences", ()), is_open),
    ]
    body_box = element("div", *body, class_="body")
    return element("li", who, body_box, class_=f"turn {turn['role']}", id=f"{key}-t{index + 1}")


def marked(
    text: str,
    words: Sequence[Record],
    causes: Sequence[tuple[int, int, int]],
    rationales: Sequence[Record],
    key: str,
) -> list[Content]:
    """A turn's text with word scores as shades, causal spans underlined, rationales dotted.

    Args:
        text: As written; control characters become blanks.
        words: Spans with scores.
        causes: (start, end, turn explained).
        rationales: Spans.
        key: Prefix of the ids on the page.
    """
    end = min(len(text), MAX_CHARACTERS)
    steps = [(int(w["start"]), int(w["end"]), step) for w, step in zip(words, word_steps(words), strict=True) if step]
    grounds = [(int(span["start"]), int(span["end"])) for span in rationales]
    edges = {0, end}
    for span in (*steps, *causes, *grounds):
        edges.update(edge for edge in span[:2] if 0 < edge < end)
    places = sorted(edges)
    shown = readable(text)
    parts: list[Content] = []
    for start, stop in pairwise(places):
        piece: Content = shown[start:stop]
        if step := max((shade for _, _, shade in _around(start, steps)), default=0):
            piece = element("mark", piece, class_=f"w{step}")
        if _around(start, grounds):
            piece = element("span", piece, class_="ground")
        if explained := _around(start, causes):
            ending = sorted({target for _, last, target in explained if min(last, end) == stop})
            parts += [element("span", piece, class_="cause"), *_sup(ending, key)]
        else:
            parts.append(piece)
    if end < len(text):
        cut = f"… the first {end:,} of {len(text):,} characters"
        parts += [" ", element("em", cut, class_="note")]
    return parts


def _around(place: int, spans: Sequence[_Span]) -> list[_Span]:
    """The spans, given as start, end and more, that a character lies in."""
    return [span for span in spans if span[0] <= place < span[1]]


def word_steps(words: Sequence[Record]) -> list[int]:
    """A shade from 0 (none) to 4 for each word: quarters of the turn's best score, for its best six words only.

    >>> word_steps([{"start": 0, "score": 0.9}, {"start": 4, "score": 0.4}, {"start": 9, "score": 0.01}])
    [4, 2, 0]
    """
    scores = [float(word.get("score") or 0.0) for word in words]
    best = max(scores, default=0.0)
    if best <= 0:
        return [0] * len(words)
    ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:TOP_WORDS]
    chosen = {i for i in ranked if scores[i] >= _LEAST_SHARE * best}
    return [min(_WORD_STEPS, ceil(_WORD_STEPS * score / best)) if i in chosen else 0 for i, score in enumerate(scores)]


def label_bars(chances: Mapping[str, float], top: int = TOP_LABELS) -> Marked:
    """The strongest labels as bars with their probabilities in words."""
    ranked = sorted(chances.items(), key=lambda item: -float(item[1]))[:top]
    return element("ul", *(_bar(str(name), float(p)) for name, p in ranked), class_="bars")


def _bar(name: str, chance: float) -> Marked:
    filled = element("i", class_=polarity_class(name), style=f"width:{max(0.0, min(1.0, chance)):.0%}")
    return element(
        "li",
        element("span", name, class_="name"),
        element("span", filled, class_="bar", aria_hidden="true"),
        element("span", f"{chance:.0%}", class_="value"),
    )


def _labels(title: str, records: Sequence[Record]) -> list[Fact]:
    return [(title, label_bars(record["probabilities"])) for record in records]


def _sides(records: Sequence[Record]) -> list[Fact]:
    """The likeliest side, where the model says one."""
    told = [max(record["sides"].items(), key=lambda side: side[1]) for record in records if record.get("sides")]
    return [("side", f"{name} {float(p):.0%}") for name, p in told]


def _causes(records: Sequence[Record], key: str) -> list[Fact]:
    facts: list[Fact] = []
    for note in records:
        word = f" (read as {note['emotion']})" if note.get("emotion") not in (None, "", "neutral") else ""
        items = []
        chances: list[float] = list(note.get("probabilities") or ())
        strongest = sorted(note["turns"], key=lambda turn: -float(chances[turn]) if turn < len(chances) else 0.0)
        for turn in sorted(strongest[:MAX_CAUSES]):
            chance = f" {float(chances[turn]):.0%}" if turn < len(chances) else ""
            quotes = ", ".join(f"“{span['text']}”" for span in note["spans"] if span["turn"] == turn)
            place = link(f"turn {turn + 1}", f"#{key}-t{turn + 1}")
            items.append(element("li", place, chance, f": {quotes}" if quotes else ""))
        if len(note["turns"]) > MAX_CAUSES:
            items.append(element("li", f"and {len(note['turns']) - MAX_CAUSES} weaker ones"))
        facts.append((f"caused by{word}", element("ul", *items) if items else "no cause found up to here"))
    return facts


def _words(words: Sequence[Record]) -> list[Fact]:
    chosen = [word for word, step in zip(words, word_steps(words), strict=True) if step]
    chosen.sort(key=lambda word: -float(word.get("score") or 0.0))
    told = ", ".join(f"{w['text']} {float(w.get('score') or 0.0):.2f}" for w in chosen)
    return [("words", told)] if told else []


def _mechanisms(records: Sequence[Record]) -> list[Fact]:
    items = []
    for record in records:
        level = int(record["level"])
        quotes = "".join(f", “{span['text']}”" for span in record["rationales"])
        strength = element("strong", LEVELS[level])
        chance = f" {float(record['probabilities'][level]):.0%}{quotes}"
        items.append(element("li", f"{record['mechanism']}: ", strength, chance, class_=f"level{level}"))
    return [("empathy shown", element("ul", *items))] if items else []


IN_WORDS = {
    "relation not covered": "the source does not have these relations",
    "no near head": "the source knows no event like this one",
    "nothing but 'none'": "the source says that there is nothing",
    "not in the cache": "this was not asked beforehand",
    "blocked": "what it answers is left out by the list of words that are not shown",
    "nothing to ask about": "the turn has nothing to ask about",
}
"""Why an inference is missing, for a reader of the page."""


def _inferences(records: Sequence[Record], is_open: bool) -> list[Marked]:
    if not records:
        return []
    by_relation = {record["relation"]: record for record in records if record["tails"]}
    groups = [part for group in RELATION_GROUPS for part in _group(group, by_relation)]
    heads = dict.fromkeys(str(record["head"]) for record in by_relation.values() if record.get("head"))
    notes: list[Content] = [f"looked up: {'; '.join(heads)}"] if heads else []
    told = [element("p", note, class_="note") for note in [*notes, *_unanswered(records, by_relation)]]
    summary, rows = element("summary", "probably true besides"), element("dl", *groups, class_="groups")
    return [element("details", summary, rows, *told, class_="likely", open=is_open)]


def _group(group: str, by_relation: Mapping[str, Record]) -> list[Marked]:
    """The tails of a group of relations; nothing where none has any."""
    lines = [
        element("li", _relation(relation), f": {'; '.join(record['tails'])}")
        for relation in RELATION_GROUPS[group]
        if (record := by_relation.get(relation))
    ]
    return [element("div", element("dt", group), element("dd", element("ul", *lines)))] if lines else []


def _unanswered(records: Sequence[Record], by_relation: Mapping[str, Record]) -> Iterator[Content]:
    """The relations without tails, those of the same reason together."""
    without = {name: "" for names in RELATION_GROUPS.values() for name in names if name not in by_relation}
    without |= {str(record["relation"]): str(record.get("absent") or "") for record in records if not record["tails"]}
    for reason in dict.fromkeys(without.values()):
        names = [("“", _relation(name), "”") for name, own in without.items() if own == reason]
        told = IN_WORDS.get(reason, reason)
        yield ("no answer for ", *_joined(names), f": {told}" if told else "")


def _relation(name: str) -> Marked:
    return element("abbr", RELATION_TITLES.get(name, name), title=name)


def _sup(targets: Sequence[int], key: str) -> list[Marked]:
    links = [
        element("a", str(t + 1), href=f"#{key}-t{t + 1}", aria_label=f"cause in turn {t + 1}") for t in targets[:6]
    ]
    return [element("sup", *_joined(links, ","), ",…" if len(targets) > 6 else "")] if targets else []


def _whole(targets: Sequence[int], key: str) -> list[Marked]:
    links = _joined([link(str(t + 1), f"#{key}-t{t + 1}") for t in targets[:12]])
    told = f"this turn is a cause in turn{'s' if len(targets) > 1 else ''} "
    return [element("p", told, *links, " …" if len(targets) > 12 else "", class_="note")] if targets else []


def _joined(parts: Sequence[Content], between: str = ", ") -> list[Content]:
    return [each for part in parts for each in (between, part)][1:]
