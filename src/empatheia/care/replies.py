"""Replies built from the parts in ``data/replies.yaml``, each time with parts that this conversation has not heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from empatheia.care.detector import DANGER_TO_OTHERS
from empatheia.care.policy import Policy
from empatheia.care.resources import Resources, read_mapping
from empatheia.errors import ConfigError
from empatheia.records.danger import Assessment
from empatheia.records.dialogue import Turn

REPLIES = Path(__file__).parent / "data" / "replies.yaml"
NEEDED: Mapping[str, tuple[str, ...]] = {
    "crisis": ("acknowledge", "ask", "ask_again", "stay", "stay_again", "again"),
    "emergency": ("acknowledge", "ask", "stay"),
    "abuse": ("acknowledge", "ask", "stay"),
    "harm_others": ("acknowledge", "ask", "stay"),
    "third_party": ("acknowledge", "ask", "advice", "stay"),
    "third_party_concern": ("follow", "follow_softly"),
    "concern": (
        "follow",
        "follow_softly",
        "follow_abuse",
        "follow_eating_disorder",
        "follow_grief",
        "follow_past",
        "pointer",
        "pointer_softly",
    ),
    "uncertain": ("pointer",),
}
LISTS = ("replaced", "sober", "parting", "without_past", "human", "failed")
ASKED_FOR = ("number", "hotline", "helpline", "who can i call", "who do i call", "phone", "where can i get help")


@dataclass(frozen=True, slots=True)
class Wording:
    """The parts, and how to draw them.

    Attributes:
        parts: By situation and part.
        path: Whence.
    """

    parts: Mapping[str, Any]
    path: Path

    @classmethod
    def read(cls, path: str | Path | None = None) -> Wording:
        """From a file; None = the shipped one.

        Raises:
            ConfigError: It is missing or broken, or a part has no text.
        """
        path = REPLIES if path is None else Path(path)
        tree = read_mapping(path, "file of replies", "Name another, or reinstall the package")
        for situation, names in NEEDED.items():
            for name in names:
                _check(path, f"{situation}.{name}", (tree.get(situation) or {}).get(name))
        for name in LISTS:
            _check(path, name, tree.get(name))
        _check(path, "notice", [tree.get("notice")])
        return cls(tree, path)

    def pick(self, situation: str, name: str, said: str, seed: int) -> str:
        """A part that was not said yet, if there is one left.

        Args:
            situation: Or a list's own name.
            name: Of the part; "" for a list.
            said: What the listener has said so far.
            seed: Chooses among those that are left; the same conversation gets the same part.
        """
        texts = list(self.parts[situation][name] if name else self.parts[situation])
        left = [text for text in texts if _core(text) not in said] or texts
        return left[seed % len(left)]


def _check(path: Path, where: str, texts: Any) -> None:
    is_right = isinstance(texts, list) and texts and all(isinstance(text, str) and text.strip() for text in texts)
    if not is_right:
        raise ConfigError(f"{path}: {where} is {texts!r}; accepted: a list of at least one text.")


def _core(text: str) -> str:
    """The longest piece of a part without places to fill."""
    pieces = text.replace("{emergency}", "\0").replace("{short}", "\0").split("\0")
    return max(pieces, key=len).strip()


@dataclass(frozen=True, slots=True)
class Replies:
    """Builds replies for a place and a policy."""

    wording: Wording
    resources: Resources
    policy: Policy

    def crisis(self, assessment: Assessment) -> str:
        """Acknowledge, ask directly, say where help is, stay; the block of resources at most every few turns."""
        situation = situation_of(assessment)
        said, seed = _said(assessment.turns), _seed(assessment.turns)
        marks = self._block_marks()
        has_block = self._is_recent(assessment.turns, marks, self.policy.block_every)
        was_built = any(_core(text) in said for text in self.wording.parts[situation]["ask"])
        tells = not has_block or assessment.worsened or asks_for_numbers(assessment.turns)
        later = was_built and situation == "crisis"
        parts = [
            self._filled(situation, "acknowledge", said, seed),
            self._filled(situation, "ask_again" if later else "ask", said, seed // 7),
        ]
        if situation == "third_party":
            parts.append(self._filled(situation, "advice", said, seed // 3))
        if tells:
            parts.append(self.resources.block(assessment.kinds))
        elif later:
            parts.append(self._filled("crisis", "again", said, seed // 5))
        parts.append(self._filled(situation, "stay_again" if later else "stay", said, seed // 11))
        return _laid_out(parts)

    def follow(self, assessment: Assessment) -> str:
        """One gentle question and a pointer; "" where either was said a moment ago."""
        said, seed = _said(assessment.turns), _seed(assessment.turns)
        situation, name = "concern", "follow"
        if assessment.about == "other":
            situation, name = "third_party_concern", "follow"
            if any("happened" in reason for reason in assessment.reasons):
                situation, name = "concern", "follow_grief"
        elif "abuse" in assessment.kinds:
            name = "follow_abuse"
        elif assessment.kinds[:1] == ("eating_disorder",):
            name = "follow_eating_disorder"
        elif assessment.about == "past":
            name = "follow_past"
        if assessment.is_suspicion and name in ("follow", "follow_past"):
            name = "follow_softly"
        asked = [_core(t) for s, n in (("concern", name), (situation, name)) for t in self.wording.parts[s].get(n, ())]
        parts = []
        if not self._is_recent(assessment.turns, asked, self.policy.ask_every):
            parts.append(self._filled(situation, name, said, seed))
        marks = [self.resources.short(), *self._block_marks()]
        if not self._is_recent(assessment.turns, marks, self.policy.block_every):
            pointer = "pointer_softly" if name == "follow_softly" else "pointer"
            parts.append(self._filled("concern", pointer, said, seed // 5))
        return " ".join(parts)

    def uncertain(self, assessment: Assessment) -> str:
        """A pointer for a text in another language; "" if it was given a moment ago."""
        if self._is_recent(assessment.turns, [self.resources.short(), *self._block_marks()], self.policy.block_every):
            return ""
        return self._filled("uncertain", "pointer", _said(assessment.turns), 0)

    def failed(self, turns: Sequence[Turn] = ()) -> str:
        """What is said when nothing could be judged."""
        return _laid_out([self._filled("failed", "", _said(turns), _seed(turns)), self.resources.block()])

    def replaced(self, turns: Sequence[Turn] = ()) -> str:
        """In place of something harmful a responder wrote."""
        return self._filled("replaced", "", _said(turns), _seed(turns))

    def sober(self, turns: Sequence[Turn] = ()) -> str:
        """In place of joy over what somebody says who may be in danger."""
        return self._filled("sober", "", _said(turns), _seed(turns))

    def parting(self, turns: Sequence[Turn] = ()) -> str:
        """In place of a goodbye to somebody who may be in danger."""
        return self._filled("parting", "", _said(turns), _seed(turns))

    def without_past(self, turns: Sequence[Turn] = ()) -> str:
        """In place of a reply that only told of a human past."""
        return self._filled("without_past", "", _said(turns), _seed(turns))

    def human(self, turns: Sequence[Turn] = ()) -> str:
        """To who asks whether it is human."""
        return self._filled("human", "", _said(turns), _seed(turns))

    def notice(self) -> str:
        """Before the first turn of a chat."""
        return self._fill(str(self.wording.parts["notice"]))

    def _filled(self, situation: str, name: str, said: str, seed: int) -> str:
        return self._fill(self.wording.pick(situation, name, said, seed))

    def _fill(self, text: str) -> str:
        return text.replace("{emergency}", self.resources.emergency).replace("{short}", self.resources.short())

    def _block_marks(self) -> list[str]:
        return [self.resources.block().splitlines()[0]]

    @staticmethod
    def _is_recent(turns: Sequence[Turn], marks: Sequence[str], every: int) -> bool:
        """Whether the listener said one of these in its last turns."""
        recent = [turn.text for turn in turns if turn.role == "listener"][-max(1, every - 1) :] if every > 1 else []
        return any(mark and mark in text for mark in marks for text in recent)


def situation_of(assessment: Assessment) -> str:
    """Which parts answer: medical emergency, another person, danger to others, violence, or the speaker's own life."""
    kinds = assessment.kinds
    if kinds[:1] == ("emergency",) or ("emergency" in kinds and assessment.about != "other"):
        return "emergency"
    if assessment.about == "other":
        return "third_party"
    if any(f", {DANGER_TO_OTHERS}" in reason for reason in assessment.reasons):
        return "harm_others"
    return "abuse" if kinds[:1] == ("abuse",) else "crisis"


def asks_for_numbers(turns: Sequence[Turn]) -> bool:
    """Whether the speaker just asked where to call."""
    text = next((turn.text.lower() for turn in reversed(turns) if turn.role == "speaker"), "")
    return any(mark in text for mark in ASKED_FOR)


def _said(turns: Sequence[Turn]) -> str:
    return "\n".join(turn.text for turn in turns if turn.role == "listener")


def _seed(turns: Sequence[Turn]) -> int:
    """Of the conversation: another one draws other parts, the same one the same."""
    return crc32("\n".join(turn.text for turn in turns).encode("utf-8", "replace"))


def _laid_out(parts: Sequence[str]) -> str:
    """Sentences in one paragraph, blocks of lines apart."""
    out = ""
    for part in parts:
        is_block = part.startswith("- ")
        out += ("" if not out else "\n" if is_block or out.rsplit("\n", 1)[-1].startswith("- ") else " ") + part
    return out
