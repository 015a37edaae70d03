"""Steps 1 to 4 on conversations that end with the speaker: emotion, target words, inferences, wanted intent.

Each step asks the component of a part (:class:`empatheia.listener.analyzer.Analyzer`): a model of this machine, one the
settings name, one behind an endpoint, or one the caller hands in. A step without one is left out and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from inspect import signature
from pathlib import Path
from threading import RLock
from typing import Literal, overload

from empatheia.analysis.component import Component, ExplainingComponent, Record
from empatheia.analysis.targets import ReasonerTargets, ScoredTargets, SpanTargets, TargetFinder, Targets, named
from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.listener.analyzer import Analyzer
from empatheia.listener.parts import places_of
from empatheia.listener.reasoner import BY_REASONER, Reasoner, ReasonerReading, analyzes
from empatheia.listener.steps.answering import STEP_OF, Notes, models_named, remedy, served_parts
from empatheia.listener.steps.perceive import Perceiver
from empatheia.listener.steps.settings import ListenerSettings, ProjectSettings
from empatheia.listener.steps.steering import OFF, Steering
from empatheia.records.analysis import EVEN, GIVEN, Analysis, Inference, Labels, TurnAnalysis, TurnLabels, WordScores
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span
from empatheia.taxonomy import EMOTIONS
from empatheia.text.inputs import ReadyInput, unread
from empatheia.text.uncertainty import doubts

PERCEPTION = "affect_reader"
_BY_REASONER = ("emotion", "words")
PARTS = ("emotion", "words", "causes", "inferences", "reaction", "intent", "mechanisms")


class Steps:
    """The components of steps 1 to 4 and what they say; models are loaded when first needed.

    Safe to use from several threads, which wait for each other.

    Args:
        settings: Of the listener.
        reasoner: Who stands in for emotion and words; called once, when needed.
        components: Part to a component, in place of a model; any of ``PARTS``.
        device: A torch device.

    Raises:
        ConfigError: A part is unknown, or an endpoint has no usable address.
    """

    def __init__(
        self,
        settings: ListenerSettings,
        reasoner: Callable[[], Reasoner],
        components: Mapping[str, Component[Record]] | None = None,
        device: str = "cpu",
    ) -> None:
        self.settings = settings
        self._reasoner = reasoner
        self._given: Mapping[str, Component[Record]] = {**served_parts(settings), **(components or {})}
        self._device = device
        self._models = models_named(settings)
        self._reasons: dict[str, str] = {}
        self._lock = RLock()
        self._may_stand_in = settings.stand_ins

    def _places(self, part: str) -> dict[str, str | Path]:
        """The models that answer a part: those the settings name, else installed ones.

        Where the reasoner is a perception (:mod:`empatheia.listener.perceiving`), what is merely installed for emotion
        and words does not take its place.
        """
        if part in _BY_REASONER and part not in self._models and self._perceives:
            return {}
        return dict(places_of(part, self._models, self._may_stand_in))

    @cached_property
    def _perceives(self) -> bool:
        return self.reading is not None and self.reading.listener.manifest.system == PERCEPTION

    @cached_property
    def reading(self) -> ReasonerReading | None:
        """The stand-in for emotion and words; None if there is none, see ``missing``."""
        try:
            listener = self._reasoner()
        except MissingResourceError as problem:
            self._reasons["reasoner"] = str(problem)
            return None
        if not analyzes(listener):
            raise ConfigError(
                f"reasoner: {listener.name!r} names no emotion, so it cannot do steps 1 and 2; name a"
                " listener with an emotion head, e.g. gao2021-small."
            )
        return ReasonerReading(listener)

    @cached_property
    def analyzer(self) -> Analyzer:
        """Who loads the components."""
        components = dict(self._given)
        if self.reading is not None:
            components |= {part: BY_REASONER[part](self.reading) for part in self._by_reasoner}
        return Analyzer(PARTS, self._models, components=components, device=self._device, stand_ins=self._may_stand_in)

    @property
    def given(self) -> list[Component[Record]]:
        """Components handed in, or asked at an endpoint."""
        return list(self._given.values())

    @cached_property
    def _by_reasoner(self) -> tuple[str, ...]:
        """Parts that the reasoner answers, as they have no model of their own."""
        without = [part for part in _BY_REASONER if part not in self._given and not self._places(part)]
        return tuple(without) if without and self.reading is not None else ()

    @overload
    def component(self, part: Literal["emotion", "intent", "reaction"]) -> Component[TurnLabels] | None: ...

    @overload
    def component(self, part: Literal["words"]) -> ExplainingComponent[WordScores] | None: ...

    @overload
    def component(self, part: Literal["causes"]) -> ExplainingComponent[CauseAnnotation] | None: ...

    @overload
    def component(self, part: Literal["inferences"]) -> Component[Inference] | None: ...

    @overload
    def component(self, part: str) -> Component[Record] | None: ...

    def component(self, part: str) -> Component[Record] | None:
        """The component of a part, or None; then :meth:`reason` says why."""
        with self._lock:
            if part in _BY_REASONER and part not in self.analyzer.given and not self._places(part):
                return None
            return self.analyzer.component(part)

    def reason(self, part: str) -> str:
        """Why a part has no component."""
        if part not in _BY_REASONER and not self._places(part):
            return remedy(part)
        return self.analyzer.missing_reason(part) or self._reasons.get("reasoner", f"nothing answers {part!r} here.")

    def sides_of(self, texts: Sequence[str]) -> list[Mapping[str, float]] | None:
        """How pleasant each text is to read, by the perception; None where there is none."""
        if not texts or not self._perceives or self.reading is None:
            return None
        with self._lock:
            return [found.newest.sides for found in self.reading.listener.analyze(list(texts))]

    def understand(self, inputs: Sequence[ReadyInput], steering: Steering, batch_size: int = 1) -> list[Analysis]:
        """Everything the steps find, in the order of the inputs; an input gets the same alone or among others.

        The analyses are of what is read of the conversations; :func:`located` puts them into these.

        Args:
            inputs: Prepared conversations.
            steering: What the caller decides.
            batch_size: Most texts in one forward pass.

        Raises:
            DataError: A word of ``steering.focus`` does not stand in a newest speaker turn.
            EmpatheiaError: A model the settings name cannot be used.
        """
        with self._lock:
            return self._understood(inputs, steering, batch_size)

    def _understood(self, inputs: Sequence[ReadyInput], steering: Steering, batch_size: int) -> list[Analysis]:
        dialogues = [Dialogue(ready.example.dialogue_id, ready.example.context) for ready in inputs]
        notes = Notes(len(inputs))
        self._forget()
        try:
            emotion = steering.emotion or self.settings.perceive.emotion
            perceiver = self._perceiver(emotion)
            emotions = self._emotions(dialogues, perceiver, emotion, notes, batch_size)
            targets = self._targets(inputs, dialogues, steering, perceiver, notes, batch_size)
            marked = self._marked(dialogues, steering)
            felt = marked if not self._perceives else self._read(dialogues)
            inferences = self._inferences(dialogues, notes, batch_size)
            intents, intent_from = self._intents(dialogues, steering, notes, batch_size)
            doubted = self._doubts(inputs, dialogues, batch_size)
        finally:
            self._forget()
        wanted = steering.intent or self.settings.react.intent
        given = Labels({wanted: 1.0}, GIVEN) if wanted else None
        out = []
        for i, dialogue in enumerate(dialogues):
            feeling, before = emotions[i]
            causes, words = _felt(felt[i] or marked[i], targets[i])
            newest = TurnAnalysis(
                len(dialogue.turns) - 1,
                feeling,
                _side(felt[i], feeling),
                causes,
                words,
                inferences=inferences[i],
                reaction=given or _labels(intents[i], intent_from),
            )
            unsure = (*doubted[i], *notes.doubts[i])
            out.append(_analysis(dialogue, newest, targets[i], before, notes.missing[i], unsure))
        return out

    # -- the steps ---------------------------------------------------------------------------------------------

    def _perceiver(self, given: str | None) -> Perceiver | None:
        """Who says what the turns express, what earlier turns left behind and what the caller gives included."""
        component = self.component("emotion")
        return None if component is None else Perceiver(component, self.settings.memory.carry, given)

    def _emotions(
        self,
        dialogues: Sequence[Dialogue],
        perceiver: Perceiver | None,
        given: str | None,
        notes: Notes,
        batch_size: int,
    ) -> list[tuple[Labels | None, Mapping[str, float]]]:
        """Posterior by who found it, and what earlier turns left behind."""
        named = None if given is None else Labels({name: float(name == given) for name in EMOTIONS}, GIVEN)
        alone = (named, EVEN)
        if given is not None and self.settings.memory.carry == 0.0:
            return [alone] * len(dialogues)  # nobody has to be asked
        if perceiver is None:
            if given is None:
                notes.everywhere("perceive", self.reason("emotion"))
            return [alone] * len(dialogues)
        source = perceiver.name if given is None else GIVEN
        out: list[tuple[Labels | None, Mapping[str, float]]] = []
        for row in notes.rows("perceive", perceiver, dialogues, batch_size):
            if row is None:
                out.append(alone)
                continue
            now, before = row[-1].probabilities, perceiver.prior(row)
            posterior = Labels({e: now.get(e, 0.0) for e in EMOTIONS}, source)
            out.append((posterior, {e: before.get(e, 0.0) for e in EMOTIONS}))
        return out

    def _targets(
        self,
        inputs: Sequence[ReadyInput],
        dialogues: Sequence[Dialogue],
        steering: Steering,
        perceiver: Perceiver | None,
        notes: Notes,
        batch_size: int,
    ) -> list[Targets | None]:
        way, words = self._way(steering), steering.words or self.settings.explain.words
        if way == OFF:
            notes.everywhere("explain", "switched off (explain.targets).")
            return [None] * len(dialogues)
        if way == "given":
            return [_named(ready, words) for ready in inputs]
        finder = self._finder(way, perceiver)
        if finder is None:
            notes.everywhere("explain", self.reason({"spans": "causes"}.get(way, "words")))
            return [None] * len(dialogues)
        return notes.ask("explain", lambda asked: finder.find(asked, batch_size=batch_size), dialogues)

    def _way(self, steering: Steering) -> str:
        """Of finding target words."""
        way = self.settings.explain.targets
        if steering.words:
            return "given"
        return "auto" if way == OFF and steering.focus not in (None, OFF) else way

    def _marked(self, dialogues: Sequence[Dialogue], steering: Steering) -> list[Analysis | None]:
        """What the reasoner marks in all turns, where the targets are words of that."""
        if isinstance(self._finder(self._way(steering)), ReasonerTargets) and self.reading is not None:
            return self._read(dialogues)
        return [None] * len(dialogues)

    def _read(self, dialogues: Sequence[Dialogue]) -> list[Analysis | None]:
        """What the reasoner understands at the newest turns."""
        if self.reading is None:
            return [None] * len(dialogues)
        return [list(row.values())[-1] for row in self.reading.read(dialogues)]

    def _finder(self, way: str, perceiver: Perceiver | None = None) -> TargetFinder | None:
        most = self.settings.explain.most
        has_own = "words" in self._given or bool(self._places("words"))
        if way in ("auto", "gee") and has_own and (words := self.component("words")) is not None:
            return ScoredTargets(words, most, self._emotion_for(words, perceiver))
        has_spans = "causes" in self._given or "cause_spans" in self._places("causes")
        if way in ("auto", "spans") and has_spans and (causes := self.component("causes")) is not None:
            return SpanTargets(causes, most, self._emotion_for(causes, perceiver))
        if way in ("auto", "reasoner") and (reading := self.reading) is not None:

            def analyze(asked: list[Dialogue]) -> list[Analysis]:
                return [list(row.values())[-1] for row in reading.read(asked)]

            return ReasonerTargets(analyze, most)
        return None

    def _emotion_for(self, component: Component[Record], perceiver: Perceiver | None) -> Perceiver | None:
        """For a component that reads the emotion these steps find; one with an emotion of its own keeps that."""
        emotion = getattr(component, "emotion", None)
        if emotion is None or emotion is not self.component("emotion"):
            return None
        return perceiver if "emotion" in signature(component.annotate).parameters else None

    def _inferences(self, dialogues: Sequence[Dialogue], notes: Notes, batch_size: int) -> list[tuple[Inference, ...]]:
        settings = self.settings.project
        nothing: list[tuple[Inference, ...]] = [()] * len(dialogues)
        if not settings.use:
            notes.everywhere("project", "switched off (project.use).")
            return nothing
        if (component := self.component("inferences")) is None:
            notes.everywhere("project", self.reason("inferences"))
            return nothing
        newest = [Dialogue(d.id, d.turns[-1:]) for d in dialogues]
        found = notes.rows("project", component, newest, batch_size)
        return [
            () if row is None else tuple(_kept(row, settings, len(d.turns) - 1))
            for d, row in zip(dialogues, found, strict=True)
        ]

    def _intents(
        self, dialogues: Sequence[Dialogue], steering: Steering, notes: Notes, batch_size: int
    ) -> tuple[list[TurnLabels | None], str]:
        nothing: list[TurnLabels | None] = [None] * len(dialogues)
        if steering.intent or self.settings.react.intent:
            return nothing, GIVEN
        component = self.component("reaction")
        if component is None:
            notes.everywhere("react", self.reason("reaction"))
            return nothing, ""
        found = notes.rows("react", component, dialogues, batch_size)
        return [None if row is None else row[-1] for row in found], component.name

    def _doubts(
        self, inputs: Sequence[ReadyInput], dialogues: Sequence[Dialogue], batch_size: int
    ) -> list[tuple[str, ...]]:
        stand_ins = self.analyzer.stand_ins
        notes = [f"a stand-in answered: {stand_ins[part]}" for part in STEP_OF if part in stand_ins]
        if "emotion" in self._by_reasoner and self.reading is not None:
            found = [list(row.values())[-1].unsure for row in self.reading.read(dialogues)]
            read = [
                (*unread(ready.n_skipped, ready.shift, ready.turns), *own)
                for ready, own in zip(inputs, found, strict=True)
            ]
        else:
            read = [
                (*unread(ready.n_skipped, ready.shift, ready.turns), *doubts(" ".join(turn.text for turn in d.turns)))
                for ready, d in zip(inputs, dialogues, strict=True)
            ]
        return [tuple(dict.fromkeys((*ready.doubts, *own, *notes))) for ready, own in zip(inputs, read, strict=True)]

    def _forget(self) -> None:
        self.analyzer.forget()
        reading = self.__dict__.get("reading")  # not to be loaded for this
        if reading is not None:
            reading.forget()


def located(analysis: Analysis, ready: ReadyInput, listener: str) -> Analysis:
    """An analysis of what was read of a conversation as one of the conversation as it was given, by a listener."""
    dialogue = Dialogue(ready.example.dialogue_id, ready.turns)
    turns = tuple(
        replace(
            one,
            turn=one.turn + ready.n_skipped,
            causes=tuple(map(ready.located, one.causes)),
            words=tuple(map(ready.located, one.words)),
            inferences=tuple(replace(own, turn=own.turn + ready.n_skipped) for own in one.inferences),
        )
        for one in analysis.turns
    )
    targets = tuple(map(ready.located, analysis.targets))
    by = {**analysis.by, "listener": listener}
    return replace(analysis, dialogue=dialogue, turns=turns, targets=targets, by=by)


def _analysis(
    dialogue: Dialogue,
    newest: TurnAnalysis,
    targets: Targets | None,
    prior: Mapping[str, float],
    missing: Mapping[str, str],
    unsure: tuple[str, ...],
) -> Analysis:
    """All that was found of a conversation, with who found it."""
    by = {
        "emotion": "" if newest.emotion is None else newest.emotion.by,
        "targets": "" if targets is None else targets.source,
        "reaction": "" if newest.reaction is None else newest.reaction.by,
    }
    spans = () if targets is None else targets.spans
    named = {part: name for part, name in by.items() if name}
    return Analysis(dialogue, (newest,), spans, prior, named, missing, unsure)


def _labels(predicted: TurnLabels | None, by: str) -> Labels | None:
    return None if predicted is None else Labels(dict(predicted.probabilities), by)


def _side(read: Analysis | None, emotion: Labels | None) -> Labels | None:
    """As it is perceived; unknown where the emotion is given."""
    is_given = emotion is not None and emotion.by == GIVEN
    return None if read is None or is_given else read.newest.side


def _felt(read: Analysis | None, targets: Targets | None) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Causes and words of the newest turn: as they are perceived; words that the caller names are the causes."""
    if read is not None and (targets is None or targets.source != GIVEN):
        return read.newest.causes, read.newest.words
    causes = () if targets is None else targets.spans
    words = tuple(sorted(causes, key=lambda span: span.start)) if read is None else read.newest.words
    return causes, words


def _kept(row: Sequence[Inference], settings: ProjectSettings, turn: int) -> Iterator[Inference]:
    """The relations asked for, each with its best tails, as of another turn."""
    for own in row:
        if own.relation in settings.relations:
            tails, scores = own.tails[: settings.tails], own.scores[: settings.tails]
            yield replace(own, turn=turn, tails=tails, scores=scores)


def _named(ready: ReadyInput, words: Sequence[str]) -> Targets:
    """The words a caller names, in what is read of the newest turn.

    Raises:
        DataError: One does not stand there; says so if it stands in the part that is not read.
    """
    last = len(ready.example.context) - 1
    try:
        return named(ready.example.context[last].text, words, last)
    except DataError:
        if ready.shift:
            named(ready.turns[-1].text, words)  # raises, if it stands nowhere
            raise DataError(
                f"a word of {', '.join(map(repr, words))} occurs only in the first {ready.shift:,} characters of the"
                " newest turn, which are not read; name words of its end, or shorten the turn."
            ) from None
        raise
