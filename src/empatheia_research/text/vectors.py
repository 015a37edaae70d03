"""Word vectors: GloVe and fastText text files read by path, or distilled from an encoder's outputs.

Distilling encodes each vocabulary entry with a teacher and keeps its output, centred and projected; no weight
of the teacher is copied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from empatheia.errors import DataError, MissingResourceError
from empatheia.reading import lines_of
from empatheia.writing import whole_file
from empatheia_research.pretrained import load_pretrained


def load_vectors(path: str | Path, words: Sequence[str], width: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of the needed words from a text file with ``word v_1 ... v_d`` on each line.

    Args:
        path: GloVe or fastText (its header line is skipped), ``.gz`` too; read line by line. Only needed
            words are kept, the first of several lines for one.
        words: Vocabulary; empty strings are never found.
        width: Expected d; None = the file's.

    Returns:
        Matrix ``(len(words), d)`` float32 (zero rows where not found) and found mask ``(len(words),)``.

    Raises:
        MissingResourceError: No such file.
        DataError: A line has another number of values or holds something that is no finite number (it is
            named), the archive is truncated, or no word was found.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingResourceError(f"no word vectors at {str(path)!r}; give a GloVe or fastText text file.")
    rows_of: dict[str, list[int]] = {}
    for i, word in enumerate(words):
        if word:
            rows_of.setdefault(word, []).append(i)
    found, width = _found(path, rows_of, width)
    if not found:
        raise DataError(f"{path}: none of {len(words)} vocabulary words has a vector there; is it the right language?")
    matrix = np.zeros((len(words), width or 0), dtype=np.float32)
    mask = np.zeros(len(words), dtype=bool)
    for word, vector in found.items():
        matrix[rows_of[word]], mask[rows_of[word]] = vector, True
    return matrix, mask


def _found(path: Path, wanted: Collection[str], width: int | None) -> tuple[dict[str, np.ndarray], int | None]:
    """The vectors of wanted words that are in a file, and how wide they are."""
    found: dict[str, np.ndarray] = {}
    for number, line in _lines(path):
        word, _, values = line.partition(" ")
        if number == 1 and word.isdigit() and values.isdigit():
            continue  # fastText: number of words and width
        width = width or values.count(" ") + 1
        if values.count(" ") + 1 != width and _has_blanks(values, width, f"{path}:{number}"):
            continue
        if word in wanted and word not in found:
            found[word] = _vector(values, width, f"{path}:{number}: the vector of {word!r}")
    return found, width


def _has_blanks(values: str, width: int, where: str) -> bool:
    """Whether a word has blanks in it, as in some GloVe releases: no vocabulary has those.

    Raises:
        DataError: It has not, and the number of values is wrong.
    """
    fields = values.split()
    if len(fields) > width and _are_numbers(fields[-width:]) and not _are_numbers(fields[:1]):
        return True
    if len(fields) != width:
        raise DataError(f"{where}: {len(fields)} values, expected {width}; is it a file of that width?")
    return False


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in lines_of(path, errors="replace"):
        if line := line.rstrip():
            yield number, line


def _vector(values: str, width: int, where: str) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):  # told below
            vector = np.array(values.split(), dtype=np.float32)
    except ValueError:
        raise DataError(f"{where} holds something that is not a number: {values[:60]!r}.") from None
    if len(vector) != width:
        raise DataError(f"{where} holds {len(vector)} values, expected {width}.")
    if not np.isfinite(vector).all():
        raise DataError(f"{where} holds a value that is not finite.")
    return vector


def _are_numbers(fields: Sequence[str]) -> bool:
    try:
        [float(field) for field in fields]
    except ValueError:
        return False
    return True


def distil_vectors(
    encoder_folder: str | Path, words: Sequence[str], *, width: int | None = None, batch_size: int = 256
) -> np.ndarray:
    """Word vectors from a teacher's outputs: mean-pooled states of each entry, centred, PCA, std 0.1.

    Args:
        encoder_folder: A Hugging Face encoder with its tokeniser; nothing is fetched.
        words: Vocabulary; empty strings get zero rows.
        width: Columns; at most the teacher's width, None = the teacher's. With fewer words than columns the
            last columns are zero.
        batch_size: Entries a pass.

    Returns:
        Shape: ``(len(words), width)``, float32.

    Raises:
        MissingResourceError: No such folder.
        DataError: ``width`` exceeds the teacher's.
    """
    if not Path(encoder_folder).is_dir():
        raise MissingResourceError(f"no encoder at {str(encoder_folder)!r}; give a folder with its weights.")
    order = sorted((i for i, word in enumerate(words) if word.strip()), key=lambda i: len(words[i]))
    states = _mean_states(encoder_folder, [words[i] for i in order], batch_size)
    teacher_width = states.shape[1]
    width = width or int(teacher_width)
    if width > teacher_width:
        raise DataError(f"cannot distil {width} columns from a teacher of width {teacher_width}; ask for at most that.")
    out = np.zeros((len(words), int(width)), dtype=np.float32)
    if order:
        states -= states.mean(0)
        # every k-th entry is enough for the axes and keeps the decomposition small
        _, _, axes = np.linalg.svd(states[:: max(1, len(order) // 20_000)], full_matrices=False)
        reduced = states @ axes[:width].T  # (n_words, min(width, number of axes))
        out[order, : reduced.shape[1]] = 0.1 * reduced / max(float(reduced.std()), 1e-12)
    return out


def _mean_states(folder: str | Path, words: Sequence[str], batch_size: int) -> np.ndarray:
    """Masked mean of the last hidden states. Shape: ``(len(words), teacher width)``, float32."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = load_pretrained(AutoTokenizer, folder)
    model = load_pretrained(AutoModel, folder).eval()
    states = np.zeros((len(words), model.config.hidden_size), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(words), batch_size):
            some = list(words[start : start + batch_size])
            batch = tokenizer(some, padding=True, truncation=True, max_length=16, return_tensors="pt")
            hidden = model(**batch).last_hidden_state  # (batch, pieces, teacher width)
            mask = batch["attention_mask"].unsqueeze(-1)
            states[start : start + len(some)] = ((hidden * mask).sum(1) / mask.sum(1)).float().numpy()
    return states


def write_vectors(path: str | Path, words: Sequence[str], matrix: np.ndarray) -> None:
    """Writes a GloVe-form text file that :func:`load_vectors` reads; entries that are empty are left out.

    Raises:
        DataError: An entry holds a blank (it could not be read back), or the counts differ.
    """
    if len(words) != len(matrix):
        raise DataError(f"{len(words)} words but {len(matrix)} vectors; give one vector for each word.")
    for word in words:
        if word and (word.split() != [word]):
            raise DataError(f"the entry {word!r} holds a blank and cannot stand in a vector file; leave it out.")
    with whole_file(Path(path)) as part, part.open("w", encoding="utf-8") as file:
        for word, row in zip(words, matrix, strict=True):
            if word:
                file.write(word + " " + " ".join(f"{value:.5f}" for value in row) + "\n")
