"""Low-rank updates: nothing at the start, one map when merged, and a base that never learns."""

import torch
from torch import nn

from empatheia_research.layers.low_rank import LowRankLinear, add_low_rank, merge


def make() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.ModuleDict({"inner": nn.Linear(5, 4)})["inner"])


def test_at_the_start_nothing_changes():
    model, x = make(), torch.randn(3, 6)
    before = model(x)
    assert add_low_rank(model, 2, 4.0) == 2
    torch.testing.assert_close(model(x), before, rtol=0, atol=0)


def test_the_update_is_the_product_and_merging_keeps_the_answer():
    model, x = make(), torch.randn(3, 6)
    add_low_rank(model, 2, 4.0)
    first = model[0]
    assert isinstance(first, LowRankLinear)
    nn.init.normal_(first.up.weight)
    weight = first.base.weight + 2.0 * first.up.weight @ first.down.weight  # scale 4 over rank 2
    torch.testing.assert_close(first(x), x @ weight.T + first.base.bias)
    told = model(x)
    merge(model)
    assert not any(isinstance(part, LowRankLinear) for part in model.modules())
    torch.testing.assert_close(model(x), told)


def test_skipped_maps_get_none():
    model = nn.ModuleDict({"keep": nn.Linear(2, 2), "leave": nn.Linear(2, 2)})
    assert add_low_rank(model, 1, 1.0, skip=["leave"]) == 1
    assert isinstance(model["leave"], nn.Linear) and isinstance(model["keep"], LowRankLinear)
