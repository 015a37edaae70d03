"""What each corpus may be used for: its licence, and whether weights trained on it may be given away.

The rule: released weights carry a non-commercial licence. Corpora under attribution, non-commercial or
public-domain terms fit; share-alike terms would dictate another licence, and texts without a stated licence
give no permission. Two entries are let through and flagged ``share_alike``: DailyDialog, and RECCON, whose
text it is; a model card must name them. Whoever holds a corpus lawfully may read, count and experiment.

Each corpus states its terms in its own module (``FACTS``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from empatheia.errors import ConfigError
from empatheia.registry import nearest
from empatheia_research.corpora import CORPORA, facts_of
from empatheia_research.corpora.facts import Licence

__all__ = ["LICENCES", "Licence", "licence", "licence_text"]


class _Licences(Mapping[str, Licence]):
    """The terms of the registered corpora, read from their modules when asked for."""

    def __getitem__(self, name: str) -> Licence:
        terms = facts_of(name).licence if name in CORPORA else None
        if terms is None:
            raise KeyError(name)
        return terms

    def __iter__(self) -> Iterator[str]:
        return (name for name in CORPORA.names() if facts_of(name).licence is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


LICENCES: Mapping[str, Licence] = _Licences()
"""By registered corpus name; a corpus that states no terms is not in it."""


def licence(name: str) -> Licence:
    """Terms of a corpus.

    Raises:
        ConfigError: No corpus of this name is listed, or it states none.
    """
    if name not in LICENCES:
        raise ConfigError(
            f"no licence on record for corpus {name!r}.{nearest(name, list(LICENCES))} Known: {', '.join(LICENCES)}."
        )
    return LICENCES[name]


def licence_text(name: str) -> str:
    """The licence of a corpus for a model that learnt from it, e.g. ``CC BY-NC 4.0``, or a phrase where it has none."""
    return LICENCES[name].licence if name in LICENCES else f"that of the corpus {name}"
