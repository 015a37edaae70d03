"""Where a corpus, a checkpoint or a remote model is: a folder, the environment, the package, a cache, an address."""

from empatheia.resources.fetch import download, extract_tar, file_sha256
from empatheia.resources.holding import append_line, hold_file, hold_folder, is_whole_line
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
    shipped_path,
)
from empatheia.resources.pretrained import (
    build_pretrained,
    check_links,
    described_encoder,
    load_arrays,
    load_pretrained,
    load_weights,
    model_type_of,
    quiet_loading,
)

__all__ = [
    "append_line",
    "build_pretrained",
    "described_encoder",
    "cache_dir",
    "check_links",
    "corpus_roots",
    "data_root",
    "download",
    "extract_tar",
    "file_sha256",
    "find_corpus_file",
    "hold_file",
    "hold_folder",
    "is_whole_line",
    "installed_model",
    "is_offline",
    "is_reachable",
    "load_arrays",
    "load_pretrained",
    "load_weights",
    "model_type_of",
    "models_root",
    "quiet_loading",
    "is_at_hand",
    "resolve_model",
    "resolve_weights",
    "shipped_path",
]
