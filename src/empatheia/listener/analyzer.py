"""The :class:`Analyzer`: a conversation in; what is felt, why, what else is likely and how to react, out.

>>> analyzer = Analyzer("emotion,words")  # doctest: +SKIP
>>> analysis = analyzer.analyze("I lost my grandmother last week.")  # doctest: +SKIP
>>> newest = analysis.newest  # doctest: +SKIP
>>> newest.emotion.label, [word.of(analysis.dialogue.turns) for word in newest.scores.top(1)]  # doctest: +SKIP
('sad', ['grandmother'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from empatheia.analysis.component import Component, Record
from empatheia.errors import CheckpointError, ConfigError, DataError, EmpatheiaError
from empatheia.listener.parts import (
    BY_LISTENER,
    PART_MODELS,
    Remembered,
    load_part,
    models_of,
    parse_parts,
    places_of,
    stand_in_reason,
)
from empatheia.records.analysis import PARTS, Analysis, Labels, TurnAnalysis
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.registry import nearest
from empatheia.text.inputs import as_conversation, up_to
from empatheia.text.readable import has_controls, readable
from empatheia.text.uncertainty import CONTROLS, doubts

WINDOW_TURNS = 1024
"""Turns read at a time: enough for full batches, and what bounds the memory."""
LONGEST_CONVERSATION = 5000
"""Most turns of one conversation, which is read whole."""
LONG_TURN = 2000
"""Characters of a turn beyond which no model is sure to have read all of it."""
_LONG = f"longer than {LONG_TURN:,} characters, of which the models read a part"
_SHARED = ("emotion", "intent")
_NO_SPEAKER = "no speaker turn in this conversation, and this part is about what the speaker says."
_NOTHING_SAID = {
    **dict.fromkeys(("emotion", "causes", "words", "inferences", "reaction"), _NO_SPEAKER),
    "mechanisms": "no listener turn answers a speaker turn in this conversation.",
}

Input = str | Dialogue


class Analyzer:
    """Asks a conversation everything the parts can answer.

    Each component is loaded once, when it is first needed. A part whose model is not on this machine is left out and
    :class:`Analysis`.missing says why and which command gets it; ``emotion``, ``causes`` and ``words`` then come from
    the default listener. The emotion of the turns is computed once and handed to the parts that read it.

    Args:
        parts: Of :data:`empatheia.records.analysis.PARTS`: a list, a text such as ``emotion,causes``, or ``all``.
        models: Model name (a part, or ``cause_spans``) to a folder or a name; without one, the folder of that name in
            EMPATHEIA_MODELS, in the cache, or bundled. A model given here must load.
        listener: Name or folder of the listener that answers ``emotion``, ``causes`` and ``words`` where they have no
            model; None = what perceives by default.
        components: Part to a loaded component, in place of a model.
        device: A torch device.
        stand_ins: Whether models made at size smoke may answer where they are installed.

    Raises:
        ConfigError: A part or a model name is unknown.
    """

    def __init__(
        self,
        parts: str | Sequence[str] = PARTS,
        models: Mapping[str, str | Path] | None = None,
        *,
        listener: str | Path | None = None,
        components: Mapping[str, Component[Record]] | None = None,
        device: str = "cpu",
        stand_ins: bool = True,
    ) -> None:
        self.parts = parse_parts(parts)
        self.models = dict(models or {})
        self.listener = listener
        self.device = device
        self._may_stand_in = stand_ins
        known = [model.name for model in PART_MODELS]
        for name in self.models:
            if name not in known:
                raise ConfigError(
                    f"models: unknown model name {name!r}.{nearest(name, known)} Accepted: {', '.join(known)}."
                )
        for part in components or ():
            if part not in PARTS:
                raise ConfigError(
                    f"components: unknown part {part!r}.{nearest(part, list(PARTS))} Accepted: {', '.join(PARTS)}."
                )
        self._given = frozenset(components or ())
        self._reading: Any = None
        self._loaded: dict[str, Component[Record] | None] = {
            part: _shared(own) for part, own in (components or {}).items()
        }
        self._reasons: dict[str, str] = {}
        self._notes: dict[str, str] = {}

    def __repr__(self) -> str:
        loaded = [f"{part} by {own.name}" for part, own in self._loaded.items() if own is not None]
        return f"Analyzer({', '.join(self.parts)}{'; loaded: ' if loaded else ''}{', '.join(loaded)})"

    def component(self, part: str) -> Component[Record] | None:
        """The component of a part, loaded now if it was not; None if there is none, see :attr:`missing`.

        Raises:
            EmpatheiaError: A model that the caller named cannot be used.
        """
        if part not in self._loaded:
            self._loaded[part] = None
            self._loaded[part] = self._load(part)
        return self._loaded[part]

    def load(self) -> Analyzer:
        """Loads every component now.

        Raises:
            EmpatheiaError: A model that the caller named cannot be used.
        """
        for part in self.parts:
            self.component(part)
        return self

    @property
    def names(self) -> dict[str, str]:
        """Part to the name of what answers it, of the parts that can be answered; loads them."""
        return {part: own.name for part in self.parts if (own := self.component(part)) is not None}

    @property
    def missing(self) -> dict[str, str]:
        """Part to the reason why it cannot be answered and what to do; loads the others."""
        self.load()
        return {part: self._reasons[part] for part in self.parts if part in self._reasons}

    @property
    def given(self) -> frozenset[str]:
        """Parts whose component the caller handed in."""
        return self._given

    def missing_reason(self, part: str) -> str:
        """Why a part that was asked for its component has none; empty if it has."""
        return self._reasons.get(part, "")

    @property
    def stand_ins(self) -> dict[str, str]:
        """Part to the reason why its loaded model is a stand-in, of those that are."""
        return dict(self._notes)

    @overload
    def analyze(
        self,
        item: Input,
        batch_size: int = ...,
        progress: Callable[[int], None] | None = ...,
        *,
        target: int | None = ...,
    ) -> Analysis: ...

    @overload
    def analyze(
        self,
        item: Iterable[Input],
        batch_size: int = ...,
        progress: Callable[[int], None] | None = ...,
        *,
        target: int | None = ...,
    ) -> list[Analysis]: ...

    def analyze(
        self,
        item: Input | Iterable[Input],
        batch_size: int = 1,
        progress: Callable[[int], None] | None = None,
        *,
        target: int | None = None,
    ) -> Analysis | list[Analysis]:
        """Everything asked about a conversation; it gets the same answer alone or in a list.

        The conversation's own label and situation are not read. Control characters are read as blanks.

        Args:
            item: A text (one speaker turn), a conversation, or a list of these; it may end with the listener.
            batch_size: Most turns that are read together; 1 = each by itself, so that its answer does not depend on
                what stands beside it in the last digit.
            progress: Called as the work goes on; its numbers add up to the number of conversations.
            target: Index of the one turn to answer for, of any role; later turns are not read. None = all turns.

        Returns:
            One analysis, or a list in the order of the inputs.

        Raises:
            DataError: An input is empty, has an empty turn or no turn ``target``; in a list, the message has its
                number.
            EmpatheiaError: A model that the caller named cannot be used.
        """
        if isinstance(item, str | Dialogue):
            return self._about(self._analyze_window([_conversation(item, target)], batch_size), target)[0]
        return list(self.stream(item, batch_size, progress, target=target))

    def stream(
        self,
        items: Iterable[Input],
        batch_size: int = 1,
        progress: Callable[[int], None] | None = None,
        *,
        target: int | None = None,
    ) -> Iterator[Analysis]:
        """As :meth:`analyze` for any number of conversations, in constant memory.

        Args:
            items: Texts or conversations, in any iterable.
            batch_size: Most turns in one forward pass.
            progress: Called as the work goes on; its numbers add up to the number of conversations.
            target: As for :meth:`analyze`.

        Raises:
            DataError: An input cannot be used; the message gives its number.
        """
        for window in _windows(items, target):
            yield from self._about(self._analyze_window(window, batch_size, progress), target)

    @staticmethod
    def _about(found: list[Analysis], target: int | None) -> list[Analysis]:
        return found if target is None else [one.about(target) for one in found]

    def _analyze_window(
        self, dialogues: Sequence[Dialogue], batch_size: int, progress: Callable[[int], None] | None = None
    ) -> list[Analysis]:
        names, missing = self.names, self.missing
        shares = _Shares(progress, len(names), len(dialogues))
        read = [Dialogue(d.id, tuple(Turn(turn.role, readable(turn.text)) for turn in d.turns)) for d in dialogues]
        found: dict[str, Sequence[tuple[Any, ...]]] = {}
        try:
            for part in names:
                component = self.component(part)
                assert component is not None  # `names` lists what is there
                found[part] = component.annotate(read, batch_size=max(1, batch_size), progress=shares.done)
                shares.end_part()
        finally:
            self.forget()
        shares.end()
        stand_ins = {part: self._notes[part] for part in names if part in self._notes}
        notes = [
            f"stand-in for {', '.join(part for part, own in stand_ins.items() if own == reason)}: {reason}"
            for reason in dict.fromkeys(stand_ins.values())
        ]
        return [
            Analysis(
                dialogue=dialogue,
                turns=_turns_of(len(dialogue.turns), {part: (names[part], found[part][i]) for part in names}),
                by=dict(names),
                missing={**missing, **_unasked(dialogue, names)},
                unsure=(*_doubts(dialogue), *notes),
                parts=self.parts,
            )
            for i, dialogue in enumerate(dialogues)
        ]

    def _load(self, part: str) -> Component[Record] | None:
        given = {model.name for model in models_of(part)} & set(self.models)
        places = places_of(part, self.models, self._may_stand_in)
        is_listeners = part in BY_LISTENER and not places
        try:
            component: Any = (
                self._by_listener(part)
                if is_listeners
                else load_part(part, self.models, self._helper, self.device, self._may_stand_in)
            )
        except EmpatheiaError as error:
            if given:
                raise
            self._reasons[part] = str(error)
            return None
        except (ImportError, OSError, RuntimeError, ValueError, KeyError, TypeError) as error:  # a damaged folder
            what = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            reason = f"the model for {part!r} cannot be loaded: {what}. Make it again: {models_of(part)[0].remedy}"
            if given:
                raise CheckpointError(reason) from error
            self._reasons[part] = reason
            return None
        if reason := next(filter(None, map(stand_in_reason, places.values())), ""):
            self._notes[part] = reason
        return _shared(component)

    def _by_listener(self, part: str) -> Component[Record]:
        from empatheia.listener.reasoner import BY_REASONER, ReasonerReading

        if self._reading is None:
            self._reading = ReasonerReading.load(self.listener, self.device)
        return BY_REASONER[part](self._reading)

    def _helper(self, part: str) -> Component[Record] | None:
        """Another part's component for those that read it, asked for or not."""
        return self.component(part)

    def forget(self) -> None:
        """Drops what components remember of conversations."""
        for component in (*self._loaded.values(), self._reading):
            if isinstance(forget := getattr(component, "forget", None), Callable):
                forget()


