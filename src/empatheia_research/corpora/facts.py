"""What is known of a corpus before any of it is read; a corpus module says it of itself in ``FACTS``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Licence:
    """Terms of a corpus.

    Attributes:
        licence: As its publisher states it.
        may_train_released_weights: Whether weights trained on it may be published by this project.
        reason: Why, in one sentence.
        home: Who made it or where it is published.
        share_alike: The licence asks for the same licence on what is derived; the model card must say so.
    """

    licence: str
    may_train_released_weights: bool
    reason: str
    home: str
    share_alike: bool = False


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """What the commands know of a corpus.

    Attributes:
        splits: Splits that make up the corpus; ``("all",)`` where its own splits play no part here.
        file: Path below a data folder of a file that shows the corpus is there; None for a corpus inside a package.
        licence: Its terms; None where nobody has stated them.
    """

    splits: tuple[str, ...] = ("train", "valid", "test")
    file: str | None = None
    licence: Licence | None = None
