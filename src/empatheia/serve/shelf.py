"""Who answers: the models a server knows by name, loaded when first asked, the longest unused one let go."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empatheia.care import Care
from empatheia.errors import ConfigError, EmpatheiaError
from empatheia.listener import Decoding, FocusedListener, Listener
from empatheia.listener.listener import LISTENERS, PLACES, five_steps, in_steps
from empatheia.listener.steps.ranking import Ranker
from empatheia.listener.streaming import ReplyStream
from empatheia.records.analysis import Analysis
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia.registry import nearest
from empatheia.resources.catalogue import (
    AS_TRAINED,
    DEFAULT,
    SYSTEMS,
    describe_model,
    find_model,
    known_models,
    renamed,
)
from empatheia.serve.faults import ApiError
from empatheia.serve.replies import Wish
from empatheia.serve.settings import ServerSettings

BESIDE_UPSTREAM = "empatheia-listener"
"""What the default listener is called where a language model behind an endpoint has its name."""
UPSTREAM = "upstream"
"""System of the language model behind an endpoint."""
_WHOLE = ("five_steps", "affect_reader", "rashkin_retrieval")  # systems that weigh or choose whole replies


@dataclass(frozen=True, slots=True)
class Entry:
    """A model that can be asked for.

    Attributes:
        id: By which.
        title: What it calls itself.
        system: Which it is of.
        licence: Of its weights.
        place: What loads it; empty = the default listener.
    """

    id: str
    title: str
    system: str
    licence: str
    place: str

    @property
    def is_upstream(self) -> bool:
        """Whether it is a language model behind an endpoint."""
        return self.system == UPSTREAM

    @property
    def streams(self) -> bool:
        """Whether its words can be sent one by one, where they are not weighed against other candidates."""
        return self.system not in _WHOLE

    def is_whole(self, wish: Wish) -> bool:
        """Whether such a reply comes as one piece."""
        return not self.streams or (wish.in_steps and not self.is_upstream)


class Served:
    """A loaded model.

    Args:
        entry: Which.
        listener: Who answers.
        care: The check before it answers; False = none.
    """

    def __init__(self, entry: Entry, listener: Listener, care: Care | bool) -> None:
        self.entry = entry
        self.listener = listener
        self.care = care
        self._steps: Any = listener if self.has_steps else None

    @property
    def has_steps(self) -> bool:
        """Whether it is a listener of five steps, which explains itself at no cost."""
        return isinstance(self.listener, FocusedListener)

    def respond(self, items: Sequence[Dialogue], wish: Wish) -> list[Reply]:
        """Replies, in the order of the conversations."""
        listener, settings = self._asked(wish)
        return listener.respond(list(items), care=self.care, **settings)

    def stream(self, item: Dialogue, wish: Wish) -> ReplyStream:
        """A reply on its way: iterate for pieces, ``analysis`` and at the end ``reply``."""
        listener, settings = self._asked(wish)
        return listener.stream(item, care=self.care, **settings)

    def analyze(self, items: Sequence[Dialogue]) -> list[Analysis]:
        """What is felt and why, in the order of the conversations."""
        return self.listener.analyze(list(items))

    def count(self, text: str) -> int:
        """Tokens: pieces of the model where it has a tokeniser of ours, else words."""
        return self.listener.count(text)

    def _asked(self, wish: Wish) -> tuple[Any, dict[str, Any]]:
        writing = dict(wish.writing)
        if self.has_steps or wish.in_steps:
            steps = self._in_steps()
            return steps, {**steps.used(writing), "steering": wish.steering, "explain": True}
        return self.listener, {"decoding": Decoding(**writing)}

    def _in_steps(self) -> Any:
        if self._steps is None:
            self._steps = in_steps(self.listener)
        return self._steps


class Shelf:
    """The models of a server.

    Args:
        settings: Which are served and how many are held.
        care: The check before whoever answers; False = none.

    Attributes:
        entries: All models, by name.
        named: Names of those that the settings name.
        default: Who answers where nobody is named.
        analyst: The default listener, which perceives for those that do not.

    Raises:
        ConfigError: A place that the settings name is none, or two have one name.
        MissingResourceError: It is not on this machine.
    """

    def __init__(self, settings: ServerSettings, care: Care | bool = True) -> None:
        self.settings = settings
        self.entries: dict[str, Entry] = {}
        self.care = care
        self._held: OrderedDict[str, Served] = OrderedDict()
        self._lock = threading.RLock()
        self._ranker: Ranker | None = None
        name = DEFAULT if settings.upstream is None else BESIDE_UPSTREAM
        self.analyst = Entry(name, name, "five_steps", "that of its models", "")
        self._add(self.analyst)
        for model in known_models():
            if not model.fault and not model.lacks and _answers(model.system) and model.name != AS_TRAINED:
                self._add(Entry(model.name, model.title, model.system, model.licence, model.folder))
        named = [self._named(place) for place in settings.models]
        for entry in named:
            if entry != self.entries.get(entry.id):  # an installed model is served anyway
                self._add(entry)
        self.named = tuple(entry.id for entry in named)
        self.default = settings.default or name
        if settings.upstream is not None:
            llm = settings.upstream.llm
            self._add(Entry(llm, llm, UPSTREAM, f"that of {llm}", settings.upstream.url))
            self.default = settings.default if settings.default not in (None, DEFAULT) else llm
        if self.default not in self.entries:
            known = ", ".join(self.entries)
            hint = nearest(self.default, list(self.entries))
            raise ConfigError(f"the default model {self.default!r} is not served.{hint} Served: {known}.")

    def entry(self, name: str | None) -> Entry:
        """A model by the name a request gives, or by its title; None = the default.

        Raises:
            ApiError: None is called so.
        """
        if name == DEFAULT and DEFAULT not in self.entries:  # a language model speaks for it
            name = None
        found = self.entries.get(name or self.default)
        found = found or next((entry for entry in self.entries.values() if entry.title == name), None)
        if found is None:
            names = list(self.entries)
            said = str(name)[:100]
            told = renamed(said) or f"the model {said!r} is not served here.{nearest(said, names)}"
            raise ApiError(
                404,
                f"{told} Served: {', '.join(names)}.",
                param="model",
                code="model_not_found",
            )
        return found

    def held(self, entry: Entry) -> Served | None:
        """The model if it is loaded."""
        return self._held.get(entry.id)

    def open(self, entry: Entry) -> Served:
        """The loaded model; takes seconds the first time."""
        with self._lock:
            if entry.id in self._held:
                self._held.move_to_end(entry.id)
                return self._held[entry.id]
            while len(self._held) >= self.settings.loaded:
                least = next((id for id in self._held if id != self.analyst.id), None)
                if least is None:
                    break
                del self._held[least]
            listener = five_steps() if not entry.place else Listener.load(entry.place)
            self._held[entry.id] = Served(entry, listener, self.care)
            return self._held[entry.id]

    @property
    def ranker(self) -> Ranker:
        """What weighs given replies; loaded when first needed."""
        with self._lock:
            if self._ranker is None:
                self._ranker = Ranker.load()
            return self._ranker

    @property
    def is_ready(self) -> bool:
        """Whether the default model is loaded."""
        return (self.analyst.id if self.entry(None).is_upstream else self.default) in self._held

    def _add(self, entry: Entry) -> None:
        if entry.id in self.entries:
            raise ConfigError(f"two models are called {entry.id!r}; serve one of them, or rename its folder.")
        self.entries[entry.id] = entry

    def _named(self, place: str) -> Entry:
        """What a place of the settings is: a system, a listener's YAML file, a folder, a run, an installed model."""
        path = Path(place).expanduser()
        if path.suffix in (".yaml", ".yml"):
            listener = Listener.load(path)  # tells what is wrong with it; models come later
            return Entry(path.stem, listener.name, "five_steps", "that of its models", str(path))
        if not path.is_dir() and place in SYSTEMS.get("known"):
            folder = PLACES.get("system")(place, self.settings.runs)
            return _entry_of(folder, place)
        folder = find_model(place)
        named = folder.parent if folder.name == "checkpoint" else folder
        name = f"{named.parent.name}/{named.name}" if folder.name == "checkpoint" else named.name
        return _entry_of(folder, name)


def _answers(system: str) -> bool:
    """Whether models of a system answer."""
    return system in LISTENERS or system in SYSTEMS.get("known")


def _entry_of(folder: Path, name: str) -> Entry:
    model = describe_model(folder, name)
    if model.fault:
        raise EmpatheiaError(model.fault)
    return Entry(name, model.title, model.system, model.licence, str(folder))