def _turns_of(n: int, found: Mapping[str, tuple[str, Sequence[Any]]]) -> tuple[TurnAnalysis, ...]:
    """What components say of a conversation of ``n`` turns, turn by turn.

    Args:
        n: Turns.
        found: Part to the name of who answered and its records.
    """
    fields: list[dict[str, Any]] = [{} for _ in range(n)]
    for part, (by, records) in found.items():
        for one in records:
            own = fields[one.target if part == "causes" else one.turn]
            if part in ("mechanisms", "inferences"):
                own[part] = (*own.get(part, ()), one)
            elif part == "causes":
                own |= {"evidence": one, "causes": one.spans}
            elif part == "words":
                own |= {"scores": one, "words": one.words}
            else:
                own[part] = Labels(one.probabilities, by)
                own |= {"side": Labels(one.sides, by)} if part == "emotion" and one.sides else {}
    return tuple(TurnAnalysis(turn, **own) for turn, own in enumerate(fields))


class _Shares:
    """Work of several parts on the same conversations, told in conversations.

    Args:
        tell: Called with numbers that add up to ``n_dialogues``, or None.
        n_parts: How many parts go over the conversations.
        n_dialogues: How many conversations.
    """

    def __init__(self, tell: Callable[[int], None] | None, n_parts: int, n_dialogues: int) -> None:
        self.tell = tell
        self.n_parts = n_parts
        self.n_dialogues = n_dialogues
        self._n_finished = self._n_in_part = self._n_told = 0

    def done(self, n: int) -> None:
        """A part has finished ``n`` more conversations."""
        self._n_in_part = min(self.n_dialogues, self._n_in_part + n)
        self._say((self._n_finished * self.n_dialogues + self._n_in_part) // max(1, self.n_parts))

    def end_part(self) -> None:
        """A part has finished them all."""
        self._n_finished, self._n_in_part = self._n_finished + 1, 0
        self.done(0)

    def end(self) -> None:
        """All parts have."""
        self._say(self.n_dialogues)

    def _say(self, n: int) -> None:
        if self.tell is not None and n > self._n_told:
            self.tell(n - self._n_told)
            self._n_told = n


def _shared(component: Component[Record]) -> Component[Record]:
    return Remembered(component) if component.part in _SHARED else component


def _conversation(item: Any, target: int | None = None) -> Dialogue:
    """A conversation as the parts read it: whole or up to the target turn, each turn with those before it.

    Raises:
        DataError: It is none, has no such turn, or is too long for that.
    """
    dialogue = as_conversation(item) if target is None else up_to(item, target, listeners=True)
    if (n := len(dialogue.turns)) > LONGEST_CONVERSATION:
        raise DataError(
            f"the conversation has {n:,} turns; accepted: at most {LONGEST_CONVERSATION:,}. Split it, or give its end."
        )
    return dialogue


def _windows(items: Iterable[Input], target: int | None = None) -> Iterator[list[Dialogue]]:
    """Checked conversations, at most about ``WINDOW_TURNS`` turns at a time.

    Raises:
        DataError: An input cannot be used; the message gives its number.
    """
    window: list[Dialogue] = []
    n_turns = 0
    for number, item in enumerate(items, 1):
        try:
            dialogue = _conversation(item, target)
        except DataError as error:
            raise DataError(f"input {number}: {error}") from error
        if window and n_turns + len(dialogue.turns) > WINDOW_TURNS:
            yield window
            window, n_turns = [], 0
        window.append(dialogue)
        n_turns += len(dialogue.turns)
    if window:
        yield window


def _unasked(dialogue: Dialogue, parts: Iterable[str]) -> dict[str, str]:
    """Parts that have nothing to be about in this conversation."""
    roles = [turn.role for turn in dialogue.turns]
    is_answered = "speaker" in roles and "listener" in roles[roles.index("speaker") :]
    lacking = {part for part in _NOTHING_SAID if not (is_answered if part == "mechanisms" else "speaker" in roles)}
    return {part: _NOTHING_SAID[part] for part in parts if part in lacking}


def _doubts(dialogue: Dialogue) -> Iterator[str]:
    """Reasons to distrust what is said of the texts, each with its turns (counted from 1)."""
    turns_of: dict[str, list[int]] = {}
    for number, turn in enumerate(dialogue.turns, 1):
        reasons = [CONTROLS] if has_controls(turn.text) else []
        reasons += [_LONG] if len(turn.text) > LONG_TURN else []
        for reason in dict.fromkeys((*reasons, *doubts(readable(turn.text)))):
            turns_of.setdefault(reason, []).append(number)
    for reason, numbers in turns_of.items():
        if len(dialogue.turns) == 1:
            yield reason
            continue
        listed = ", ".join(map(str, numbers[:10])) + (" ..." if len(numbers) > 10 else "")
        yield f"{reason} (turn{'s' if len(numbers) > 1 else ''} {listed})"
