"""A table of commonsense tuples as a folder on disk: unit vectors of its heads, and the tails of each head.

    empatheia.json    format, encoder and tuple file with their checksums, counts, source and licence
    vectors.npy       float32 (n_heads, width), read as a memory map
    tails.txt         one tail a line, sorted by head and relation, read as a memory map
    places.npy        int64: the byte at which each tail begins
    counts.npy        int32: how often the files say each tail
    starts.npy        int64: the first tail of each head and relation
    heads.txt         one head a line
    graph.faiss       only with ``approximate``: HNSW over the same vectors (Malkov and Yashunin 2018)
    idf.npy           only with the encoder ``words``

The folder appears whole or not at all. An index opens only with the encoder it was made with.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from empatheia.errors import CheckpointError, ConfigError, DataError, MissingDependencyError
from empatheia.reading import read_array, read_record
from empatheia.taxonomy import RELATIONS
from empatheia_research.corpora.atomic import AtomicTuples
from empatheia_research.understanding.fingerprints import fingerprint_of
from empatheia_research.understanding.inferences.heads import FORMS, person_head, plain_head
from empatheia_research.understanding.vectors.texts import WORDS, Vectors, WordVectors, load_vectors

if TYPE_CHECKING:
    import torch

FORMAT = 1
KIND = "inference_index"
META = "empatheia.json"
SEARCHES: tuple[str, ...] = ("exact", "approximate")
BLOCK = 16_384
"""Heads compared at a time."""
FEW_HEADS = 2_000
"""A relation with at most so many heads is searched exactly even when the search is approximate."""
SLACK = 1e-4
"""How far a cosine in single precision may be from the exact one; candidates within it are compared exactly."""
_GRAPH = "graph.faiss"
_NEIGHBOURS, _BUILD_WIDTH, _OVERSAMPLING = 32, 200, 20

Hits = list[tuple[int, float]]
"""Head numbers with their cosines to six decimals, best first; ties go to the lower number."""


class TupleIndex:
    """An opened index; see the module for the files.

    Args:
        folder: Of the index.
        vectors: The encoder it was made with.

    Raises:
        CheckpointError: The folder is no index, of another format, damaged, or made with another encoder.
    """

    def __init__(self, folder: str | Path, vectors: Vectors) -> None:
        self.folder = Path(folder)
        self.meta = read_meta(self.folder)
        self.encoder = vectors
        if vectors.fingerprint() != self.meta["encoder"]["fingerprint"]:
            raise CheckpointError(
                f"{self.folder} was made with the encoder {self.meta['encoder']['name']!r}"
                f" ({self.meta['encoder']['fingerprint']}), not with {vectors.name!r} ({vectors.fingerprint()})."
                " Give that encoder, or build the index again."
            )
        try:
            self.vectors = read_array(self.folder / "vectors.npy", mmap=True)  # (n_heads, width)
            self.heads = (self.folder / "heads.txt").read_text(encoding="utf-8").split("\n")[:-1]
            starts, places, counts = (
                read_array(self.folder / f"{name}.npy", mmap=True) for name in ("starts", "places", "counts")
            )
            self._tails = np.memmap(self.folder / "tails.txt", np.uint8, "r")
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{self.folder}: {' '.join(str(error).split())}. Build the index again.") from None
        n_heads, n_tails = len(self.heads), len(counts)
        if (
            self.vectors.shape != (n_heads, vectors.width)
            or starts.shape != (n_heads * len(RELATIONS) + 1,)
            or places.shape != (n_tails + 1,)
            or (starts[-1], places[-1]) != (n_tails, len(self._tails))
        ):
            raise CheckpointError(f"{self.folder}: its files do not fit together. Build the index again.")
        self._starts, self._places, self._counts = starts, places, counts
        owned = np.diff(starts).reshape(n_heads, len(RELATIONS)) > 0  # (n_heads, 11)
        self._owners = {name: np.ascontiguousarray(owned[:, i]) for i, name in enumerate(RELATIONS)}
        self._graph: Any = None

    @classmethod
    def open(
        cls, folder: str | Path, encoder: str | Path | None = None, device: str | torch.device | None = None
    ) -> TupleIndex:
        """An index with its encoder.

        Args:
            folder: Of the index.
            encoder: Folder or name, where it is not where it was when the index was made.
            device: Where the encoder runs; None = the processor.

        Raises:
            CheckpointError: See :class:`TupleIndex`.
            MissingResourceError: The encoder is not on this machine.
        """
        path = Path(folder)
        name = str(encoder or read_meta(path)["encoder"]["name"])
        return cls(path, WordVectors.open(path) if name == WORDS else load_vectors(name, device))

    @property
    def fingerprint(self) -> str:
        """Of encoder, tuples and settings."""
        return str(self.meta["fingerprint"])

    def __len__(self) -> int:
        """How many heads there are."""
        return len(self.heads)

    def relations(self) -> tuple[str, ...]:
        """Relations with a tuple."""
        return tuple(name for name in RELATIONS if self.meta["counts"].get(name))

    def tails(self, head: int, relation: str) -> list[tuple[str, int]]:
        """Tails of a head with their counts, in file order."""
        place = head * len(RELATIONS) + RELATIONS.index(relation)
        start, end = int(self._starts[place]), int(self._starts[place + 1])
        if start == end:
            return []
        text = self._tails[self._places[start] : self._places[end]].tobytes().decode("utf-8")
        return list(zip(text.split("\n")[:-1], self._counts[start:end].tolist(), strict=True))

    def asked(self, text: str) -> str:
        """A text in the form that is compared with the heads."""
        return person_head(text) if self.meta["form"] == "person" else text

    def nearest(
        self, queries: np.ndarray, relations: Sequence[str], k: int, minimum: float = -1.0, search: str = "exact"
    ) -> dict[str, list[Hits]]:
        """For each relation and query, the nearest heads that have a tail of that relation.

        Args:
            queries: Unit vectors. Shape: (n_queries, width).
            relations: Canonical names.
            k: Most heads.
            minimum: Cosine below which a head does not count.
            search: ``exact``, or ``approximate``: by the graph; see ``FEW_HEADS``.

        Raises:
            ConfigError: ``search`` is neither.
            MissingDependencyError: ``approximate`` without faiss.
            CheckpointError: ``approximate``, and the index has no graph.
        """
        self.check_search(search)
        queries = np.ascontiguousarray(queries, np.float32)
        owned = {name: int(self._owners[name].sum()) for name in relations}
        by_graph = [name for name in relations if search == "approximate" and owned[name] > FEW_HEADS]
        out = self._exact(queries, [name for name in relations if owned[name] and name not in by_graph], k, minimum)
        if by_graph:
            out.update(self._approximate(queries, by_graph, k, minimum))
        return {name: out.get(name, [[] for _ in queries]) for name in relations}

    def check_search(self, search: str) -> None:
        """Opens what a search needs.

        Raises:
            ConfigError: ``search`` is neither ``exact`` nor ``approximate``.
            MissingDependencyError: ``approximate`` without faiss.
            CheckpointError: ``approximate``, and the index has no graph.
        """
        if search not in SEARCHES:
            raise ConfigError(f"inferences: search is {search!r}; accepted: {', '.join(SEARCHES)}.")
        if search == "approximate":
            self._opened_graph()

    def _exact(self, queries: np.ndarray, relations: Sequence[str], k: int, minimum: float) -> dict[str, list[Hits]]:
        found: dict[str, list[Hits]] = {name: [[] for _ in queries] for name in relations}
        wanted = np.zeros(len(self), bool)
        for name in relations:
            wanted |= self._owners[name]
        heads = np.flatnonzero(wanted) if wanted.mean() < 0.5 else np.arange(len(self))
        for start in range(0, len(heads), BLOCK):
            block = heads[start : start + BLOCK]
            whole = block[-1] - block[0] + 1 == len(block)
            vectors = self.vectors[block[0] : block[-1] + 1] if whole else self.vectors[block]  # (block, width)
            cosines = queries @ vectors.T  # (n_queries, block)
            for name in relations:
                own = np.flatnonzero(self._owners[name][block])
                for row, columns in _best(cosines[:, own], k, minimum):
                    chosen = own[columns]
                    found[name][row] += _cosines(queries[row], vectors[chosen], block[chosen])
        return {name: [_ranked(hits, k, minimum) for hits in rows] for name, rows in found.items()}

    def _approximate(
        self, queries: np.ndarray, relations: Sequence[str], k: int, minimum: float
    ) -> dict[str, list[Hits]]:
        graph = self._opened_graph()
        most = min(len(self), max(_OVERSAMPLING * k, 100))
        graph.hnsw.efSearch = max(2 * most, 64)
        _, numbers = graph.search(queries, most)  # (n_queries, most), -1 = none
        out: dict[str, list[Hits]] = {name: [] for name in relations}
        for query, row in zip(queries, numbers, strict=True):
            near = row[row >= 0]
            hits = _cosines(query, self.vectors[near], near)
            for name in relations:
                out[name].append(_ranked([hit for hit in hits if self._owners[name][hit[0]]], k, minimum))
        return out

    def _opened_graph(self) -> Any:
        if self._graph is None:
            faiss = import_faiss()
            path = self.folder / _GRAPH
            if not path.is_file():
                raise CheckpointError(
                    f"{self.folder} has no graph for approximate search. Search exactly, or build the index again with"
                    " approximate=True (`empatheia infer --build-index ... --approximate`)."
                )
            self._graph = faiss.read_index(str(path))
        return self._graph


def build_index(
    tuples: AtomicTuples,
    encoder: str | Path | Vectors,
    folder: str | Path,
    *,
    form: str = "plain",
    approximate: bool = False,
    batch_size: int = 64,
    device: str | torch.device | None = None,
    progress: Callable[[int], None] | None = None,
) -> TupleIndex:
    """Makes an index, or opens the one that is there if it is the same.

    Args:
        tuples: What :mod:`empatheia_research.corpora.atomic` read; relations other than the 11 are left out.
        encoder: Folder or name of an encoder, ``words``, or a loaded one.
        folder: Where the index goes; an index that is there is replaced.
        form: One of ``FORMS``: heads put into plain words, or kept with queries put into the table's.
        approximate: Also make the graph for approximate search.
        batch_size: Most heads in one pass.
        device: Where the encoder runs; None = the processor.
        progress: Called with the number of heads just finished.

    Raises:
        ConfigError: ``form`` is unknown.
        DataError: There is no tuple, or the folder holds something else.
        MissingResourceError: The encoder is not on this machine.
        MissingDependencyError: ``approximate`` without faiss.
    """
    if form not in FORMS:
        raise ConfigError(f"inferences: form is {form!r}; accepted: {', '.join(FORMS)}.")
    if approximate:
        import_faiss()
    folder = Path(folder)
    if _is_taken(folder):
        raise DataError(f"{folder} exists and is not an index; name another folder.")
    frame = tuples.frame.filter(pl.col("relation").is_in(RELATIONS))
    if not frame.height:
        raise DataError(f"{', '.join(path.name for path in tuples.paths)}: no tuple of {', '.join(RELATIONS)}.")
    heads = frame["head"].unique(maintain_order=True)
    texts = [plain_head(head) for head in heads] if form == "plain" else heads.to_list()
    vectors = load_vectors(encoder, device) if isinstance(encoder, str | Path) else encoder
    if isinstance(vectors, WordVectors):
        vectors.fit(texts)
    meta = _meta(tuples, frame, len(heads), vectors, form)
    if is_index(folder) and _is_same(folder, meta, approximate):
        return TupleIndex(folder, vectors)
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = folder.with_name(folder.name + ".partial")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    encoded = vectors.encode(texts, batch_size=batch_size, progress=progress)  # (n_heads, width)
    np.save(making / "vectors.npy", encoded)
    _write_tails(frame, heads, making)
    vectors.save(making)
    if approximate:
        _write_graph(encoded, making / _GRAPH)
    (making / META).write_text(json.dumps(meta, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if folder.exists():
        shutil.rmtree(folder)
    making.replace(folder)
    return TupleIndex(folder, vectors)


def _is_taken(folder: Path) -> bool:
    """Whether something else than an index is there."""
    return folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not is_index(folder)))


def is_index(folder: Path) -> bool:
    """Whether a folder says that it is an index."""
    try:
        return read_record(folder / META).get("kind") == KIND
    except (OSError, ValueError, AttributeError):
        return False


def read_meta(folder: Path) -> dict[str, Any]:
    """What an index says of itself.

    Raises:
        CheckpointError: It is no index, or of another format.
    """
    try:
        meta = read_record(folder / META)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CheckpointError(
            f"{folder / META}: {reason}. Build an index with `empatheia infer --build-index`."
        ) from None
    if not isinstance(meta, dict) or meta.get("kind") != KIND:
        raise CheckpointError(
            f"{folder} is not an index of inferences. Build one with `empatheia infer --build-index`."
        )
    if meta.get("format") != FORMAT:
        raise CheckpointError(f"{folder} has format {meta.get('format')}; this release reads {FORMAT}. Build it again.")
    return meta


def import_faiss() -> ModuleType:
    """The library behind approximate search.

    Raises:
        MissingDependencyError: It is not installed.
    """
    try:
        import faiss
    except ImportError:
        raise MissingDependencyError(
            "approximate search needs faiss, which is not installed. Search exactly, or install it:"
            " pip install 'empatheia[search]'"
        ) from None
    return faiss


def _meta(tuples: AtomicTuples, frame: pl.DataFrame, n_heads: int, vectors: Vectors, form: str) -> dict[str, Any]:
    counts = dict(frame["relation"].value_counts().iter_rows())
    encoder = {"name": vectors.name, "fingerprint": vectors.fingerprint(), "width": vectors.width}
    content = hashlib.sha256(frame.write_csv().encode()).hexdigest()  # normalisation changes tuples, not files
    settings = {"encoder": encoder["fingerprint"], "sha256": dict(tuples.sha256), "form": form, "content": content}
    meta = {
        "format": FORMAT,
        "kind": KIND,
        "name": f"atomic-{tuples.split}" if not tuples.is_sample else "atomic-sample",
        "fingerprint": fingerprint_of(format=FORMAT, **settings),
        "encoder": encoder,
        "form": form,
        "tuples": {"split": tuples.split, "sha256": dict(tuples.sha256), "rows": tuples.counts.get("rows", 0)},
        "counts": {"heads": n_heads, "tuples": frame.height, **{name: counts.get(name, 0) for name in RELATIONS}},
        "notes": list(tuples.notes),
        "source": tuples.source,
    }
    if tuples.is_sample:
        meta["degraded"] = "inferences are looked up in the package's small self-written sample, not in ATOMIC."
    return meta


def _is_same(folder: Path, meta: Mapping[str, Any], approximate: bool) -> bool:
    try:
        found = read_meta(folder)
    except CheckpointError:
        return False
    return found.get("fingerprint") == meta["fingerprint"] and (not approximate or (folder / _GRAPH).is_file())


def _write_tails(frame: pl.DataFrame, heads: pl.Series, folder: Path) -> None:
    """Tails sorted by head and relation, and where each group begins."""
    order = pl.DataFrame({"head": heads, "number": np.arange(len(heads))})
    places = pl.DataFrame({"relation": list(RELATIONS), "place": np.arange(len(RELATIONS))})
    table = frame.join(order, on="head", maintain_order="left").join(places, on="relation", maintain_order="left")
    group = table["number"] * len(RELATIONS) + table["place"]
    table = table.with_columns(group.alias("group")).sort("group", maintain_order=True)
    sizes = np.bincount(table["group"].to_numpy(), minlength=len(heads) * len(RELATIONS))
    np.save(folder / "starts.npy", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
    lines = [f"{tail}\n".encode() for tail in table["tail"]]
    np.save(folder / "places.npy", np.concatenate([[0], np.cumsum([len(line) for line in lines])]).astype(np.int64))
    np.save(folder / "counts.npy", table["count"].to_numpy().astype(np.int32))
    (folder / "tails.txt").write_bytes(b"".join(lines))
    (folder / "heads.txt").write_bytes("".join(f"{head}\n" for head in heads).encode())


def _write_graph(encoded: np.ndarray, path: Path) -> None:
    faiss = import_faiss()
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # several threads would give another graph each time
    try:
        graph = faiss.IndexHNSWFlat(encoded.shape[1], _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _BUILD_WIDTH
        graph.add(encoded)
    finally:
        faiss.omp_set_num_threads(threads)
    faiss.write_index(graph, str(path))


def _best(scores: np.ndarray, k: int, minimum: float) -> list[tuple[int, np.ndarray]]:
    """Each row with the columns that can be among its ``k`` best from ``minimum`` on, ties of the last included."""
    bound = np.full(len(scores), minimum, np.float32)
    if scores.shape[1] > k:
        bound = np.maximum(bound, -np.partition(-scores, k - 1, axis=1)[:, k - 1])
    rows, columns = np.nonzero(scores >= bound[:, None] - SLACK)
    ends = np.searchsorted(rows, np.arange(len(scores) + 1))
    return [(row, columns[a:b]) for row, (a, b) in enumerate(pairwise(ends)) if a < b]


def _cosines(query: np.ndarray, vectors: np.ndarray, heads: np.ndarray) -> Hits:
    """Heads with their cosines in double precision, to six decimals: the same whoever else is asked about."""
    cosines = (vectors.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    return list(zip(heads.tolist(), np.round(cosines, 6).tolist(), strict=True))


def _ranked(hits: Hits, k: int, minimum: float) -> Hits:
    """The ``k`` best from ``minimum`` on; ties go to the lower number."""
    return sorted((hit for hit in hits if hit[1] >= minimum), key=lambda hit: (-hit[1], hit[0]))[:k]
