"""transformers' AutoTokenizer gives a responder's own pieces, or says in words that it cannot."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer, DataCollatorForSeq2Seq

import fresh
from empatheia.resources.catalogue import bundled_root
from empatheia_research.text.auto_tokenizer import EmpatheiaTokenizer
from empatheia_research.text.tokenizer import DialogueTokenizer

DEFAULT = bundled_root() / "gao2021-small"
TEXTS = (
    "I lost my job and I don't know what to do.",
    "Oh no, I am so sorry! That's hard.",
    'He said "no way" and left: [SEP] is what he wrote [PAD]',
    "",
    "I cannot; \ud83d broken 👍 ÄÖ",
)
KINDS = {
    "word": DialogueTokenizer.train_words(TEXTS[:2]),
    "rashkin": DialogueTokenizer.train_words(TEXTS[:2], style="rashkin", roles=True),
    "bpe": DialogueTokenizer.train_bpe(TEXTS[:2], size=320),
}
AUTO = {kind: EmpatheiaTokenizer(own) for kind, own in KINDS.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_folder_gives_our_pieces(kind, tmp_path):
    own = KINDS[kind]
    own.save_pretrained(tmp_path / "first")
    AutoTokenizer.from_pretrained(tmp_path / "first").save_pretrained(tmp_path / "second")
    for name in ("first", "second"):
        loaded = AutoTokenizer.from_pretrained(tmp_path / name)
        expected = [own.encode(text).ids for text in TEXTS]
        assert loaded(list(TEXTS))["input_ids"] == expected
        assert [loaded(text)["input_ids"] for text in TEXTS] == expected
        assert [loaded.encode(text) for text in TEXTS] == expected
        assert loaded(TEXTS[0], TEXTS[1])["input_ids"] == expected[0] + expected[1]
        assert len(loaded) == len(own)
        assert (loaded.pad_token_id, loaded.eos_token_id, loaded.bos_token_id) == (own.pad_id, own.eos_id, own.bos_id)
        said = [*own.encode(TEXTS[1]).ids, own.eos_id, own.pad_id]
        assert loaded.decode(said, skip_special_tokens=True) == own.decode(said)
        assert loaded.batch_decode(torch.tensor([said]), skip_special_tokens=True) == [own.decode(said)]


@given(st.text(), st.sampled_from(sorted(KINDS)))
def test_any_text_gives_our_pieces(text, kind):
    assert AUTO[kind](text)["input_ids"] == KINDS[kind].encode(text).ids


@pytest.mark.parametrize("loader", ["AutoTokenizer", "PreTrainedTokenizerFast"])
def test_without_our_rules_the_file_is_refused_in_words(loader, tmp_path):
    KINDS["bpe"].save_pretrained(tmp_path)
    code = f"import sys, transformers; transformers.{loader}.from_pretrained(sys.argv[1])"
    ran = fresh.run(["-c", code, str(tmp_path)])
    assert ran.returncode == 1
    assert "import empatheia_research.text.auto_tokenizer first" in ran.stderr


def test_the_bundled_model_is_one_of_them():
    own = DialogueTokenizer.from_pretrained(DEFAULT)
    text = "I lost my grandmother last week."
    assert AutoTokenizer.from_pretrained(DEFAULT)(text)["input_ids"] == own.encode(text).ids


def test_batches_are_padded_for_training():
    own = AUTO["bpe"]
    rows = [{**own(text), "labels": own(text)["input_ids"]} for text in TEXTS[:2]]
    batch = DataCollatorForSeq2Seq(own)(rows)
    assert batch["input_ids"].shape == batch["attention_mask"].shape == batch["labels"].shape
    lengths = batch["attention_mask"].sum(-1).tolist()
    assert lengths == [len(row["input_ids"]) for row in rows]


def test_what_would_be_wrong_is_refused():
    with pytest.raises(NotImplementedError, match="give whole texts"):
        AUTO["bpe"](["I", "am"], is_split_into_words=True)
    with pytest.raises(NotImplementedError, match=r"DialogueTokenizer\.encode"):
        AUTO["bpe"]("I am", return_offsets_mapping=True)
    with pytest.raises(NotImplementedError, match="takes no new pieces"):
        AUTO["bpe"].add_tokens(["[NEW]"])
