"""Project: what is plausibly true besides what the speaker says? Inferences for every speaker turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empatheia.analysis.component import COMPONENTS, Component
from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.reading import Json, read_record
from empatheia.records.analysis import Inference
from empatheia.records.dialogue import CauseAnnotation, Dialogue
from empatheia.resources import installed_model, models_root, resolve_model
from empatheia.taxonomy import NOT_CACHED, RELATIONS
from empatheia_research.understanding.inferences.cache import CachedInferences, infer_merged
from empatheia_research.understanding.inferences.heads import Asked, asked_about, check_heads
from empatheia_research.understanding.inferences.index import is_index
from empatheia_research.understanding.inferences.nearest import NearestInferences
from empatheia_research.understanding.inferences.provider import (
    Answer,
    Filtered,
    Inferences,
    NoInferences,
    Tails,
    asked_relations,
)

if TYPE_CHECKING:
    import torch

WINDOW = 512
NONE = "none"
"""Name of the provider that answers nothing."""
INSTALLED = "inferences"
"""Name of the folder where models are installed that holds the default provider."""
MAKE = "An index is made with: empatheia infer --build-index atomic"


class InferencesOfTurns:
    """Part ``inferences``: for each speaker turn, what a provider says about each relation.

    A relation without an answer has a record without tails that says why; :meth:`report` counts them. Turns after the
    one asked about are not read, and no gold label is.

    Args:
        provider: Who answers.
        head: Which text is asked about, one of :data:`~empatheia_research.understanding.inferences.heads.HEADS`.
        causes: Component of part ``causes``, for the heads that are causes.
        no_cause: What stands in where it finds none.
        relations: Asked for: names, or groups of :data:`empatheia.taxonomy.RELATION_GROUPS`.
        n: Most tails a relation.

    Raises:
        ConfigError: An option is unknown, or causes are needed and there is no component for them.
    """

    part: str = "inferences"

    def __init__(
        self,
        provider: Inferences,
        *,
        head: str = "turn",
        causes: Component[CauseAnnotation] | None = None,
        no_cause: str = "whole",
        relations: Sequence[str] | str = RELATIONS,
        n: int = 5,
    ) -> None:
        check_heads(head, no_cause)
        needs_causes = head in ("causes", "last_cause", "each")
        if needs_causes and getattr(causes, "part", None) != "causes":
            raise ConfigError(f"inferences: head={head} needs the model that finds causes: causes= (--causes FOLDER).")
        self.provider = provider
        self.head = head
        self.causes = causes if needs_causes else None
        self.no_cause = no_cause
        self.relations = asked_relations(relations, n)
        self.n = n
        self.name = provider.name if head == "turn" else f"{provider.name}, asked about {head}"
        self._answered: Counter[str] = Counter()
        self._absent: dict[str, Counter[str]] = {name: Counter() for name in self.relations}
        self._counts: Counter[str] = Counter()

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        head: str = "turn",
        causes: Component[CauseAnnotation] | str | Path | None = None,
        no_cause: str = "whole",
        relations: Sequence[str] | str = RELATIONS,
        n: int = 5,
        blocked: Sequence[str] = (),
        device: str | torch.device | None = None,
        **settings: Any,
    ) -> InferencesOfTurns:
        """From whatever :func:`open_provider` opens.

        Args:
            folder: An index, an encoder-decoder, or a cache file.
            head: See the class.
            causes: See the class; a folder or name is loaded.
            no_cause: See the class.
            relations: See the class.
            n: See the class.
            blocked: Tails with one of these words are left out.
            device: Where models run; None = the processor.
            **settings: Of the provider.

        Raises:
            MissingResourceError: There is no such folder or file, or an index's encoder is not here.
            CheckpointError: It cannot be used.
            ConfigError: An option is unknown.
        """
        if isinstance(causes, str | Path):
            options = {} if device is None else {"device": device}
            finder: Component[CauseAnnotation] | None = COMPONENTS.get("causes").load(causes, **options)
        else:
            finder = causes
        provider = open_provider(folder, device=device, **settings)
        if blocked:
            provider = Filtered(provider, blocked)
        return cls(provider, head=head, causes=finder, no_cause=no_cause, relations=relations, n=n)

    def annotate(
        self, dialogues: Sequence[Dialogue], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> list[tuple[Inference, ...]]:
        """One record a relation, with tails or with the reason why there are none, by turn, in the relations' order.

        Args:
            dialogues: Conversations; roles matter.
            batch_size: Most rows in one forward pass.
            progress: Called with the number of conversations just finished.
        """
        out: list[tuple[Inference, ...]] = []
        for start in range(0, len(dialogues), WINDOW):
            group = dialogues[start : start + WINDOW]
            asked = list(self.asked(enumerate(group), batch_size))
            records: list[list[Inference]] = [[] for _ in group]
            for turn, answer in zip(asked, self._answers(asked, batch_size), strict=True):
                records[turn.row] += self._records(turn, answer)
            out += [tuple(row) for row in records]
            if progress is not None:
                progress(len(group))
        return out

    def asked(self, dialogues: Iterable[tuple[int, Dialogue]], batch_size: int = 32) -> Iterator[Asked]:
        """What is asked for each speaker turn, in order.

        Args:
            dialogues: Conversations with their row numbers.
            batch_size: Most rows in one forward pass of the model that finds causes.
        """
        rest = iter(dialogues)
        while group := list(islice(rest, WINDOW if self.causes is not None else 1)):
            causes: list[dict[int, Sequence[int]]] = [{} for _ in group]
            if self.causes is not None:
                found = self.causes.annotate([dialogue for _, dialogue in group], batch_size=batch_size)
                causes = [{note.target: note.turns for note in notes} for notes in found]
            for (row, dialogue), by_turn in zip(group, causes, strict=True):
                for i, turn in enumerate(dialogue.turns):
                    if turn.role == "speaker":
                        asked = asked_about(dialogue, i, self.head, by_turn.get(i, ()), self.no_cause, row)
                        self._counts["turns"] += 1
                        self._counts["turns without a cause"] += not asked.has_causes
                        yield asked

    def report(self) -> dict[str, Json]:
        """Counts since the start: turns, and for each relation how many were answered and why others were not."""
        return {
            **{name: count for name, count in self._counts.items() if count},
            "answered": {name: self._answered[name] for name in self.relations},
            "absent": {name: dict(reasons) for name, reasons in self._absent.items() if reasons},
        }

    def _answers(self, asked: Sequence[Asked], batch_size: int) -> list[Answer]:
        found = [self._cached(turn) for turn in asked]
        lacking = [i for i, answer in enumerate(found) if answer is None]
        heads = [asked[i].heads for i in lacking]
        made = infer_merged(self.provider, heads, self.relations, self.n, batch_size)
        for i, answer in zip(lacking, made, strict=True):
            found[i] = answer
        absent = {name: Tails(name, absent=NOT_CACHED) for name in self.relations}
        return [{name: (answer or absent).get(name, absent[name]) for name in self.relations} for answer in found]

    def _cached(self, turn: Asked) -> Answer | None:
        """What the cache has of a turn; None where there is none, or the provider is no cache."""
        filtered = self.provider if isinstance(self.provider, Filtered) else None
        cache = self.provider if filtered is None else filtered.provider
        if not isinstance(cache, CachedInferences):
            return None
        answer = cache.find(turn.heads, self.n) or cache.find_turn(turn.dialogue_id, turn.turn, turn.text, self.n)
        return answer if filtered is None or answer is None else filtered.filtered(answer)

    def _records(self, asked: Asked, answer: Answer) -> list[Inference]:
        for name, tails in answer.items():
            if tails.texts:
                self._answered[name] += 1
            else:
                self._absent[name][tails.absent] += 1
        return [
            Inference(asked.turn, name, tails.texts, tails.scores, tails.head, tails.absent)
            for name, tails in answer.items()
        ]


def open_provider(place: str | Path, *, device: str | torch.device | None = None, **settings: Any) -> Inferences:
    """The provider that a folder or file holds, told from what is in it.

    Args:
        place: A cache file (``.jsonl``), an index folder, the folder or name of an encoder-decoder, or ``none``.
        device: Where models run; None = the processor.
        **settings: Of :class:`NearestInferences` or ``GeneratedInferences``.

    Raises:
        MissingResourceError: There is nothing of that name, or an index's encoder is not on this machine.
        CheckpointError: It is none of these, or damaged.
        ConfigError: A setting is unknown to this provider, or out of range.
    """
    if str(place) == NONE:
        return NoInferences()
    path = Path(place).expanduser()
    if path.is_file() or path.suffix in (".jsonl", ".ndjson"):
        if settings:
            raise ConfigError(
                f"{path} is a cache file, which has no setting {', '.join(settings)}: it was made with its own."
            )
        return CachedInferences(path)
    if str(place) == INSTALLED and not path.is_dir() and installed_model(INSTALLED) is None:
        raise MissingResourceError(f"no provider of inferences in {models_root()}. {MAKE}")
    try:
        path = resolve_model(place)
    except MissingResourceError as error:
        raise MissingResourceError(f"{error} {MAKE}") from None
    if is_index(path):
        return _made(NearestInferences, path, device, settings)
    kind = _model_type(path)
    from empatheia_research.understanding.inferences.generation import GeneratedInferences

    if kind is None:
        raise CheckpointError(
            f"{path} is neither an index of inferences, nor an encoder-decoder, nor a cache file. {MAKE}"
        )
    return _made(GeneratedInferences, path, device, settings)


def _made(provider: Any, path: Path, device: str | torch.device | None, settings: dict[str, Any]) -> Inferences:
    for name in settings:
        if name not in provider.settings:
            raise ConfigError(
                f"inferences: the provider in {path} has no setting {name!r}. It has: {', '.join(provider.settings)}."
            )
    return provider.load(path, device=device, **settings)


def _model_type(path: Path) -> str | None:
    try:
        return read_record(path / "config.json").get("model_type")
    except (OSError, ValueError, AttributeError):
        return None
