"""Word vectors: GloVe and fastText text files read by path, or distilled from an encoder's outputs.

Distilling encodes each vocabulary entry with a teacher and keeps its output, centred and projected; no weight of the
teacher is copied.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from empatheia.errors import DataError, MissingResourceError


def load_vectors(path: str | Path, words: Sequence[str], width: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of the needed words from a text file (``word v_1 ... v_d`` a line, ``.gz`` too, fastText header allowed).

    Args:
        path: The file; read line by line, only needed words are kept.
        words: Vocabulary.
        width: Expected d; None = the file's.

    Returns:
        Matrix ``(len(words), d)`` float32 (zero rows where not found) and found mask ``(len(words),)``.

    Raises:
        MissingResourceError: No such file.
        DataError: A line has another number of values (names it), the width differs, or no word was found.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingResourceError(f"no word vectors at {str(path)!r}; give a GloVe or fastText text file.")
    index = {word: i for i, word in enumerate(words) if word}
    rows: dict[int, np.ndarray] = {}
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            word, _, values = line.rstrip("\n").partition(" ")
            if number == 1 and values.strip().isdigit() and word.isdigit():
                continue  # fastText: number of words and width
            found = values.split()
            if width is None:
                width = len(found)
            if len(found) != width:
                # some GloVe releases have words with blanks: the values are the last `width` fields
                if len(found) > width and _are_numbers(found[-width:]) and not _are_numbers(found[:1]):
                    continue
                raise DataError(f"{path}:{number}: {len(found)} values, expected {width}; is it a vector file of that width?")
            if (row := index.get(word)) is not None and row not in rows:
                try:
                    rows[row] = np.array(found, dtype=np.float32)
                except ValueError:
                    raise DataError(f"{path}:{number}: the vector of {word!r} holds something that is no number.") from None
    if not rows:
        raise DataError(f"{path}: none of {len(words)} vocabulary words has a vector there; is it the right language?")
    matrix = np.zeros((len(words), width or 0), dtype=np.float32)
    mask = np.zeros(len(words), dtype=bool)
    for row, values in rows.items():
        matrix[row], mask[row] = values, True
    return matrix, mask


def _are_numbers(fields: Sequence[str]) -> bool:
    try:
        [float(field) for field in fields]
    except ValueError:
        return False
    return True


def distil_vectors(
    encoder_folder: str | Path, words: Sequence[str], *, width: int | None = None, batch_size: int = 256
) -> np.ndarray:
    """Word vectors from a teacher's outputs: mean-pooled states of each entry, centred, reduced by PCA, std 0.1.

    Args:
        encoder_folder: A Hugging Face encoder with its tokeniser.
        words: Vocabulary; empty strings get zero rows.
        width: Columns; at most the teacher's width, None = the teacher's.
        batch_size: Entries a pass.

    Returns:
        Shape: ``(len(words), width)``, float32.

    Raises:
        DataError: ``width`` exceeds the teacher's.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(encoder_folder))
    model = AutoModel.from_pretrained(str(encoder_folder)).eval()
    order = sorted((i for i, word in enumerate(words) if word.strip()), key=lambda i: len(words[i]))
    states = np.zeros((len(words), model.config.hidden_size), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            batch = tokenizer([words[i] for i in rows], padding=True, truncation=True, max_length=16, return_tensors="pt")
            hidden = model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1)
            states[rows] = ((hidden * mask).sum(1) / mask.sum(1)).numpy()
    used = states[order] - states[order].mean(0)
    width = width or states.shape[1]
    if width > states.shape[1]:
        raise DataError(f"cannot distil {width} columns from a teacher of width {states.shape[1]}; ask for at most that.")
    _, _, components = np.linalg.svd(used[: 20_000], full_matrices=False)
    reduced = used @ components[:width].T
    out = np.zeros((len(words), width), dtype=np.float32)
    out[order] = 0.1 * reduced / reduced.std()
    return out


def write_vectors(path: str | Path, words: Sequence[str], matrix: np.ndarray) -> None:
    """Writes a GloVe-form text file."""
    with Path(path).open("w", encoding="utf-8") as file:
        for word, row in zip(words, matrix, strict=True):
            if word:
                file.write(word + " " + " ".join(f"{value:.5f}" for value in row) + "\n")
