"""How ``--explain`` and ``/why`` tell why a reply was given."""

from __future__ import annotations

from collections.abc import Container

from empatheia.cli.output import Line, labelled, listed, shortened, visible
from empatheia.records.analysis import Analysis
from empatheia.records.reply import Candidate, Reply

MOST_PIECES = 40
MOST_DISTRACTORS = 6


def explanation_lines(reply: Reply, asked: Container[str] = ()) -> list[Line]:
    """Emotion, words, distractors, inferences, intent, candidates with their terms, belief, what was asked and missing.

    Args:
        reply: With its candidates; nothing is told without.
        asked: Words of what the caller asked for (``focus``, ``inferences``, ...): why it is missing is told, as are
            replies and intents that failed. What is merely not installed is in ``--json``.
    """
    if not reply.candidates:
        return []
    analysis, newest = reply.analysis, reply.analysis.newest
    lines = [labelled("emotion", _emotion(analysis))]
    words = ", ".join(visible(span.of(analysis.dialogue.turns)) for span in analysis.targets)
    lines.append(labelled("about", f"{words or 'no word'}{_by(analysis.by.get('targets', ''))}"))
    lines += _distractors(reply)
    told = [f"{one.relation}: {'; '.join(one.tails)}" for one in newest.inferences if one.tails]
    lines += listed("likely", map(visible, told))
    if newest.reaction is not None:
        lines.append(labelled("intent", f"{newest.reaction.label}{_by(newest.reaction.by)}"))
    lines += [line for place, own in enumerate(reply.candidates) for line in _candidate(place, own, reply)]
    if reply.belief:
        lines.append(labelled("belief", _belief(reply)))
    missing = analysis.missing.items()
    lines += listed("missing", (f"{what}: {reason}" for what, reason in missing if _is_told(what, asked)))
    return lines


def _is_told(what: str, asked: Container[str]) -> bool:
    """Whether what is missing was asked for, or is a reply or an intent that failed."""
    return what.startswith("replies of ") or what == "intent" or any(word in asked for word in what.split())


def _emotion(analysis: Analysis) -> str:
    found, prior = analysis.newest.emotion, analysis.prior
    if found is None:
        return "none named"
    is_even = len(set(prior.values())) <= 1
    carried = "" if is_even else f", {prior.get(found.label, 0.0):.1%} from the turns before"
    return f"{found.label} {found.probabilities[found.label]:.1%}{carried}{_by(analysis.by.get('emotion', ''))}"


def _distractors(reply: Reply) -> list[Line]:
    """What the reply is not about, with where that is from, and how many more there are."""
    lines: list[Line] = []
    for place, text in enumerate(reply.worlds[1 : MOST_DISTRACTORS + 1]):
        by = _by(reply.distractors) if place == 0 else ""
        lines.append(labelled("not" if place == 0 else "", shortened(visible(text), 100) + by))
    if (n_more := len(reply.worlds) - 1 - MOST_DISTRACTORS) > 0:
        lines.append(labelled("", f"... and {n_more} more"))
    return lines


def _belief(reply: Reply) -> str:
    said = " ".join(f"{visible(piece).strip()} {value:.2f}".strip() for piece, value in reply.belief[:MOST_PIECES])
    return said + (" ..." if len(reply.belief) > MOST_PIECES else "")


def _candidate(place: int, own: Candidate, reply: Reply) -> list[Line]:
    """The text with its score, then its terms (value times weight) and where it comes from."""
    settings = dict(own.decoding)
    focus = settings.pop("focus", None)
    way = ", ".join(f"{name} {value}" for name, value in settings.items() if name not in ("max_new_tokens",))
    focused = f", focused (alpha {focus['alpha']:g})" if focus else ""
    terms = "  ".join(
        f"{name} {value:.2f}x{reply.weights[name]:g}"
        for name, value in own.terms.items()
        if value is not None and reply.weights[name]
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
