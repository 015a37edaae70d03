"""Labels for texts, whatever the model: the loss, the batches, and one bulk classifier for a sentence or a million.

A text is a string, or the turns of a conversation with the newest last. A model comes with a *reader* that makes rows
of numbers from texts; everything here works on those rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from empatheia.errors import CheckpointError, ConfigError
from empatheia.giving_way import give_way
from empatheia.reading import read_record
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.registry import nearest
from empatheia.resources import resolve_model
from empatheia.resources.arrays import check_finite
from empatheia.text.batching import BucketBatchSampler, TokenBatchSampler
from empatheia_research.pretrained import check_pieces, fitting_parts, load_pretrained
from empatheia_research.understanding import UNDERSTANDERS

PROCESSOR_BATCH_TOKENS, ACCELERATOR_BATCH_TOKENS = 512, 2048
"""Padded tokens a pass; on a processor larger batches only add padding (``benchmarks/classify.py``)."""
WINDOW = 8192
SYSTEMS = ("utterance_classifier", "linear_classifier")
"""Classifiers that read text; ``feature_classifier`` reads the features of a frozen encoder instead."""

Text = str | Sequence[Turn]
Row = dict[str, Any]
Model = TypeVar("Model", bound=PreTrainedModel)


class Reader(Protocol):
    """Turns texts into rows and rows into batches, for one model."""

    def encode(self, texts: Sequence[Text]) -> list[Row]:
        """One row a text, see :func:`row_lengths`."""
        ...

    def collate(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """A padded batch of what the model's ``forward`` names; ``labels`` if the rows have a ``label``."""
        ...

    def save(self, folder: Path) -> None:
        """Writes what ``open`` needs beside the weights."""
        ...


def pad_rows(values: Sequence[Sequence[int]], filler: int) -> Tensor:
    """Lists of different lengths as one tensor. Shape: (n_rows, longest), int64; at least one column."""
    width = max(1, *map(len, values))
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in values], dtype=torch.long)


def label_tensor(rows: Sequence[Row]) -> dict[str, Tensor]:
    """``labels`` of rows that have a ``label``, else nothing."""
    if "label" not in rows[0]:
        return {}
    return {"labels": torch.tensor([row["label"] for row in rows], dtype=torch.long)}


def row_lengths(rows: Sequence[Row]) -> list[int]:
    """Pieces or n-grams of each row; a row of features counts 1."""
    return [max(1, len(row.get("input_ids", ()))) for row in rows]


def label_fields(labels: Sequence[str], owner: str) -> dict[str, dict[int, str] | dict[str, int]]:
    """Label names as the library's configurations hold them: ``id2label`` and ``label2id``.

    Raises:
        ConfigError: There are fewer than two, or two are the same.
    """
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise ConfigError(f"{owner}: labels are {list(labels)[:8]!r}; accepted: two or more different names.")
    return {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}


def batches_of(
    lengths: Sequence[int], batch_size: int | None, batch_tokens: int | None, device: str = "cpu"
) -> Iterator[list[int]]:
    """Indices in batches of like length.

    Args:
        lengths: Tokens of each item.
        batch_size: Most items in a batch; else ``batch_tokens``.
        batch_tokens: Most padded tokens in a batch; None = as many as suit the device.
        device: Type of the device.

    Raises:
        ConfigError: Both limits are given, or one is below 1.
    """
    if batch_size is not None and batch_tokens is not None:
        raise ConfigError(f"batch_size={batch_size} and batch_tokens={batch_tokens}: give one of the two.")
    if batch_size is not None:
        return iter(BucketBatchSampler(lengths, batch_size, shuffle=False))
    if batch_tokens is None:
        batch_tokens = PROCESSOR_BATCH_TOKENS if device == "cpu" else ACCELERATOR_BATCH_TOKENS
    return iter(TokenBatchSampler(lengths, batch_tokens, shuffle=False))


@torch.inference_mode()
def classify_rows(
    model: PreTrainedModel,
    reader: Reader,
    rows: Sequence[Row],
    *,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
) -> np.ndarray:
    """Distributions of encoded texts, in order; labels in the rows are not read.

    Args:
        model: Put into evaluation mode.
        reader: The model's own.
        rows: What ``reader.encode`` gave.
        batch_size: Most texts in one pass; else ``batch_tokens``.
        batch_tokens: Most padded tokens in one pass (default 512, on an accelerator 2,048).

    Returns:
        float32, rows sum to 1. Shape: (n_rows, n_labels).
    """
    model.eval()
    out = np.zeros((len(rows), len(label_names(model.config))), dtype=np.float32)
    for indices in batches_of(row_lengths(rows), batch_size, batch_tokens, model.device.type):
        give_way()
        chosen = [{key: value for key, value in rows[i].items() if key != "label"} for i in indices]
        batch = {key: value.to(model.device) for key, value in reader.collate(chosen).items()}
        out[indices] = model(**batch).logits.float().softmax(-1).cpu().numpy()
    return out


