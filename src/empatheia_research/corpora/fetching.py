"""Gets EmpatheticDialogues from its official address: download, checksum, unpack, count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from empatheia.errors import DataError, MissingResourceError
from empatheia.resources import cache_dir, download, extract_tar
from empatheia_research.corpora import empathetic_dialogues as ed


def fetch_empathetic_dialogues(
    folder: str | Path | None = None,
    urls: Sequence[str] = ed.URLS,
    sha256: str = ed.SHA256,
    say: Callable[[str], None] = lambda message: None,
    progress: Callable[[int, int | None], None] | None = None,
) -> list[Path]:
    """Fetches the three official files; an interrupted download is taken up again.

    Args:
        folder: Folder of corpora to unpack into; None = the cache, where the loader looks.
        urls: Addresses, tried in order.
        sha256: Checksum of the archive.
        say: Told what is being done.
        progress: Called with bytes so far and the total if known.

    Returns:
        The files written.

    Raises:
        MissingResourceError: No address could be reached, or the disk is full.
        DataError: The archive has another checksum or cannot be unpacked.
    """
    folder = Path(folder) if folder is not None else cache_dir() / "data"
    archive = cache_dir() / "downloads" / "empatheticdialogues.tar.gz"
    fault: MissingResourceError | DataError = MissingResourceError(f"no address given for {ed.NAME}.")
    for url in urls:
        say(f"fetching {url}")
        try:
            download(url, archive, sha256=sha256, progress=progress)
            break
        except (MissingResourceError, DataError) as error:
            fault = error
            say(str(error))
    else:
        raise fault
    paths = [path for path in extract_tar(archive, folder) if path.suffix == ".csv"]
    archive.unlink()
    for split in ed.OFFICIAL:
        corpus = ed.load(split, root=folder)
        say("; ".join([f"{split}: {len(corpus):,} conversations", *corpus.notes]))
    return paths
