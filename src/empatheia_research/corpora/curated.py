"""What ``empatheia curate`` made: dialogues of films or chats, as Parquet files ``corpus/PART/SPLIT/*.parquet``.

Parts: ``edos``, the most emotional ones; ``os``, the others; ``all``, where nothing was ranked. Nobody knows who
speaks: roles take turns. The labels of the turns are the classifier's that the run named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from empatheia.errors import DataError, MissingResourceError
from empatheia.records.dialogue import ROLES, Dialogue, Turn
from empatheia.resources import corpus_roots
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.loading import LoadedCorpus, canonical_split

NAME = "curated"
FACTS = CorpusFacts(
    file="curated/corpus.json",
    licence=Licence(
        "of the films or chats it was made from",
        False,
        "Whoever made it knows what it may be used for; OpenSubtitles asks for a link and states no licence.",
        "empatheia curate",
    ),
)
PARTS = ("edos", "os", "all")
_COLUMNS = ("key", "turns", "labels")


def load(
    split: str,
    root: str | Path | None = None,
    strict: bool = False,
    parts: Sequence[str] = (),
    limit: int | None = None,
) -> LoadedCorpus:
    """Dialogues of a split, by key.

    Args:
        split: ``train``, ``valid`` or ``test``.
        root: Folder of a run; None = ``curated`` in EMPATHEIA_DATA or the cache.
        strict: Raise at a dialogue that cannot be used; else it is left out.
        parts: Of :data:`PARTS`; none = all that are there.
        limit: The first so many.

    Raises:
        MissingResourceError: There is no such run, or it has no such part.
        DataError: A file is damaged, or ``strict`` and a dialogue is empty.
    """
    name = canonical_split(split)
    folder = _folder(root)
    there = [part for part in PARTS if (folder / "corpus" / part).is_dir()]
    if missing := [part for part in parts if part not in there]:
        raise MissingResourceError(
            f"{folder} has no part {', '.join(missing)}; there is: {', '.join(there)}. `empatheia curate run` with a"
            " classifier makes edos and os, without one all."
        )
    rows = sorted(_rows(folder / "corpus", parts or there, name), key=lambda row: row["key"])[:limit]
    dialogues: list[Dialogue] = []
    labels: dict[str, tuple[str, ...]] = {}
    for row in rows:
        turns = tuple(Turn(ROLES[i % 2], text) for i, text in enumerate(row["turns"] or ()) if text.strip())
        if not turns:
            if strict:
                raise DataError(f"{folder}: dialogue {row['key']!r} has no text.")
            continue
        dialogues.append(Dialogue(row["key"], turns, None, None, f"{NAME}/{name}"))
        if row["labels"]:
            labels[row["key"]] = tuple(row["labels"])
    return LoadedCorpus(NAME, name, folder, tuple(dialogues), turn_labels=labels)


def _folder(root: str | Path | None) -> Path:
    places = [Path(root)] if root is not None else [base / NAME for base in corpus_roots()]
    for place in places:
        if (place / "corpus").is_dir():
            return place
    raise MissingResourceError(
        f"no curated corpus in {', '.join(map(str, places))}. Make one: empatheia curate run CONFIG --out FOLDER, and"
        " name it (data.curated=FOLDER)."
    )


def _rows(corpus: Path, parts: Sequence[str], split: str) -> Iterator[dict[str, Any]]:
    import polars

    for part in parts:
        for path in sorted((corpus / part / split).glob("*.parquet")):
            try:
                yield from polars.read_parquet(path, columns=list(_COLUMNS)).iter_rows(named=True)
            except (polars.exceptions.PolarsError, OSError) as error:
                said = " ".join(str(error).split())[:200]
                raise DataError(
                    f"{path}: not a complete Parquet file of a curation ({said}). Resume the run."
                ) from None
