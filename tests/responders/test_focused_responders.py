"""Focus on every published system: its caches, side inputs and heads follow the beams in every world."""

import pytest
import torch
from contract import all_cases

from empatheia_research.decoding.focus import focused_generate
from empatheia_research.decoding.given_replies import focused_score
from empatheia_research.decoding.worlds import Worlds

CASES = {name: case for name, case in all_cases().items() if not case.sees_padding}


@pytest.mark.parametrize("name", sorted(CASES))
def test_hypotheses_scored_anew_have_the_scores_of_the_search(name):
    case = CASES[name]
    model = case.build_steady()
    with torch.no_grad():
        for parameter in model.parameters():  # contexts must matter from the start
            if parameter.dim() > 1:
                parameter.mul_(3.0)
    worlds = Worlds(case.inputs(case.batch(6)), 3)
    options = {"num_beams": 4, "num_return_sequences": 3, "max_new_tokens": 7, "length_penalty": 0.0}
    found = focused_generate(model, worlds, 3.0, 0.9, **options, return_dict_in_generate=True, output_scores=True)
    eos = model.generation_config.eos_token_id
    for i, score in enumerate(found.sequences_scores):
        reply = found.sequences[i, 1:]
        ends = reply.eq(eos).nonzero().flatten()
        reply = reply[: int(ends[0]) + 1] if len(ends) else reply[:7]
        rows = slice(3 * (i // 3), 3 * (i // 3) + 3)
        own = Worlds({key: value[rows] for key, value in worlds.inputs.items()}, 3)
        scored = focused_score(model, own, reply[None], 3.0, 0.9)
        assert float(scored.log_s1.sum()) == pytest.approx(float(score), abs=2e-3)


@pytest.mark.parametrize("name", sorted(CASES))
def test_without_rationality_it_is_the_system_itself(name):
    case = CASES[name]
    model = case.build_steady()
    worlds = Worlds(case.inputs(case.batch(6)), 3)
    for way in ({"num_beams": 1}, {"num_beams": 3}):
        ours = focused_generate(model, worlds, 0.0, 0.9, **way, do_sample=False, max_new_tokens=6)
        assert torch.equal(ours, model.generate(**worlds.true(), **way, do_sample=False, max_new_tokens=6))
