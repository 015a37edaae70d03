"""How ``--explain`` and ``/why`` tell why a reply was given."""

from __future__ import annotations

from collections.abc import Container

from empatheia.cli.output import Line, labelled, listed, shortened, visible
from empatheia.records.dialogue import Candidate, Explanation, Reply

MOST_PIECES = 40
MOST_DISTRACTORS = 6


def explanation_lines(reply: Reply, asked: Container[str] = ()) -> list[Line]:
    """Emotion, words, distractors, inferences, intent, candidates with their terms, belief, what was asked and missing.

    Args:
        reply: With its explanation; nothing is told without.
        asked: Words of what the caller asked for (``focus``, ``inferences``, ...): why it is missing is told, as are
            replies and intents that failed. What is merely not installed is in ``--json``.
    """
    why = reply.explanation
    if why is None:
        return []
    lines = [labelled("emotion", _emotion(why))]
    words = ", ".join(visible(span.of(why.turns)) for span in why.targets)
    lines.append(labelled("about", f"{words or 'no word'}{_by(why.targets_from)}"))
    lines += _distractors(why)
    told = [f"{r['relation']}: {'; '.join(r['tails'])}" for r in why.inferences if r["tails"]]
    lines += listed("likely", map(visible, told))
    if why.intent:
        lines.append(labelled("intent", f"{why.intent}{_by(why.intent_from)}"))
    lines += [line for place, own in enumerate(why.candidates) for line in _candidate(place, own, why)]
    if why.belief:
        lines.append(labelled("belief", _belief(why)))
    lines += listed("missing", (f"{what}: {reason}" for what, reason in why.missing.items() if _is_told(what, asked)))
    return lines


def _is_told(what: str, asked: Container[str]) -> bool:
    """Whether what is missing was asked for, or is a reply or an intent that failed."""
    return what.startswith("replies of ") or what == "intent" or any(word in asked for word in what.split())


def _emotion(why: Explanation) -> str:
    if not why.emotion:
        return "none named"
    before = why.prior.get(why.emotion, 0.0)
    is_even = len(set(why.prior.values())) <= 1
    carried = "" if is_even else f", {before:.1%} from the turns before"
    return f"{why.emotion} {why.emotions[why.emotion]:.1%}{carried}{_by(why.emotion_from)}"


def _distractors(why: Explanation) -> list[Line]:
    """What the reply is not about, with where that is from, and how many more there are."""
    lines: list[Line] = []
    for place, text in enumerate(why.worlds[1 : MOST_DISTRACTORS + 1]):
        by = _by(why.distractors_from) if place == 0 else ""
        lines.append(labelled("not" if place == 0 else "", shortened(visible(text), 100) + by))
    if (n_more := len(why.worlds) - 1 - MOST_DISTRACTORS) > 0:
        lines.append(labelled("", f"... and {n_more} more"))
    return lines


def _belief(why: Explanation) -> str:
    said = " ".join(f"{visible(piece).strip()} {value:.2f}".strip() for piece, value in why.belief[:MOST_PIECES])
    return said + (" ..." if len(why.belief) > MOST_PIECES else "")


def _candidate(place: int, own: Candidate, why: Explanation) -> list[Line]:
    """The text with its score, then its terms (value times weight) and where it comes from."""
    settings = dict(own.decoding)
    focus = settings.pop("focus", None)
    way = ", ".join(f"{name} {value}" for name, value in settings.items() if name not in ("max_new_tokens",))
    focused = f", focused (alpha {focus['alpha']:g})" if focus else ""
    terms = "  ".join(
        f"{name} {value:.2f}x{why.weights[name]:g}"
        for name, value in own.terms.items()
        if value is not None and why.weights[name]
    )
    others = f"; also {'; '.join(own.also[:2])}" if own.also else ""
    others += f" and {len(own.also) - 2} more" if len(own.also) > 2 else ""
    return [
        labelled("replies" if place == 0 else "", f"{own.score:7.2f}  {visible(own.text) or '(empty)'}"),
        labelled("", f"         {terms}"),
        labelled("", f"         {own.responder}: {way}{focused}{others}"),
    ]


def _by(source: str) -> str:
    return f"  ({source})" if source else ""
