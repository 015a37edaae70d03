"""Texts with a label each: a file of ``label<TAB>text`` lines, or 20 Newsgroups from a local folder.

20 Newsgroups (Lang 1995) has the 20 topics of Rashkin et al. 2018's TopicPrepend, under the names of the groups; the
words of the paper's code stand for them here. It is read by scikit-learn, either from the unpacked archive
(``20news-bydate-train/<group>/<number>``) or from the cache of ``fetch_20newsgroups`` (``20news-bydate_py3.pkz``).
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

from empatheia.errors import DataError, MissingDependencyError, MissingResourceError
from empatheia.reading import read_text
from empatheia.resources import corpus_roots
from empatheia_research.corpora.loading import sample_root

NAME = "labelled_texts"
SPLITS = ("train", "valid", "test")
GROUPS: dict[str, str] = {
    "alt.atheism": "atheism", "comp.graphics": "graphics", "comp.os.ms-windows.misc": "windows",
    "comp.sys.ibm.pc.hardware": "pc", "comp.sys.mac.hardware": "mac", "comp.windows.x": "x", "misc.forsale": "sale",
    "rec.autos": "autos", "rec.motorcycles": "motorcycles", "rec.sport.baseball": "baseball",
    "rec.sport.hockey": "hockey", "sci.crypt": "cryptography", "sci.electronics": "electronics", "sci.med": "medicine",
    "sci.space": "space", "soc.religion.christian": "christian", "talk.politics.guns": "guns",
    "talk.politics.mideast": "mideast", "talk.politics.misc": "politics", "talk.religion.misc": "religion",
}  # fmt: skip
"""Group to the word that is prepended."""
GET = "qwone.com/~jason/20Newsgroups, then unpack 20news-bydate.tar.gz there"
_ARCHIVE, _CACHE = "20news-bydate-{}", "20news-bydate_py3.pkz"


def load(place: str | Path, split: str) -> list[tuple[str, str]]:
    """(label, text) pairs of a split, in order.

    Args:
        place: A file; a folder with ``train.txt``, ``valid.txt`` and ``test.txt``; a folder with 20 Newsgroups; or
            ``sample``. A relative path is also looked for in the folders of corpora. A file alone is cut into 80, 10
            and 10 % by a hash of each line; so is the training part of 20 Newsgroups into train and valid (90, 10).
        split: ``train``, ``valid`` or ``test``.

    Raises:
        MissingResourceError: There is no such place.
        DataError: A line has no tab, or the split is empty.
        MissingDependencyError: 20 Newsgroups without scikit-learn.
    """
    path = find(place)
    if path.is_file():
        found = [pair for i, pair in enumerate(read(path)) if _part(pair, i, 10) == split]
    elif (path / f"{split}.txt").is_file():
        found = read(path / f"{split}.txt")
    else:
        found = _newsgroups(path, split)
    if not found:
        raise DataError(f"{path}: the {split} split has no text. Add lines to it, or choose another split.")
    return found


def read(path: str | Path) -> list[tuple[str, str]]:
    """The lines of a file of ``label<TAB>text``; blank ones are skipped.

    Raises:
        DataError: A line has no tab, or nothing on one side of it.
    """
    out = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        label, tab, text = line.partition("\t")
        if not tab or not label.strip() or not text.strip():
            raise DataError(f"{path}:{number}: {line[:60]!r}; a line is a label, a tab and a text.")
        out.append((label.strip(), text.strip()))
    return out


def find(place: str | Path) -> Path:
    """A file or folder by its path, also below the folders of corpora; ``sample`` is the self-written one.

    Raises:
        MissingResourceError: It is nowhere.
    """
    if str(place) == "sample":
        return sample_root() / "topics"
    path = Path(place).expanduser()
    for candidate in (path, *(root / path for root in corpus_roots())):
        if candidate.exists():
            return candidate
    raise MissingResourceError(
        f"no labelled texts at {str(place)!r}; give a file of label<TAB>text lines (or of conversations with labels of"
        " turns), or the folder of 20 Newsgroups"
        " (20news-bydate.tar.gz unpacked, from its home page qwone.com/~jason/20Newsgroups)."
    )


def _part(pair: tuple[str, str], index: int, n: int, cut: tuple[str, ...] = ("valid", "test")) -> str:
    """Split of a line: one n-th to each of ``cut``, the rest to train."""
    place = zlib.crc32(f"{index}\t{pair[1]}".encode()) % n
    return cut[place] if place < len(cut) else "train"


def _newsgroups(path: Path, split: str) -> list[tuple[str, str]]:
    try:
        from sklearn.datasets import fetch_20newsgroups, load_files
    except ImportError as error:
        raise MissingDependencyError('20 Newsgroups needs scikit-learn: pip install "empatheia[topics]"') from error
    part = "test" if split == "test" else "train"
    if (path / _CACHE).is_file():
        bunch: Any = fetch_20newsgroups(data_home=path, subset=part, shuffle=False, download_if_missing=False)
    elif (path / _ARCHIVE.format(part)).is_dir():
        bunch = load_files(path / _ARCHIVE.format(part), encoding="latin-1", shuffle=False)
    else:
        raise MissingResourceError(
            f"{path} has neither {split}.txt nor {_ARCHIVE.format(part)}/ nor {_CACHE}; accepted: one of the three."
        )
    names = [GROUPS.get(name, name) for name in bunch.target_names]
    pairs = [(names[i], " ".join(text.split())) for text, i in zip(bunch.data, bunch.target, strict=True)]
    pairs = [pair for pair in pairs if pair[1]]
    if split == "test":
        return pairs
    return [pair for i, pair in enumerate(pairs) if _part(pair, i, 10, ("valid",)) == split]
