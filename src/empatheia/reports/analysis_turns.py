"""One turn of a report as HTML: its text with what was found marked in it, and all of that again in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import Any, TypeVar

from empatheia.reports.emotion_timeline import polarity_class
from empatheia.reports.page import safe
from empatheia.taxonomy import (
    BLOCKED,
    EMPTY,
    NO_HEAD,
    NOT_CACHED,
    NOT_COVERED,
    ONLY_NONE,
    RELATION_GROUPS,
    RELATION_TITLES,
)
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


def turn_html(
    turn: Record,
    index: int,
    key: str,
    found: Mapping[str, Sequence[Record]],
    effects: tuple[list[tuple[int, int, int]], list[int]],
    is_open: bool = True,
) -> str:
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
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    whole = _whole(effects[1], key)
    return (
        f'<li class="turn {safe(turn["role"])}" id="{key}-t{index + 1}">'
        f'<p class="who"><span class="number">{index + 1}</span> {safe(turn["role"])}</p>'
        f'<div class="body"><p class="said">{marked(text, words, effects[0], rationales, key)}</p>{whole}'
        f"{f'<dl>{listed}</dl>' if listed else ''}{_inferences(found.get('inferences', ()), is_open)}</div></li>"
    )


def marked(
    text: str,
    words: Sequence[Record],
    causes: Sequence[tuple[int, int, int]],
    rationales: Sequence[Record],
    key: str,
) -> str:
    """A turn's text, escaped, with word scores as shades, causal spans underlined, rationales dotted.

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
    parts: list[str] = []
    for start, stop in pairwise(places):
        piece = safe(shown[start:stop])
        if step := max((shade for _, _, shade in _around(start, steps)), default=0):
            piece = f'<mark class="w{step}">{piece}</mark>'
        if _around(start, grounds):
            piece = f'<span class="ground">{piece}</span>'
        if explained := _around(start, causes):
            ending = sorted({target for _, last, target in explained if min(last, end) == stop})
            piece = f'<span class="cause">{piece}</span>{_sup(ending, key)}'
        parts.append(piece)
    if end < len(text):
        parts.append(f' <em class="note">… the first {end:,} of {len(text):,} characters</em>')
    return "".join(parts)


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


def label_bars(chances: Mapping[str, float], top: int = TOP_LABELS) -> str:
    """The strongest labels as bars with their probabilities in words."""
    ranked = sorted(chances.items(), key=lambda item: -float(item[1]))[:top]
    items = "".join(
        f'<li><span class="name">{safe(name)}</span><span class="bar" aria-hidden="true">'
        f'<i class="{polarity_class(str(name))}" style="width:{max(0.0, min(1.0, float(p))):.0%}"></i></span>'
        f'<span class="value">{float(p):.0%}</span></li>'
        for name, p in ranked
    )
    return f'<ul class="bars">{items}</ul>'


def _labels(title: str, records: Sequence[Record]) -> list[tuple[str, str]]:
    return [(title, label_bars(record["probabilities"])) for record in records]


def _sides(records: Sequence[Record]) -> list[tuple[str, str]]:
    """The likeliest side, where the model says one."""
    told = [max(record["sides"].items(), key=lambda side: side[1]) for record in records if record.get("sides")]
    return [("side", f"{safe(name)} {float(p):.0%}") for name, p in told]


def _causes(records: Sequence[Record], key: str) -> list[tuple[str, str]]:
    facts = []
    for note in records:
        word = f" (read as {safe(note['emotion'])})" if note.get("emotion") not in (None, "", "neutral") else ""
        items = []
        chances: list[float] = list(note.get("probabilities") or ())
        strongest = sorted(note["turns"], key=lambda turn: -float(chances[turn]) if turn < len(chances) else 0.0)
        for turn in sorted(strongest[:MAX_CAUSES]):
            chance = f" {float(chances[turn]):.0%}" if turn < len(chances) else ""
            quotes = [f"“{safe(span['text'])}”" for span in note["spans"] if span["turn"] == turn]
            quoted = f": {', '.join(quotes)}" if quotes else ""
            items.append(f'<li><a href="#{key}-t{turn + 1}">turn {turn + 1}</a>{chance}{quoted}</li>')
        if len(note["turns"]) > MAX_CAUSES:
            items.append(f"<li>and {len(note['turns']) - MAX_CAUSES} weaker ones</li>")
        facts.append((f"caused by{word}", f"<ul>{''.join(items)}</ul>" if items else "no cause found up to here"))
    return facts


