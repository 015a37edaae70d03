"""What transformers promises of a model holds for every responder: caches, resizing, half precision, Auto classes."""

import pytest
import torch
from contract import all_cases
from transformers import EncoderDecoderCache, StaticCache

CASES = all_cases()


def generated(name, **settings):
    """Ids that a tiny model of a case says; draws of systems that draw are the same in every call."""
    case = CASES[name]
    model = case.build().eval()
    torch.manual_seed(1)
    return model.generate(**case.inputs(case.batch()), max_new_tokens=9, do_sample=False, **settings).tolist()


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_a_static_cache_gives_the_same_words(name, beams):
    plain = generated(name, num_beams=beams)
    assert generated(name, num_beams=beams, cache_implementation="static", disable_compile=True) == plain


@pytest.mark.parametrize("name", ["soft", "rashkin", "moel", "kemp"])
def test_a_static_cache_longer_than_the_memory_gives_the_same_scores(name):
    case = CASES[name]
    model = case.build_steady()
    known = case.inputs(case.batch())
    known["attention_mask"] = None
    ids = torch.tensor([[4, 7, 8, 9]] * 3)
    with torch.no_grad():
        encoding = model.encode(**known)
        cache = EncoderDecoderCache(StaticCache(model.config, 16), StaticCache(model.config, 40))
        rows = [
            model(encoder_outputs=encoding, decoder_input_ids=part, past_key_values=cache, use_cache=True).logits
            for part in (ids[:, :1], ids[:, 1:3], ids[:, 3:])
        ]
        plain = model(encoder_outputs=encoding, decoder_input_ids=ids).logits
    torch.testing.assert_close(torch.cat(rows, 1), plain, atol=1e-5, rtol=1e-4)
