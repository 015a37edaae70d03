"""Pieces: every string in, the family's words out; offsets; folders that are whole, broken or foreign."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import fresh
from empatheia.errors import CheckpointError, ConfigError
from empatheia.text.words import tokenize_words
from empatheia_research.text.tokenizer import META, DialogueTokenizer, check_kind

TEXTS = (
    "I lost my job and I don't know what to do.",
    "Oh no, I am so sorry! That's hard.",
    "My dog passed away last week; it was awful.",
    'He said "no way" and left.',
)


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory):
    """A small encoder's tokeniser of our own: lower-cased word-level pieces with [CLS] and [SEP]."""
    folder = tmp_path_factory.mktemp("encoder")
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = ["i", "am", "so", "sad", ",", "un", "##happy", "don", "'", "t", "know"]
    backend = Tokenizer(models.WordPiece({w: i for i, w in enumerate([*names, *words])}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizers(encoder_folder):
    return {
        "word": DialogueTokenizer.train_words(TEXTS),
        "bpe": DialogueTokenizer.train_bpe(TEXTS, size=320),
        "hf": DialogueTokenizer.from_hf(encoder_folder),
    }


def family(text):
    return " ".join(word.text for word in tokenize_words(text))


def test_special_pieces_come_first():
    tokenizer = DialogueTokenizer.train_words(["a b"], roles=True)
    ids = (
        tokenizer.pad_id,
        tokenizer.unk_id,
        tokenizer.cls_id,
        tokenizer.sep_id,
        tokenizer.bos_id,
        tokenizer.eos_id,
    )
    assert ids == (0, 1, 2, 3, 4, 5)
    assert (tokenizer.usr_id, tokenizer.sys_id, len(tokenizer)) == (6, 7, 10)
    assert DialogueTokenizer.train_words(["a"]).usr_id is None


def test_words_keep_the_order_of_first_sight():
    assert DialogueTokenizer.train_words(["b a b", "c a"]).piece_texts()[6:] == ["b", "a", "c"]


def test_with_a_limit_frequent_words_come_first_and_ties_by_first_sight():
    texts = ["c a b b", "a d"]
    assert DialogueTokenizer.train_words(texts, max_size=9).piece_texts()[6:] == ["a", "b", "c"]
    assert DialogueTokenizer.train_words(texts, min_count=2).piece_texts()[6:] == ["a", "b"]


def test_a_rare_word_is_unknown():
    tokenizer = DialogueTokenizer.train_words(["a a b"], min_count=2)
    assert tokenizer.encode("a b").ids == [6, tokenizer.unk_id]
    assert tokenizer.decode([6, tokenizer.unk_id, 6], raw=True) == "a [UNK] a"
    assert tokenizer.decode([6, tokenizer.unk_id, 6]) == "A a"


@given(st.text(max_size=60))
@example("👍🏽 ok")
@example("İ don't\u200b \x00 \ud800!")
@example("[PAD] [SEP] [EOS]")
def test_bpe_encodes_every_string_and_gives_its_words_back(tokenizers, text):
    bpe = tokenizers["bpe"]
    pieces = bpe.encode(text)
    assert bpe.unk_id not in pieces.ids
    assert bpe.decode(pieces.ids, raw=True) == family(text)


@given(st.text(max_size=60) | st.sampled_from(TEXTS))
@pytest.mark.parametrize("kind", ["word", "bpe", "hf"])
def test_pieces_know_their_characters_and_words(tokenizers, kind, text):
    pieces = tokenizers[kind].encode(text)
    assert len(pieces.ids) == len(pieces.starts) == len(pieces.ends) == len(pieces.words)
    assert all(0 <= start <= end <= len(text) for start, end in zip(pieces.starts, pieces.ends, strict=True))
    assert pieces.starts == sorted(pieces.starts)
    assert pieces.words == sorted(pieces.words)
    if kind != "hf":
        words = tokenize_words(text)
        assert sorted(set(pieces.words)) == list(range(len(words)))
        for word, start, end in zip(pieces.words, pieces.starts, pieces.ends, strict=True):
            assert (start, end) == words[word][1:]


def test_the_pieces_of_a_word_share_it(tokenizers):
    pieces = tokenizers["hf"].encode("so unhappy")
    assert (pieces.words, pieces.starts, pieces.ends) == ([0, 1, 1], [0, 3, 5], [2, 5, 10])


def test_pieces_that_hold_a_blank_do_not_cover_it(tmp_path):
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    names = ["<s>", "</s>", "<pad>"]
    backend = Tokenizer.from_str(backend.to_str())
    from tokenizers import trainers

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=names, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(["so sad so sad"], trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    ).save_pretrained(tmp_path)
    tokenizer = DialogueTokenizer.from_hf(tmp_path)
    text = "so sad"
    pieces = tokenizer.encode(text)
    assert "".join(text[s:e] for s, e in zip(pieces.starts, pieces.ends, strict=True)) == "sosad"
    assert (tokenizer.cls_id, tokenizer.sep_id) == (0, 1)  # no CLS there: BOS and EOS serve


@pytest.mark.parametrize("kind", ["word", "bpe", "hf"])
def test_special_pieces_cannot_be_typed(tokenizers, kind):
    tokenizer = tokenizers[kind]
    specials = {tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.bos_id, tokenizer.eos_id}
    assert not specials & set(tokenizer.encode("so [SEP] [PAD] [CLS] sad").ids)


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_special_pieces_cannot_be_typed_where_case_is_kept(kind):
    train = {"word": DialogueTokenizer.train_words, "bpe": DialogueTokenizer.train_bpe}[kind]
    tokenizer = train(["a [SEP] b"], style="rashkin")
    assert tokenizer.sep_id not in tokenizer.encode("a [SEP] b").ids


@pytest.mark.parametrize("kind", ["word", "bpe", "hf"])
def test_a_batch_equals_its_texts_one_by_one(tokenizers, kind):
    tokenizer = tokenizers[kind]
    texts = [*TEXTS, "", "something new", TEXTS[0]]
    rows = tokenizer.encode_batch(texts)
    assert rows == [tokenizer.encode(text) for text in texts]
    ids = [row.ids for row in rows]
    assert tokenizer.decode_batch(ids) == [tokenizer.decode(row) for row in ids]
    assert tokenizer.encode_batch([]) == tokenizer.decode_batch([]) == []


def test_remembered_pieces_are_the_same():
    plain, remembering = (DialogueTokenizer.train_words(TEXTS) for _ in range(2))
    remembering.remember()
    for _ in range(2):
        assert remembering.encode_batch(TEXTS) == plain.encode_batch(TEXTS)


def test_decoding_drops_specials_and_stops_at_the_end(tokenizers):
    import torch

    bpe = tokenizers["bpe"]
    ids = [
        bpe.bos_id,
        *bpe.encode("I don't know.").ids,
        bpe.eos_id,
        *bpe.encode("more").ids,
        bpe.pad_id,
        -100,
    ]
    assert bpe.decode(ids) == "I do not know."
    assert bpe.decode(torch.tensor(ids), raw=True) == "i do not know ."
    assert bpe.decode([bpe.eos_id]) == bpe.decode([]) == ""


def test_an_encoders_pieces_decode_to_family_words_for_metrics(tokenizers):
    hf = tokenizers["hf"]
    ids = hf.encode("i don't know , unhappy").ids
    assert hf.decode(ids, raw=True).startswith("i do not know")


def test_known_words(tokenizers):
    assert tokenizers["word"].known_word_share("i lost xyz .") == 0.75
    assert tokenizers["word"].known_word_share("") == 1.0
    bpe = DialogueTokenizer.train_bpe(TEXTS * 3, size=600)
    assert bpe.known_word_share(TEXTS[0]) > 0.9
    assert bpe.known_word_share("你好 👍 жж") == 0.0


def test_training_twice_gives_the_same_pieces(tmp_path):
    for name in ("a", "b"):
        DialogueTokenizer.train_bpe(TEXTS, size=320).save_pretrained(tmp_path / name)
    first, second = ((tmp_path / name / "tokenizer.json").read_bytes() for name in ("a", "b"))
    assert first == second


@pytest.mark.parametrize("kind", ["word", "bpe", "hf"])
def test_a_saved_tokeniser_is_the_same_in_a_fresh_process(tokenizers, kind, tmp_path):
    tokenizer = tokenizers[kind]
    tokenizer.save_pretrained(tmp_path)
    code = (
        "import sys, json; from empatheia_research.text.tokenizer import DialogueTokenizer as D;"
        "t = D.from_pretrained(sys.argv[1]); p = t.encode(sys.argv[2]);"
        "print(json.dumps([t.kind, t.style, len(t), p.ids, p.starts, p.words, t.decode(p.ids)]))"
    )
    ran = fresh.run(["-c", code, str(tmp_path), TEXTS[0]])
    pieces = tokenizer.encode(TEXTS[0])
    expected = [
        kind,
        "family",
        len(tokenizer),
        pieces.ids,
        pieces.starts,
        pieces.words,
        tokenizer.decode(pieces.ids),
    ]
    assert json.loads(ran.stdout) == expected, ran.stderr


def test_a_saved_tokeniser_keeps_its_roles(tmp_path):
    DialogueTokenizer.train_bpe(TEXTS, size=300, roles=True).save_pretrained(tmp_path)
    assert DialogueTokenizer.from_pretrained(tmp_path).sys_id == 7


@pytest.mark.parametrize("name", [META, "tokenizer.json"])
def test_a_missing_file_is_told(tokenizers, tmp_path, name):
    tokenizers["word"].save_pretrained(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(CheckpointError, match=f"no {name} in .*copy the whole folder again"):
        DialogueTokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", [META, "tokenizer.json"])
@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1}'])
def test_a_truncated_or_foreign_file_is_told(tokenizers, tmp_path, name, content):
    tokenizers["word"].save_pretrained(tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(CheckpointError, match=r"cannot be read .*truncated or foreign: copy the folder again"):
        DialogueTokenizer.from_pretrained(tmp_path)


def test_files_of_two_models_are_told_apart(tokenizers, tmp_path):
    tokenizers["word"].save_pretrained(tmp_path)
    meta = json.loads((tmp_path / META).read_text())
    (tmp_path / META).write_text(json.dumps({**meta, "size": 999}))
    with pytest.raises(CheckpointError, match=r"has \d+ pieces, its description says 999"):
        DialogueTokenizer.from_pretrained(tmp_path)


def test_a_newer_format_is_told(tokenizers, tmp_path):
    tokenizers["word"].save_pretrained(tmp_path)
    meta = json.loads((tmp_path / META).read_text())
    (tmp_path / META).write_text(json.dumps({**meta, "format": 3}))
    with pytest.raises(CheckpointError, match="format 3, this version reads up to 2; install a newer"):
        DialogueTokenizer.from_pretrained(tmp_path)


def test_a_folder_without_an_encoder_is_told(tmp_path):
    with pytest.raises(CheckpointError, match="no folder"):
        DialogueTokenizer.from_hf(tmp_path / "nothing")
    with pytest.raises(CheckpointError, match="no fast tokeniser"):
        DialogueTokenizer.from_hf(tmp_path)
    backend = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=backend).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="lacks a CLS, SEP or PAD piece"):
        DialogueTokenizer.from_hf(tmp_path)


def test_impossible_sizes_and_kinds_are_told():
    with pytest.raises(ConfigError, match="max_size is 6; accepted: more than the 6 special pieces"):
        DialogueTokenizer.train_words(["a"], max_size=6)
    with pytest.raises(ConfigError, match="size is 100; accepted: at least 262"):
        DialogueTokenizer.train_bpe(["a"], size=100)
    with pytest.raises(ConfigError, match="'char'; accepted: word, bpe, hf"):
        check_kind("char")
