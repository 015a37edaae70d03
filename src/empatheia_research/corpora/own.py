"""Your own conversations, one JSON object a line, with labels of your own.

``<root>/own/train.jsonl``, ``valid.jsonl`` and ``test.jsonl`` (or ``.jsonl.gz``), or a list of the same objects in
``train.json`` and so on. A line is one of::

    {"turns": ["They moved my desk.", "Why would they?", "Nobody told me."], "emotion": "annoyed"}
    {"turns": [{"speaker": "Ana", "text": "They moved my desk."}, {"speaker": "Ben", "text": "Why?"}]}
    {"messages": [{"role": "user", "content": "They moved my desk."}, {"role": "assistant", "content": "Why?"}]}
    {"conversations": [{"from": "human", "value": "They moved my desk."}, {"from": "gpt", "value": "Why?"}]}

with ``id`` and ``situation`` where there are any; :mod:`empatheia.files.json_forms` reads the turns. Roles are those
that the names say (user, assistant); of people the first to speak is the speaker, or who the line's ``speaker`` names;
plain texts take turns; neighbouring turns of one person are joined; what a system or a tool says is left out and
counted. Where your emotions have other names than the 32, ``<root>/own/labels.yaml`` says which of the 32 each one is
(``mad: angry``).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from empatheia.errors import DataError
from empatheia.files.json_forms import turn_talk
from empatheia.files.talks import listed
from empatheia.registry import nearest
from empatheia.resources import find_corpus_file
from empatheia.settings import read_yaml
from empatheia.taxonomy import EMOTIONS
from empatheia_research.corpora import conversations
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.loading import LoadedCorpus, canonical_split

NAME = "own"
FACTS = CorpusFacts(
    file="own/train.jsonl",
    licence=Licence("yours", False, "You know whose words they are and what they may be used for.", "you"),
)
LABELS = "labels.yaml"
_GET = "write one JSON object a line, see docs/howto/own_data.md"
_MOST_NAMED = 5

logger = logging.getLogger("empatheia_research.corpora")


def load(split: str, root: str | Path | None = None, strict: bool = False) -> LoadedCorpus:
    """One split, in the order of its lines; a line that cannot be used is told with its number and left out.

    Args:
        split: ``train``, ``valid`` or ``test``.
        root: Folder that holds ``own``; None = EMPATHEIA_DATA, then the download cache.
        strict: Raise at the first line that cannot be used.

    Raises:
        MissingResourceError: The file is not there.
        DataError: No line can be used, ``labels.yaml`` maps to no emotion of the 32, or ``strict`` and a line is bad.
    """
    name = canonical_split(split)
    path = find_corpus_file(NAME, (f"{name}.jsonl", f"{name}.json"), root, _GET)
    labels = _labels(path.parent / LABELS)
    left: Counter[str] = Counter()

    def shaped(record: Mapping[str, Any], line: int) -> dict[str, Any]:
        own = _shaped(record, labels, left)
        return own | {"id": str(record.get("id") or f"{name}/{line}"), "split": name}

    found = conversations.read(path, NAME, name, strict, shaped)
    notes = (f"left out: {listed(left)}",) if +left else ()
    for note in notes:
        logger.warning("%s: %s", path, note)
    dialogues = tuple(map(conversations.merged, found.dialogues))
    return replace(found, dialogues=dialogues, turn_labels={}, notes=notes)


def _labels(path: Path) -> dict[str, str]:
    """Names of emotions to those of the 32, which stand for themselves."""
    own = read_yaml(path) if path.is_file() else {}
    if wrong := {name: label for name, label in own.items() if label not in EMOTIONS}:
        listed = ", ".join(f"{name}: {label}" for name, label in list(wrong.items())[:_MOST_NAMED])
        raise DataError(f"{path} maps to unknown emotions ({listed}); accepted: {', '.join(EMOTIONS)}.")
    return {name: name for name in EMOTIONS} | {str(name).casefold(): label for name, label in own.items()}


def _shaped(record: Mapping[str, Any], labels: Mapping[str, str], left: Counter[str]) -> dict[str, Any]:
    """A line in the form that :mod:`~empatheia_research.corpora.conversations` reads.

    Raises:
        DataError: It has no turns, it is not clear who is the speaker, or its emotion is one that nobody has mapped.
    """
    talk = turn_talk(record)
    emotion = record.get("emotion")
    label = None if emotion is None else labels.get(str(emotion).strip().casefold())
    if emotion is not None and label is None:
        raise DataError(
            f"emotion {emotion!r} is unknown.{nearest(str(emotion), list(labels))} Accepted: one of the 32, or a name"
            f" that {LABELS} beside the file maps to one"
        )
    turns = [{"speaker": turn.role, "text": turn.text} for turn in talk.dialogue().turns]
    left.update(talk.left)
    return {"turns": turns, "emotion": label, "situation": record.get("situation")}
