"""What a language model is told: the instruction, our analysis as hints, the turns; and how its answer is read.

All wording is here. The wording is ours; no paper prescribes it. Whatever is shown beside the turns comes from an
analysis of these turns, never from a corpus's labels.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from empatheia.errors import ConfigError
from empatheia.records.dialogue import Span, Turn
from empatheia.registry import nearest
from empatheia.text.model_text import spoken, without_tokens
from empatheia.text.readable import readable

SHOWN = ("emotion", "side", "causes", "intent")
"""What of an analysis may be shown."""
MOST_CAUSES = 5
CHAT_ROLES = {"speaker": "user", "listener": "assistant"}
_OTHER_SPEAKS = re.compile(r"\n[^\S\n]*(?:speaker|user|human)\s*:.*", re.DOTALL | re.IGNORECASE)
_OWN_LABEL = re.compile(r"\A\s*(?:listener|assistant|reply|response)\s*:\s*", re.IGNORECASE)
_QUOTED = re.compile(r'\A(?:"([^"]+)"|“([^“”]+)”)\Z', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Hints:
    """What an analysis found in a conversation; an empty field was not asked for or not found.

    Attributes:
        emotion: What the speaker feels.
        causes: Words of the conversation that caused it, best first.
        intent: Emotion or intent a fitting reply has.
        inferences: What else is plausibly true, in a few words each.
        side: ``pleasant``, ``unpleasant`` or ``mixed``.
    """

    emotion: str = ""
    causes: tuple[str, ...] = ()
    intent: str = ""
    inferences: tuple[str, ...] = ()
    side: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready data."""
        found = {"emotion": self.emotion, "causes": list(self.causes), "intent": self.intent}
        found |= {"inferences": list(self.inferences)} if self.inferences else {}
        return found | ({"side": self.side} if self.side else {})


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts a prompt is made of; each may be replaced (recipe: ``model.wording``).

    Args:
        instruction: What the model is and how it answers.
        analysis: What leads in the findings. ``{findings}``: one line each.
        emotion: ``{emotion}``.
        causes: ``{causes}``: quoted words of the speaker with commas between.
        intent: ``{intent}``.
        inferences: ``{inferences}``, with semicolons between.
        earlier: For a conversation that begins with the listener. ``{text}``.
        speaker: A turn in the plain form, for models without a chat template. ``{text}``.
        listener: Likewise.
        cue: Last line of the plain form; the reply follows it.
        side: ``{side}``: pleasant, unpleasant or mixed.
        inline: Shows the findings beside the turn they are about, in place of ``analysis`` in the instruction:
            ``{text}`` of the turn and ``{findings}``, with semicolons between. Empty = in the instruction.

    Raises:
        ConfigError: A text lacks its mark, or has another one.
    """

    instruction: str = (
        "You are the listener in a conversation. The speaker tells you about something in their life. Show that you"
        " understand how they feel and why, the way a kind friend would, in one or two short sentences of everyday"
        " English. Do not lecture and do not invent facts. Write the listener's next turn and nothing else."
    )
    analysis: str = (
        "An automatic analysis of the conversation found the following; it may be wrong:\n{findings}\n"
        "Let it guide the reply where it fits what was said, and do not mention it."
    )
    emotion: str = "- The speaker feels {emotion}."
    causes: str = "- What caused it: {causes}."
    intent: str = "- A fitting reply is {intent}."
    inferences: str = "- What is plausible besides (the speaker ...): {inferences}."
    earlier: str = "The listener opened the conversation: {text}"
    speaker: str = "Speaker: {text}"
    listener: str = "Listener: {text}"
    cue: str = "Listener:"
    side: str = "- It feels {side} to the speaker."
    inline: str = ""

    def __post_init__(self) -> None:
        for name, marks in _MARKS.items():
            text = getattr(self, name)
            if name == "inline" and not text:
                continue
            try:
                filled = text.format(**{mark: f"\0{mark}\0" for mark in marks}) if marks else text
            except (KeyError, IndexError, ValueError):
                filled = ""
            if not filled or any(f"\0{mark}\0" not in filled for mark in marks):
                named = " and ".join(f"{{{mark}}}" for mark in marks)
                needed = f"with {named} in it and no other braces" if marks else "that is not empty"
                raise ConfigError(f"wording: {name} is {text!r}; accepted: a text {needed}.")

    @classmethod
    def of(cls, texts: Mapping[str, str] | None) -> Wording:
        """The standard wording with some texts replaced.

        Raises:
            ConfigError: A name is unknown or a text lacks its mark.
        """
        known = [field.name for field in fields(cls)]
        for name in texts or ():
            if name not in known:
                raise ConfigError(f"wording: no text {name!r}.{nearest(name, known)} Accepted: {', '.join(known)}.")
        return cls(**dict(texts or {}))

    @property
    def fingerprint(self) -> str:
        """12 hexadecimal digits of all texts."""
        texts = asdict(self)
        later = {field.name: field.default for field in fields(self) if field.name in ("side", "inline")}
        texts = {name: text for name, text in texts.items() if later.get(name) != text}  # journals go by it
        return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:12]


_MARKS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("instruction", "cue"), ()),
    "analysis": ("findings",),
    **{name: (name,) for name in ("emotion", "side", "causes", "intent", "inferences")},
    **dict.fromkeys(("earlier", "speaker", "listener"), ("text",)),
    "inline": ("text", "findings"),
}


def parse_shown(text: str | Sequence[str]) -> tuple[str, ...]:
    """Parts of an analysis named in a text such as ``emotion,causes``, or in a list; ``all``, ``none`` or empty.

    Raises:
        ConfigError: A name is unknown.

    >>> parse_shown("causes, emotion")
    ('emotion', 'causes')
    """
    names = {name.strip().lower() for name in (text.split(",") if isinstance(text, str) else text)} - {"", "none"}
    if "all" in names:
        return SHOWN
    for name in sorted(names - set(SHOWN)):
        raise ConfigError(
            f"nothing named {name!r} can be shown.{nearest(name, list(SHOWN))} Accepted: {', '.join(SHOWN)}, all, none."
        )
    return tuple(name for name in SHOWN if name in names)


def cause_texts(spans: Sequence[Span], turns: Sequence[Turn]) -> tuple[str, ...]:
    """The first ``MOST_CAUSES`` different texts of cause spans, on one line, without punctuation at their ends."""
    found: dict[str, None] = {}
    for span in spans:
        text = " ".join(re.sub(r"\A\W+|\W+\Z", "", span.of(turns)).split())
        if text:
            found.setdefault(text)
    return tuple(found)[:MOST_CAUSES]


TurnHints = Hints | Sequence[Hints | None] | None
"""Findings of the newest turn; or of each turn, in order, for a wording that shows them inline."""


def messages_of(turns: Sequence[Turn], hints: TurnHints = None, wording: Wording | None = None) -> list[dict[str, str]]:
    """Chat messages: instruction and findings as ``system``, then the turns, the speaker's as ``user``.

    Turns of one role in a row become one message, as many models accept only alternating ones. What the listener said
    before the speaker's first turn is told in the system message.

    Args:
        turns: The conversation; it ends with a speaker turn.
        hints: What is shown of an analysis; None or empty = nothing (zero-shot). Of earlier turns only with
            ``wording.inline``.
        wording: None = the standard one.
    """
    wording = wording or Wording()
    by_turn = hints_by_turn(hints, len(turns))
    n_opening = next((i for i, turn in enumerate(turns) if turn.role == "speaker"), len(turns))
    parts = [wording.instruction]
    if n_opening:
        parts.append(wording.earlier.format(text=" ".join(said_in(turn) for turn in turns[:n_opening])))
    if not wording.inline and (told := analysis_of(by_turn[-1], wording)):
        parts.append(told)
    messages = [{"role": "system", "content": "\n\n".join(parts)}]
    for turn, found in zip(turns[n_opening:], by_turn[n_opening:], strict=True):
        role, text = CHAT_ROLES[turn.role], said_in(turn)
        if wording.inline and found is not None and (lines := _findings(found, wording)):
            text = wording.inline.format(text=text, findings="; ".join(lines))
        if messages[-1]["role"] == role:
            messages[-1]["content"] += "\n" + text
        else:
            messages.append({"role": role, "content": text})
    return messages


def analysis_of(hints: Hints | None, wording: Wording | None = None) -> str:
    """What a model is told of an analysis; empty if nothing was found or asked for."""
    wording = wording or Wording()
    lines = [] if hints is None else _findings(hints, wording)
    return wording.analysis.format(findings="\n".join(lines)) if lines else ""


def said_in(turn: Turn) -> str:
    """A turn as a model may read it: the listener's without thoughts, both without the tokens of templates."""
    return spoken(turn.text) if turn.role == "listener" else without_tokens(turn.text)


