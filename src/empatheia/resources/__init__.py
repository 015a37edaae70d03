"""Where a corpus, a checkpoint or a remote model is: a folder, the environment, the package, a cache, an address."""

from empatheia.resources.fetch import download, extract_tar, file_sha256
from empatheia.resources.lookup import (
    cache_dir,
    corpus_roots,
    data_root,
    find_corpus_file,
    installed_model,
    is_at_hand,
    is_offline,
    is_reachable,
    models_root,
    resolve_model,
    resolve_weights,
)

__all__ = [
    "cache_dir",
    "corpus_roots",
    "data_root",
    "download",
    "extract_tar",
    "file_sha256",
    "find_corpus_file",
    "installed_model",
    "is_offline",
    "is_reachable",
    "models_root",
    "is_at_hand",
    "resolve_model",
    "resolve_weights",
]
