import pytest
import torch
from transformers import BertConfig

from empatheia_research.layers.aligned import ALIGNMENT, AlignedModel
from empatheia_research.understanding.labels.utterance_classifier import UtteranceClassifier, UtteranceClassifierConfig


@pytest.fixture
def model():
    tiny = BertConfig(vocab_size=31, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    return UtteranceClassifier(UtteranceClassifierConfig(encoder_config=tiny, labels=["sad", "proud", "afraid"])).eval()


@pytest.mark.parametrize("with_info", [False, True])
def test_loaded_weights_lie_as_built_ones_do(tmp_path, model, with_info):
    assert isinstance(model, AlignedModel)
    model.save_pretrained(tmp_path)
    loaded = UtteranceClassifier.from_pretrained(tmp_path, output_loading_info=with_info)
    loaded = loaded[0] if with_info else loaded
    assert {weight.data_ptr() % ALIGNMENT for weight in loaded.parameters()} == {0}
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), loaded.parameters(), strict=True))


def test_a_loaded_model_answers_to_the_last_bit(tmp_path, model):
    model.save_pretrained(tmp_path)
    loaded = UtteranceClassifier.from_pretrained(tmp_path).eval()
    ids = torch.arange(1, 29).reshape(4, 7)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    assert torch.equal(model(**inputs).logits, loaded(**inputs).logits)