def hints_by_turn(hints: TurnHints, n_turns: int) -> list[Hints | None]:
    """One entry a turn; findings given alone are the newest turn's.

    Raises:
        ConfigError: There are more or fewer entries than turns.
    """
    if hints is None or isinstance(hints, Hints):
        return [None] * (n_turns - 1) + [hints]
    if len(hints) != n_turns:
        raise ConfigError(f"hints: {len(hints)} entries for {n_turns} turns; accepted: one a turn (None = nothing).")
    return list(hints)


def _findings(hints: Hints, wording: Wording) -> list[str]:
    """A text for each thing found."""
    lines = [wording.emotion.format(emotion=hints.emotion)] if hints.emotion else []
    if hints.side:
        lines.append(wording.side.format(side=hints.side))
    if hints.causes:  # quoted, as they are the speaker's words and not the analysis's
        lines.append(wording.causes.format(causes=", ".join(json.dumps(c, ensure_ascii=False) for c in hints.causes)))
    if hints.intent:
        lines.append(wording.intent.format(intent=hints.intent))
    if hints.inferences:
        lines.append(wording.inferences.format(inferences="; ".join(hints.inferences)))
    return lines


def plain_prompt(messages: Sequence[Mapping[str, str]], wording: Wording | None = None) -> str:
    """Messages as one text that ends where the reply begins, for models without a chat template."""
    wording = wording or Wording()
    lines = {"user": wording.speaker, "assistant": wording.listener}
    out = [message["content"] + "\n" for message in messages if message["role"] == "system"]
    for message in messages:
        if message["role"] in lines:
            text = " ".join(message["content"].split())  # a line break must not begin somebody else's turn
            out.append(lines[message["role"]].format(text=text))
    return "\n".join([*out, wording.cue])


def read_reply(text: str) -> str:
    r"""The reply in a model's answer, on one line: no thoughts, label or quotation marks, nothing for the other side.

    >>> read_reply('<think>sad</think> Listener: "Oh no, I am sorry."\nSpeaker: Thanks!')
    'Oh no, I am sorry.'
    """
    text = _OWN_LABEL.sub("", _OTHER_SPEAKS.sub("", "\n" + spoken(text).strip()))
    text = " ".join(readable(text).split())
    if quoted := _QUOTED.match(text):
        text = (quoted[1] or quoted[2]).strip()
    return text