class TextClassifier:
    """A trained classifier with its reader: texts in, distributions out.

    Args:
        model: ``UtteranceClassifier`` or ``LinearClassifier``.
        reader: Made for it.
        name: For records.
    """

    def __init__(self, model: PreTrainedModel, reader: Reader, name: str = "classifier") -> None:
        self.model = model.eval()
        self.reader = reader
        self.name = name

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device | None = None) -> TextClassifier:
        """Reads a model folder.

        Args:
            folder: What training saved, or a name that ``resolve_model`` knows.
            device: Where the model runs; None = the processor.

        Raises:
            MissingResourceError: There is no such folder.
            CheckpointError: The folder holds no text classifier, or lacks weights.
        """
        path = resolve_model(folder)
        system = _read_json(path / "config.json").get("model_type")
        if system not in SYSTEMS:
            hint = nearest(str(system), list(SYSTEMS))
            raise CheckpointError(f"{path}: model_type is {system!r}.{hint} Accepted: {', '.join(SYSTEMS)}.")
        meta = _read_json(path / "empatheia.json") if (path / "empatheia.json").is_file() else {}
        with fitting_parts(path):
            model, reader = UNDERSTANDERS.get(system).open(path)
            made = cls(model if device is None else model.to(device), reader, str(meta.get("name", path.name)))
            made.classify_texts(["?"])
        return made

    @property
    def labels(self) -> tuple[str, ...]:
        """Label names by index."""
        return label_names(self.model.config)

    def classify_texts(
        self,
        texts: Iterable[Text],
        *,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        window: int = WINDOW,
        progress: Callable[[int], None] | None = None,
    ) -> np.ndarray:
        """Distributions of texts, in order; see :meth:`classify_windows` for the arguments.

        Returns:
            float32, rows sum to 1. Shape: (n_texts, n_labels).
        """
        parts = list(
            self.classify_windows(
                texts, batch_size=batch_size, batch_tokens=batch_tokens, window=window, progress=progress
            )
        )
        return np.concatenate(parts) if parts else np.zeros((0, len(self.labels)), dtype=np.float32)

    def classify_windows(
        self,
        texts: Iterable[Text],
        *,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        window: int = WINDOW,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[np.ndarray]:
        """Distributions, one array for each stretch of texts, so any number of texts fits into memory.

        Within a stretch equal texts are read once and texts of like length share a batch; the answer to a text does
        not depend on its neighbours (beyond the last digits of floating point).

        Args:
            texts: Strings or conversations, in any iterable.
            batch_size: Most texts in one pass; else ``batch_tokens``.
            batch_tokens: Most padded tokens in one pass (default 512, on an accelerator 2,048).
            window: Texts a stretch, at least 1.
            progress: Called with the number of texts just finished.

        Yields:
            float32. Shape: (at most ``window``, n_labels).

        Raises:
            ConfigError: Both batch limits are given, or a number is below 1.
            CheckpointError: Weights are so large that no number comes out.
        """
        if window < 1:
            raise ConfigError(f"window is {window}; accepted: 1 or more texts.")
        source = iter(texts)
        while chunk := [text if isinstance(text, str) else tuple(text) for text in islice(source, window)]:
            different = list(dict.fromkeys(chunk))
            place = {text: i for i, text in enumerate(different)}
            rows = self.reader.encode(different)
            found = classify_rows(self.model, self.reader, rows, batch_size=batch_size, batch_tokens=batch_tokens)
            check_finite({"probabilities": found}, f"what the model {self.name!r} computes")
            if progress is not None:
                progress(len(chunk))
            yield found[[place[text] for text in chunk]]


def label_names(config: PreTrainedConfig) -> tuple[str, ...]:
    """Label names of a configuration, by index.

    Raises:
        CheckpointError: They are not numbered from 0.
    """
    settings: Any = config  # which has both, whatever transformers' annotations say
    try:
        return tuple(settings.id2label[i] for i in range(settings.num_labels))
    except KeyError as missing:
        raise CheckpointError(f"config.json: id2label has no label {missing}; accepted: 0 and on.") from None


def read_model(model_class: type[Model], folder: str | Path) -> Model:
    """A model with all its weights, in evaluation mode.

    Raises:
        CheckpointError: The folder cannot be read, or weights are missing or of another shape.
    """
    problem, remedy = (
        f"cannot read a model from {str(folder)!r}",
        "Give a folder with config.json and model.safetensors.",
    )
    model, info = load_pretrained(model_class, folder, problem, remedy, dtype=torch.float32, output_loading_info=True)
    if missing := sorted(info["missing_keys"]):
        raise CheckpointError(f"{str(folder)!r} lacks {len(missing)} weights, first {missing[0]!r}; train it again.")
    return model.eval()


def read_tokenizer(folder: str | Path, model: PreTrainedModel | None = None) -> PreTrainedTokenizerBase:
    """The tokenizer saved with a model.

    Args:
        folder: The model's.
        model: That reads its pieces; None = not known here.

    Raises:
        CheckpointError: There is none, or it is another model's.
    """
    remedy = "Train the model again, or copy its folder whole."
    tokenizer = load_pretrained(AutoTokenizer, folder, f"no tokenizer in {str(folder)!r}", remedy)
    if model is not None:
        table: Any = model.get_input_embeddings()
        check_pieces(len(tokenizer), table.num_embeddings, folder)
    return tokenizer


def groups_of_turns(dialogues: Sequence[Dialogue], most: int) -> Iterator[list[Dialogue]]:
    """Stretches of conversations with about ``most`` turns, so that memory stays bounded."""
    group: list[Dialogue] = []
    n_turns = 0
    for dialogue in dialogues:
        if group and n_turns + len(dialogue.turns) > most:
            yield group
            group, n_turns = [], 0
        group.append(dialogue)
        n_turns += len(dialogue.turns)
    if group:
        yield group


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = read_record(path)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise CheckpointError(f"{path}: {reason}; give the folder of a trained classifier.") from None
    return found if isinstance(found, dict) else {}
