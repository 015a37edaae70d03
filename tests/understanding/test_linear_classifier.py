"""The linear classifier against fastText itself: hash, features, answers; padding, saving, settings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_classifiers import SENTENCES, linear_classifier, save

from empatheia.errors import ConfigError, DataError
from empatheia.records.dialogue import Dialogue
from empatheia.taxonomy import EMOTIONS
from empatheia_research.understanding import UNDERSTANDERS
from empatheia_research.understanding.labels.classifier import TextClassifier
from empatheia_research.understanding.labels.linear_classifier import (
    LinearClassifier,
    LinearClassifierConfig,
    NgramReader,
    ngram_buckets,
    split_words,
    word_hash,
)

# Written out by fastText 0.9.2, trained on four lines with dim=2, bucket=7, wordNgrams=3, minCount=1.
WORDS = ("</s>", "my", "all", "cat", "died", "sun", "shone", "rain", "day", "is", "über", "fine")
TABLE = (
    (0.0990, -0.0700), (0.4413, -0.2651), (-0.0284, 0.0203), (-0.7461, 0.5277), (-0.7461, 0.5277), (1.1183, -0.7928),
    (1.1183, -0.7928), (-0.8062, 0.5703), (-0.8062, 0.5703), (0.7779, -0.5500), (0.7779, -0.5500), (0.7779, -0.5500),
    (-1.6424, 1.1583), (-0.0284, 0.0203), (-0.7461, 0.5277), (1.1218, -0.7949), (1.5557, -1.1000), (2.2366, -1.5856),
    (0.7779, -0.5500),
)  # fmt: skip
HEAD = ((-3.0530, 2.1578), (3.0530, -2.1578))
GLAD = {"my cat shone": 0.98488, "all day über new rain": 0.85943, "": 0.71231, "nothing known here": 0.99958}


@pytest.fixture
def fasttext_model():
    config = LinearClassifierConfig(words=WORDS, labels=("sad", "glad"), split="blanks", width=2, n_grams=3, buckets=7)
    model = LinearClassifier(config)
    model.table.weight.data = torch.tensor([(0.0, 0.0), *TABLE])
    model.head.weight.data = torch.tensor(HEAD)
    return TextClassifier(model, NgramReader(config))


def test_fasttexts_matrices_give_fasttexts_answers(fasttext_model):
    found = fasttext_model.classify_texts(list(GLAD))[:, 1]
    assert np.allclose(found, list(GLAD.values()), atol=2e-4)


def test_published_hash_values():
    """FNV-1a test vectors of its authors (draft-eastlake-fnv): "", "a", "foobar"."""
    assert [word_hash(word) for word in ("", "a", "foobar")] == [0x811C9DC5, 0xE40C292C, 0xBF9CF968]


def test_ngrams_by_first_word_then_length():
    words = ["a", "b", "c", "d"]
    pairs = [ngram_buckets(words[i : i + 2], 2, 10**9)[0] for i in range(3)]
    assert ngram_buckets(words, 2, 10**9) == pairs
    assert ngram_buckets(words, 3, 10**9)[::2][:2] == pairs[:2] and len(ngram_buckets(words, 3, 10**9)) == 5
    assert ngram_buckets(words, 1, 7) == [] and max(ngram_buckets(words * 50, 4, 7)) == 6


def test_word_rules():
    assert split_words("I'm  SO sad.", "blanks") == ["I'm", "SO", "sad."]
    assert split_words("I'm SO sad (really)!", "spaced") == ["i", "'", "m", "so", "sad", "(", "really", ")", "!"]
    assert split_words("I'm sad.", "family") == ["i", "am", "sad", "."]


def test_a_context_is_its_last_four_turns_with_end_marks():
    """Rashkin et al.'s code: the last four utterances, joined by the end mark."""
    reader = linear_classifier(split="blanks").reader
    turns = Dialogue.of("one", "two", "three", "four", "five six").turns
    assert reader.words_of(turns) == ["two", "</s>", "three", "</s>", "four", "</s>", "five", "six", "</s>"]
    assert reader.words_of("five six") == ["five", "six", "</s>"]


def test_vocabulary_is_by_count_and_rare_words_only_make_ngrams():
    model, reader = LinearClassifier.from_texts(
        ["a b a", "a c"], ("x", "y"), min_count=2, width=4, n_grams=2, buckets=9
    )
    assert model.config.words == ["a", "</s>"]
    (row,) = reader.encode(["a b"])
    assert row["input_ids"][:2] == [1, 2] and len(row["input_ids"]) == 4 and min(row["input_ids"][2:]) >= 3


def test_padding_changes_nothing():
    tiny = linear_classifier()
    rows = tiny.reader.encode([SENTENCES[3], SENTENCES[2]])
    batch = tiny.reader.collate(rows)
    batch["input_ids"][~batch["attention_mask"]] = 5
    with torch.inference_mode():
        alone = tiny.model(**tiny.reader.collate(rows[1:])).logits[0]
        assert torch.allclose(tiny.model(**batch).logits[1], alone, atol=1e-6)


def test_saved_and_loaded(tmp_path):
    tiny = linear_classifier(softmax_temperature=1.3)
    opened = TextClassifier.load(save(tiny, tmp_path / "model"))
    assert opened.labels == EMOTIONS
    assert np.array_equal(opened.classify_texts(SENTENCES), tiny.classify_texts(SENTENCES))


def test_starts_undecided_and_only_seen_rows_learn():
    torch.manual_seed(0)
    model, reader = LinearClassifier.from_texts(SENTENCES, ("a", "b"), width=4, n_grams=1)
    before = model.table.weight.detach().clone()
    batch = reader.collate([{**row, "label": 1} for row in reader.encode(SENTENCES[:1])])
    assert torch.equal(model(**batch).logits, torch.zeros(1, 2))
    assert before[1:].abs().max() <= 1 / 4 and before[0].abs().sum() == 0
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for _ in range(2):  # the head of zeros lets nothing through at first
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    changed = (model.table.weight != before).any(1).nonzero().flatten().tolist()
    assert changed == sorted(set(batch["input_ids"][0].tolist()))
    assert model(**batch).logits.softmax(-1)[0, 1] > 0.5


def test_settings_that_cannot_be():
    for fields, message in (
        ({"split": "bpe"}, "split is 'bpe'; accepted: blanks, spaced, family"),
        ({"width": 0}, "width is 0; accepted: 1 or more"),
        ({"softmax_temperature": -1.0}, "softmax_temperature is -1.0; accepted: above 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            LinearClassifierConfig(words=("a",), labels=EMOTIONS, **fields)
    with pytest.raises(DataError, match="no text to take words from"):
        LinearClassifier.from_texts([], EMOTIONS)


def test_registered():
    assert UNDERSTANDERS.get("linear_classifier") is LinearClassifier