def _words(words: Sequence[Record]) -> list[tuple[str, str]]:
    chosen = [word for word, step in zip(words, word_steps(words), strict=True) if step]
    chosen.sort(key=lambda word: -float(word.get("score") or 0.0))
    if not chosen:
        return []
    told = ", ".join(f"{safe(w['text'])} {float(w.get('score') or 0.0):.2f}" for w in chosen)
    return [("words", told)]


def _mechanisms(records: Sequence[Record]) -> list[tuple[str, str]]:
    if not records:
        return []
    items = []
    for record in records:
        level = int(record["level"])
        quotes = "".join(f", “{safe(span['text'])}”" for span in record["rationales"])
        chance = float(record["probabilities"][level])
        name = safe(record["mechanism"])
        items.append(f'<li class="level{level}">{name}: <strong>{LEVELS[level]}</strong> {chance:.0%}{quotes}</li>')
    return [("empathy shown", f"<ul>{''.join(items)}</ul>")]


IN_WORDS = {
    NOT_COVERED: "the source does not have these relations",
    NO_HEAD: "the source knows no event like this one",
    ONLY_NONE: "the source says that there is nothing",
    NOT_CACHED: "this was not asked beforehand",
    BLOCKED: "what it answers is left out by the list of words that are not shown",
    EMPTY: "the turn has nothing to ask about",
}
"""Why an inference is missing, for a reader of the page."""


def _inferences(records: Sequence[Record], is_open: bool) -> str:
    if not records:
        return ""
    by_relation = {record["relation"]: record for record in records if record["tails"]}
    rows = "".join(_group(group, by_relation) for group in RELATION_GROUPS)
    heads = dict.fromkeys(str(record["head"]) for record in by_relation.values() if record.get("head"))
    notes = [f"looked up: {'; '.join(map(safe, heads))}"] if heads else []
    told = "".join(f'<p class="note">{note}</p>' for note in [*notes, *_unanswered(records, by_relation)])
    summary = "<summary>probably true besides</summary>"
    return (
        f'<details class="likely"{" open" if is_open else ""}>{summary}<dl class="groups">{rows}</dl>{told}</details>'
    )


def _group(group: str, by_relation: Mapping[str, Record]) -> str:
    """The tails of a group of relations; empty where none has any."""
    lines = []
    for relation in RELATION_GROUPS[group]:
        if record := by_relation.get(relation):
            tails = "; ".join(safe(tail) for tail in record["tails"])
            lines.append(f"<li>{_relation(relation)}: {tails}</li>")
    return f"<div><dt>{group}</dt><dd><ul>{''.join(lines)}</ul></dd></div>" if lines else ""


def _unanswered(records: Sequence[Record], by_relation: Mapping[str, Record]) -> Iterator[str]:
    """The relations without tails, those of the same reason together."""
    without = {name: "" for names in RELATION_GROUPS.values() for name in names if name not in by_relation}
    without |= {str(record["relation"]): str(record.get("absent") or "") for record in records if not record["tails"]}
    for reason in dict.fromkeys(without.values()):
        names = ", ".join(f"“{_relation(name)}”" for name, own in without.items() if own == reason)
        told = IN_WORDS.get(reason, reason)
        yield f"no answer for {names}{f': {safe(told)}' if told else ''}"


def _relation(name: str) -> str:
    return f'<abbr title="{safe(name)}">{safe(RELATION_TITLES.get(name, name))}</abbr>'


def _sup(targets: Sequence[int], key: str) -> str:
    if not targets:
        return ""
    shown = ",".join(
        f'<a href="#{key}-t{target + 1}" aria-label="cause in turn {target + 1}">{target + 1}</a>'
        for target in targets[:6]
    )
    return f"<sup>{shown}{',…' if len(targets) > 6 else ''}</sup>"


def _whole(targets: Sequence[int], key: str) -> str:
    if not targets:
        return ""
    links = ", ".join(f'<a href="#{key}-t{t + 1}">{t + 1}</a>' for t in targets[:12])
    more = " …" if len(targets) > 12 else ""
    return f'<p class="note">this turn is a cause in turn{"s" if len(targets) > 1 else ""} {links}{more}</p>'
