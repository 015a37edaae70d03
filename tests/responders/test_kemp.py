"""KEMP: the specification's checks 24 to 28."""

import contract
import pytest
import torch

from empatheia_research.layers.graph import GraphAttention, context_graph
from empatheia_research.responders import RESPONDERS
from empatheia_research.responders.kemp import attention_loss

CASE = contract.all_cases()["kemp"]
REPO = contract.all_cases()["kemp repo"]


def test_equal_intensities_give_the_mean_state():
    """Check 25: without padding's states."""
    model = CASE.build().eval()
    batch = CASE.inputs(CASE.batch())
    batch["token_intensities"] = torch.full_like(batch["token_intensities"], 0.4)
    batch["concept_intensities"] = torch.full_like(batch["concept_intensities"], 0.4)
    with torch.no_grad():
        encoding = model.encode(**batch)
    kept = encoding.memory_mask.unsqueeze(-1)
    mean = (encoding.last_hidden_state * kept).sum(1) / kept.sum(1)
    torch.testing.assert_close(encoding.signal, mean)


def test_nodes_that_are_no_neighbours_have_no_weight():
    """Check 26; the released mask gives them the weight of a score of 0."""
    batch = CASE.batch()
    graph = context_graph(batch["attention_mask"], batch["concept_mask"], batch["concept_heads"])
    torch.manual_seed(0)
    tokens, nodes = torch.randn(3, 11, 8), torch.randn(3, 15, 8)
    weights = GraphAttention(8).weights(tokens, nodes, graph)
    assert weights[~graph].abs().max() == 0.0
    seen = graph.any(-1)
    torch.testing.assert_close(weights.sum(-1)[seen], torch.ones(int(seen.sum())))
    assert weights[~seen].abs().sum() == 0.0 and not seen[0, 6:].any()
    assert GraphAttention(8, masks=False).weights(tokens, nodes, graph)[~graph].min() > 0.0


def test_a_token_sees_the_one_before_cls_and_its_own_concepts():
    mask = torch.tensor([[True, True, True, True, False]])
    graph = context_graph(mask, torch.tensor([[True, True, True]]), torch.tensor([[-1, 2, 3]]))[0]
    assert graph.int().tolist() == [
        [0, 1, 1, 1, 0, 0, 1, 1],  # CLS: all tokens, all attached concepts, not SEP
        [1, 0, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 1, 0],
        [1, 0, 1, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, 0, 0, 0, 0],  # padding
    ]


def test_without_concepts_and_graph_layer_it_is_without_ece():
    """Check 26: the same weights, the graph layer taken out, no concepts: equal to the ablation."""
    full, ablated = CASE.build().eval(), contract.all_cases()["kemp w/o ECE"].build().eval()
    ablated.load_state_dict(full.state_dict(), strict=False)
    full.encoder.graph.forward = lambda tokens, nodes, graph: tokens
    batch = CASE.batch()
    batch["concept_mask"][:] = False
    batch["concept_heads"][:] = -1
    with torch.no_grad():
        one, other = full(**batch), ablated(**batch)
    torch.testing.assert_close(one.logits, other.logits, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(one.emotion_logits, other.emotion_logits, atol=1e-5, rtol=1e-4)


def test_attention_loss_is_zero_when_the_mean_attention_is_the_intensities():
    """Check 28; steps and places that do not count are not looked at."""
    target = torch.tensor([[0.5, 0.3, 0.2, 0.0]])
    weights = torch.tensor([[[0.9, 0.1, 0.0, 0.0], [0.1, 0.5, 0.4, 0.0], [0.0, 0.0, 0.0, 1.0]]])
    steps, places = torch.tensor([[True, True, False]]), torch.tensor([[True, True, True, False]])
    assert attention_loss(weights, steps, target, places).item() == pytest.approx(0.0, abs=1e-12)
    shifted = torch.tensor([[0.8, 0.0, 0.2, 0.0]])
    assert attention_loss(weights, steps, shifted, places).item() == pytest.approx(0.06, rel=1e-5)


def test_the_released_attention_loss_is_over_steps_and_places_of_padding_too():
    """Oracle: the library's mean squared error of the mean over all steps."""
    model, batch = REPO.build().eval(), REPO.batch()
    with torch.no_grad():
        encoding = model.encode(**REPO.inputs(batch))
        opened = model.decoder_inputs(model.shift_right(batch["labels"]), encoding, 0)
        looks = model.decode(opened, encoding, None, None)[..., model.config.width :]
        expected = torch.nn.functional.mse_loss(looks.mean(1), encoding.intensities)
        torch.testing.assert_close(model(**batch).losses["attention"], expected)
    assert not encoding.memory_mask.all() and batch["labels"].lt(0).any()


@pytest.mark.parametrize(("case", "is_repo"), [(CASE, False), (REPO, True)])
def test_the_first_token_follows_nobody_but_the_last_node_in_repo(case, is_repo):
    model, batch = case.build().eval(), case.inputs(case.batch())
    seen = []
    model.encoder.graph.forward = lambda tokens, nodes, graph: seen.append(graph) or tokens
    with torch.no_grad():
        model.encode(**batch)
    expected = context_graph(batch["attention_mask"], batch["concept_mask"], batch["concept_heads"])
    assert not expected[:, 0, -1].all()
    expected[:, 0, -1] |= is_repo
    assert torch.equal(seen[0], expected)


def test_the_attention_loss_reaches_the_decoder_and_is_counted():
    model = CASE.build().train()
    output = model(**CASE.batch())
    assert output.counts["attention"] == 3
    output.losses["attention"].backward()
    assert model.decoder.layers[-1].cross_attention.query.weight.grad.abs().sum() > 0


def test_without_edd_the_signal_stays_out_of_the_decoder():
    model = contract.all_cases()["kemp w/o EDD"].build()
    assert not any("fusion" in name for name, _ in model.named_parameters())
    assert "attention" not in model(**CASE.batch()).losses
    assert any("fusion" in name for name, _ in CASE.build().named_parameters())


def test_repo_lets_padding_take_part():
    model = REPO.build().eval()
    with torch.no_grad():
        encoding = model.encode(**REPO.inputs(REPO.batch()))
    assert encoding.intensities[~encoding.memory_mask].min() > 0.0
    paper = CASE.build().eval()
    with torch.no_grad():
        encoding = paper.encode(**CASE.inputs(CASE.batch()))
    assert encoding.intensities[~encoding.memory_mask].abs().sum() == 0.0
    torch.testing.assert_close(encoding.intensities.sum(-1), torch.ones(3))


def test_mk_edg_is_kemp():
    assert RESPONDERS.target("mk_edg") == RESPONDERS.target("kemp")
