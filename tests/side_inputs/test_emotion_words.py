"""Emotion words: which words, in which order, by which rule; and saved whole."""

import pytest
import torch

from empatheia.errors import MissingResourceError
from empatheia.records.dialogue import Dialogue
from empatheia_research.corpora import sample
from empatheia_research.side_inputs import context_words, make_side_inputs
from empatheia_research.side_inputs.emotion_words import EmotionWords
from empatheia_research.text.collation import Collator, Layout, encode_examples
from empatheia_research.text.tokenizer import DialogueTokenizer

TURNS = ["I was scared and very angry!", "Oh, that is bad. Don't be sad.", "It was a dark night."]


@pytest.fixture(scope="module")
def tokenizer():
    return DialogueTokenizer.train_words([*TURNS, *(t.text for d in sample.load("train") for t in d.turns)])


def encoded(tokenizer, turns, **layout):
    examples = [Dialogue.of(*turns, "okay").examples()[-1]]
    return examples, encode_examples(examples, tokenizer, Layout(separators=False, **layout))


def words_of(tokenizer, row, mask):
    return [tokenizer.piece_texts()[i] for i in row[mask].tolist()]


def test_words_of_the_lexicon_come_in_order_behind_lab(tokenizer):
    side = EmotionWords(tokenizer, lexicon="sample", adjectives=False)
    examples, items = encoded(tokenizer, TURNS)
    side.add(examples, items)
    batch = side.collate(items, 0, 20)
    assert words_of(tokenizer, batch["emotion_word_ids"][0], batch["emotion_word_mask"][0])[1:] == [
        "scared", "angry", "bad", "sad",
    ]  # fmt: skip
    assert batch["emotion_word_ids"][0, 0] == tokenizer.sep_id


def test_a_context_without_emotion_words_has_lab(tokenizer):
    side = EmotionWords(tokenizer, lexicon="sample", adjectives=False)
    examples, items = encoded(tokenizer, ["It was a night."])
    side.add(examples, items)
    assert side.collate(items, 0, 9)["emotion_word_mask"].tolist() == [[True]]
    other = encode_examples(examples, tokenizer, Layout())  # nothing was added
    assert side.collate(other, 0, 9)["emotion_word_mask"].tolist() == [[True]]


def test_adjectives_count_where_a_tagger_is(tokenizer, monkeypatch):
    monkeypatch.setattr(context_words, "has_tagger", lambda: True)
    monkeypatch.setattr("nltk.tag.pos_tag", lambda words: [(w, "JJ" if w in ("dark", "very") else "NN") for w in words])
    side = EmotionWords(tokenizer, lexicon="sample")
    assert side.adjectives and side.settings()["adjectives"] is True
    examples, items = encoded(tokenizer, TURNS[2:])
    side.add(examples, items)
    batch = side.collate(items, 0, 9)
    assert words_of(tokenizer, batch["emotion_word_ids"][0], batch["emotion_word_mask"][0])[1:] == ["dark"]


def test_a_rule_that_needs_the_tagger_says_so(tokenizer, monkeypatch):
    monkeypatch.setattr(context_words, "has_tagger", lambda: False)
    with pytest.raises(MissingResourceError, match=r"adjectives: true needs NLTK's tagger.*adjectives: false"):
        EmotionWords(tokenizer, lexicon="sample", adjectives=True)
    assert EmotionWords(tokenizer, lexicon="sample").settings()["adjectives"] is False


def test_settings_make_an_equal_one_without_the_file(tokenizer):
    side = EmotionWords(tokenizer, lexicon="sample", adjectives=False)
    settings = {**side.settings(), "lexicon": "gone.txt"}
    (again,) = make_side_inputs(("emotion_words",), {"emotion_words": settings}, tokenizer)
    assert again.words == side.words and torch.equal(again.lexicon_mask(), side.lexicon_mask())
    known = {tokenizer.piece_texts()[i] for i in side.lexicon_mask().nonzero()[:, 0].tolist()}
    assert {"scared", "angry"} <= known and not {"the", "was", "night", ""} & known


def test_pieces_of_a_word_stay_together():
    tokenizer = DialogueTokenizer.train_bpe((t.text for d in sample.load("train") for t in d.turns), size=330)
    side = EmotionWords(tokenizer, lexicon="sample", adjectives=False)
    examples, items = encoded(tokenizer, TURNS)
    side.add(examples, items)
    row = side.collate(items, 0, 40)["emotion_word_ids"][0, 1:]
    expected = [i for word in ("scared", "angry", "bad", "sad") for i in tokenizer.encode(word).ids]
    assert row.tolist() == expected


def test_the_collator_asks_for_them(tokenizer):
    side = EmotionWords(tokenizer, lexicon="sample", adjectives=False)
    _, items = encoded(tokenizer, TURNS)
    batch = Collator(("input_ids", "emotion_word_ids", "feedback_ids", "emotion_vocabulary"), 0, [side])(items)
    assert set(batch) == {"input_ids", "emotion_word_ids"}
