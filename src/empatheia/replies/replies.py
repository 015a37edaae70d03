"""Generated replies as records: what a system answered to an item, and a file full of such answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from empatheia.errors import ConfigError
from empatheia.registry import nearest
from empatheia.taxonomy import LABELS_41


@dataclass(frozen=True, slots=True)
class SystemReply:
    """What one system answered to one item.

    Attributes:
        system: Name of the system (or way of decoding) in the file.
        reply: The reply, without blanks at its ends; it may be empty.
        reference: The gold reply, or None where the file has none.
        context: The turns before it, first turn first.
        emotion: Gold emotion, lower-case, or None.
        predicted: The system's emotions, best first; empty where the file has none.
        line: 1-based line of the file where the item begins.
    """

    system: str
    reply: str
    reference: str | None = None
    context: tuple[str, ...] = ()
    emotion: str | None = None
    predicted: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class ReplyFile:
    """A file of replies, read.

    Attributes:
        path: The file.
        format: One of ``FORMATS``, or ``text``.
        replies: By system, in the order the file names them; each in file order.
        reported: Numbers the file itself states, as printed there, e.g. ``{"PPL": 37.5363}``.
        notes: What a reader should know, e.g. emotions outside the taxonomy.
    """

    path: Path
    format: str
    replies: Mapping[str, tuple[SystemReply, ...]]
    reported: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems."""
        return tuple(self.replies)

    def of(self, system: str) -> tuple[SystemReply, ...]:
        """The replies of a system; upper and lower case are one where only one system fits.

        Raises:
            ConfigError: The file has no such system.
        """
        if system in self.replies:
            return self.replies[system]
        alike = [name for name in self.replies if name.lower() == system.lower()]
        if len(alike) == 1:
            return self.replies[alike[0]]
        hint = nearest(system, list(self.replies))
        raise ConfigError(f"{self.path} has no system {system!r}.{hint} Found: {', '.join(self.replies)}.")

    def blank_lines(self, system: str) -> tuple[int, ...]:
        """Lines of the items to which the system's reply is empty or blank."""
        return tuple(reply.line for reply in self.of(system) if not reply.reply)

    def blank_reference_lines(self, system: str) -> tuple[int, ...]:
        """Lines of the items whose reference is empty or blank."""
        return tuple(reply.line for reply in self.of(system) if reply.reference == "")


def file_of(
    path: Path,
    format: str,
    replies: Mapping[str, Sequence[SystemReply]],
    reported: Mapping[str, float],
    notes: tuple[str, ...] = (),
) -> ReplyFile:
    """The record of a file that was read without fault; notes unknown emotions and unequal systems."""
    labels = {label for each in replies.values() for r in each for label in (r.emotion, *r.predicted) if label}
    if foreign := sorted(labels - set(LABELS_41)):
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        notes = (*notes, f"emotions outside the taxonomy: {', '.join(foreign[:3])}{more}")
    sizes = {system: len(each) for system, each in replies.items()}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{system} {n:,}" for system, n in sizes.items())
        notes = (*notes, f"systems with different numbers of items: {told}")
    notes = (*notes, *_unlike_references(replies))
    frozen = MappingProxyType({system: tuple(each) for system, each in replies.items()})
    return ReplyFile(path, format, frozen, MappingProxyType(dict(reported)), notes)


def _unlike_references(replies: Mapping[str, Sequence[SystemReply]]) -> Iterator[str]:
    """Says where another system has as many items as the first and other references, at most once."""
    (first, own), *others = replies.items()
    for name, each in others:
        pairs = zip(own, each, strict=False)
        unlike = ((one.line, two.line) for one, two in pairs if one.reference != two.reference)
        lines = next(unlike, None) if len(each) == len(own) else None
        if lines is not None:
            yield (
                f"references of {first} and {name} differ, first at lines {lines[0]} and {lines[1]}:"
                " their scores are of different items"
            )
            return


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their 1-based numbers; only a line feed ends one, a carriage return before it is dropped."""
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, line.rstrip("\r")
