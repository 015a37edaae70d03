"""Word vectors: files that are good, odd and broken; distilling from a small encoder of our own."""

import gzip
from itertools import pairwise

import numpy as np
import pytest

from empatheia.errors import DataError, MissingResourceError
from empatheia_research.text.vectors import distil_vectors, load_vectors, write_vectors

GLOVE = "sad 1 2 3\nthe 4 5 6\njob -1 0.5 1e-2\n"


def written(tmp_path, text, name="vectors.txt"):
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
@pytest.mark.parametrize("header", ["", "3 3\n"])
def test_needed_words_are_read(tmp_path, name, header):
    matrix, found = load_vectors(written(tmp_path, header + GLOVE, name), ["job", "", "dog", "sad", "job"])
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix, [[-1, 0.5, 0.01], [0] * 3, [0] * 3, [1, 2, 3], [-1, 0.5, 0.01]])
    assert found.tolist() == [True, False, False, True, True]


def test_the_first_line_of_a_word_counts_and_trailing_blanks_do_not(tmp_path):
    matrix, _ = load_vectors(written(tmp_path, "a 1 2 \na 3 4\n\nb 5  6\n"), ["a", "b"])
    assert matrix.tolist() == [[1, 2], [5, 6]]


def test_words_with_blanks_are_passed_over(tmp_path):
    matrix, found = load_vectors(written(tmp_path, "a 1 2\nat name 3 4\nb 5 6\n"), ["a", "b", "at"])
    assert (matrix[1].tolist(), found.tolist()) == ([5, 6], [True, True, False])


@pytest.mark.parametrize(
    ("text", "width", "message"),
    [
        ("sad 1 2 3\njob 1 2\n", None, r"vectors.txt:2: 2 values, expected 3"),
        (GLOVE, 300, r"vectors.txt:1: 3 values, expected 300"),
        (
            "the 1 2\nsad 1 x\n",
            None,
            r"vectors.txt:2: the vector of 'sad' holds something that is not a number: '1 x'",
        ),
        ("sad 1 nan\n", None, r"vectors.txt:1: the vector of 'sad' holds a value that is not finite"),
        ("triste 1 2\n", None, r"none of 2 vocabulary words has a vector there; is it the right language"),
        ("", None, r"none of 2 vocabulary words"),
    ],
)
def test_a_broken_file_is_told_with_its_line(tmp_path, text, width, message):
    with pytest.raises(DataError, match=message):
        load_vectors(written(tmp_path, text), ["sad", "job"], width)


def test_a_missing_file_and_a_truncated_archive_are_told(tmp_path):
    with pytest.raises(MissingResourceError, match="no word vectors at"):
        load_vectors(tmp_path / "none.txt", ["a"])
    path = tmp_path / "v.gz"
    path.write_bytes(gzip.compress(GLOVE.encode() * 2000)[:-40])
    with pytest.raises(DataError, match="damaged or truncated gzip file"):
        load_vectors(path, ["zebra"])


def test_written_vectors_are_read_back(tmp_path):
    matrix = np.arange(6, dtype=np.float32).reshape(3, 2)
    write_vectors(tmp_path / "v.txt", ["a", "", "b"], matrix)
    again, found = load_vectors(tmp_path / "v.txt", ["a", "", "b"])
    assert again.tolist() == [[0, 1], [0, 0], [4, 5]]
    assert found.tolist() == [True, False, True]


def test_what_could_not_be_read_back_is_not_written(tmp_path):
    with pytest.raises(DataError, match="'a b' holds a blank"):
        write_vectors(tmp_path / "v.txt", ["a b"], np.zeros((1, 2)))
    with pytest.raises(DataError, match="2 words but 1 vectors"):
        write_vectors(tmp_path / "v.txt", ["a", "b"], np.zeros((1, 2)))
    assert not (tmp_path / "v.txt").exists()


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("teacher")
    backend = Tokenizer(
        models.WordLevel({w: i for i, w in enumerate(["[PAD]", "[UNK]", *"abcdefghij"])}, unk_token="[UNK]")
    )
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=12, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    BertModel(config).save_pretrained(folder)
    return folder


def test_distilled_vectors_are_centred_and_of_the_asked_scale(teacher):
    words = ["", *"abcdefghij"]
    matrix = distil_vectors(teacher, words, width=6)
    assert (matrix.shape, matrix.dtype) == ((11, 6), np.float32)
    assert not matrix[0].any()
    np.testing.assert_allclose(matrix[1:].mean(0), 0, atol=1e-6)
    assert matrix[1:].std() == pytest.approx(0.1, rel=1e-4)
    variances = matrix.var(0)
    assert all(a >= b for a, b in pairwise(variances))  # axes by importance


def test_distilling_does_not_depend_on_the_batch(teacher):
    words = list("abcdefghij")
    np.testing.assert_allclose(distil_vectors(teacher, words, batch_size=3), distil_vectors(teacher, words), atol=1e-5)


@pytest.mark.parametrize("words", [[], ["", " "], ["a"], ["a", "b"]])
def test_few_words_give_finite_vectors(teacher, words):
    matrix = distil_vectors(teacher, words, width=8)
    assert matrix.shape == (len(words), 8)
    assert np.isfinite(matrix).all()


def test_what_cannot_be_distilled_is_told(teacher, tmp_path):
    with pytest.raises(DataError, match="cannot distil 17 columns from a teacher of width 16"):
        distil_vectors(teacher, ["a"], width=17)
    with pytest.raises(MissingResourceError, match="no encoder at"):
        distil_vectors(tmp_path / "none", ["a"])
