"""Diverse beam search against a slow one, and against transformers' own beams where they must agree."""

import math

import pytest
import torch

from empatheia.errors import DecodingError
from empatheia_research.decoding.diverse_beams import diverse_beams
from empatheia_research.responders.rashkin_generation import RashkinGeneration, RashkinGenerationConfig

BOS, EOS = 4, 5
N_NEW = 7


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    sizes = {"width": 24, "n_encoder_layers": 1, "n_decoder_layers": 2, "n_heads": 2, "ffn_width": 48}
    made = RashkinGeneration(RashkinGenerationConfig(vocab_size=30, **sizes)).eval()
    with torch.no_grad():
        made.encoder.words.weight.mul_(2.5)  # peaked enough that beams differ, and some end early
        made.encoder.words.weight[EOS] *= 1.6
    return made


@pytest.fixture(scope="module")
def batch():
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(6, 30, (4, 7), generator=generator)
    mask = torch.ones(4, 7, dtype=torch.bool)
    mask[0, 4:] = False
    return {"input_ids": ids * mask, "attention_mask": mask}


def slow(model, inputs, n_beams, n_groups, strength):
    """One context, lists and loops; every hypothesis with its score, best first."""
    width = n_beams // n_groups
    groups = [{"beams": [(0.0, [BOS])], "done": [], "open": True} for _ in range(n_groups)]
    for step in range(1, N_NEW + 1):
        uses = {}
        for group in groups:
            if not group["open"]:
                continue
            options = []
            for score, ids in group["beams"]:
                with torch.no_grad():
                    logits = model(**inputs, decoder_input_ids=torch.tensor([ids])).logits[0, -1]
                for piece, log_p in enumerate(logits.log_softmax(-1).tolist()):
                    options.append((score + log_p - strength * uses.get(piece, 0), [*ids, piece]))
            options.sort(key=lambda option: -option[0])
            options = options[: 2 * width]
            for score, ids in options[:width]:
                if ids[-1] == EOS or step == N_NEW:
                    group["done"].append((score / step, ids))
            group["done"] = sorted(group["done"], key=lambda pair: -pair[0])[:width]
            group["beams"] = [option for option in options if option[1][-1] != EOS][:width]
            for _, ids in group["beams"]:
                uses[ids[-1]] = uses.get(ids[-1], 0) + 1
            worst = group["done"][-1][0] if len(group["done"]) == width else -math.inf
            group["open"] = group["beams"][0][0] / step > worst
    return sorted((pair for group in groups for pair in group["done"]), key=lambda pair: -pair[0])


def trimmed(row):
    ids = row.tolist()
    return ids[: ids.index(EOS) + 1] if EOS in ids else ids


@pytest.mark.parametrize(("n_beams", "n_groups", "strength"), [(6, 3, 0.5), (4, 4, 2.0), (4, 2, 0.0), (3, 1, 1.0)])
def test_against_a_slow_search(model, batch, n_beams, n_groups, strength):
    found = model.generate(
        **batch, num_beams=n_beams, num_return_sequences=n_beams, max_new_tokens=N_NEW, return_dict_in_generate=True,
        custom_generate=diverse_beams(n_groups, strength),
    )  # fmt: skip
    for i in range(4):
        alone = {name: value[i : i + 1] for name, value in batch.items()}
        expected = slow(model, alone, n_beams, n_groups, strength)
        rows = found.sequences[i * n_beams : (i + 1) * n_beams]
        scores = found.sequences_scores[i * n_beams : (i + 1) * n_beams]
        n = len(expected)
        torch.testing.assert_close(scores[:n], torch.tensor([score for score, _ in expected]), atol=1e-4, rtol=1e-4)
        assert trimmed(rows[0]) == expected[0][1]
        assert sorted(map(trimmed, rows[:n])) == sorted(ids for _, ids in expected)


SETTINGS = [
    {}, {"length_penalty": 0.0}, {"length_penalty": 2.0, "early_stopping": "never"}, {"early_stopping": True},
    {"use_cache": False}, {"num_return_sequences": 4}, {"no_repeat_ngram_size": 2},
]  # fmt: skip


@pytest.mark.parametrize("settings", SETTINGS)
def test_check_q_one_group_is_ordinary_beam_search(model, batch, settings):
    """Check Q: with one group it equals transformers' beams, whatever the strength."""
    plain = model.generate(**batch, num_beams=4, max_new_tokens=N_NEW, **settings)
    own = model.generate(**batch, num_beams=4, max_new_tokens=N_NEW, **settings, custom_generate=diverse_beams(1, 0.7))
    assert own.tolist() == plain.tolist()


@pytest.mark.parametrize("settings", SETTINGS[:5])
def test_check_q_strength_zero_is_ordinary_beam_search_in_every_group(model, batch, settings):
    """Check Q: without a penalty each group is ordinary beam search with the group's beams."""
    plain = model.generate(**batch, num_beams=3, max_new_tokens=N_NEW, **settings)
    own = model.generate(**batch, num_beams=6, max_new_tokens=N_NEW, **settings, custom_generate=diverse_beams(2, 0.0))
    assert own.tolist() == plain.tolist()


def test_a_batch_answers_as_its_rows_alone(model, batch):
    search = {"num_beams": 6, "max_new_tokens": N_NEW, "custom_generate": diverse_beams(3, 1.0)}
    together = model.generate(**batch, **search)
    for i in range(4):
        alone = model.generate(**{name: value[i : i + 1] for name, value in batch.items()}, **search)
        assert trimmed(alone[0]) == trimmed(together[i])


def test_a_large_penalty_keeps_groups_apart(model, batch):
    found = model.generate(
        **batch, num_beams=3, num_return_sequences=3, max_new_tokens=N_NEW, custom_generate=diverse_beams(3, 1e4)
    )
    for rows in found.view(4, 3, -1):
        firsts = [row[1].item() for row in rows]
        assert len(set(firsts)) == 3


def test_bad_numbers(model, batch):
    with pytest.raises(DecodingError, match="at least 1, and 0 or more"):
        diverse_beams(0, 0.5)
    with pytest.raises(DecodingError, match="a multiple of the groups"):
        model.generate(**batch, num_beams=4, max_new_tokens=3, custom_generate=diverse_beams(3, 0.5))
