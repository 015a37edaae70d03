"""Two processes learn what one process learns with twice the batch; the runner works under torchrun's agent."""

import json
import os
import socket
import sys
from pathlib import Path

import pytest
import tiny_adversarial as adversarial
import tiny_training as bench
import torch
from safetensors.torch import load_file

import fresh
from empatheia_research.responders import empdg

SCRIPT = """
import os, sys
from pathlib import Path
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
import tiny_adversarial as adversarial
import tiny_training as bench
import torch
from empatheia_research.training.runner import run_all
folder = Path(sys.argv[1])

def one_of_two():
    fields = {"batch_examples": 4, "max_grad_norm": 1.0, "accumulate": 2, "select": "words"}
    model, _, _ = bench.train(folder, save_seconds=0.0, **fields)
    if os.environ["RANK"] == "0":
        model.save_pretrained(folder / "model")
    chancy, _, _ = adversarial.train(folder / "chancy", batch_examples=4, accumulate=2, same_batch=True)
    torch.save(chancy.state_dict(), folder / f"chancy{os.environ['RANK']}.pt")
    adversarial.without_chance()
    model, _, _ = adversarial.train(folder / "adversarial", batch_examples=4, accumulate=2, same_batch=True)
    if os.environ["RANK"] == "0":
        model.save_pretrained(folder / "adversarial" / "model")
    for budget in (0.0, None):
        (status,) = run_all([bench.tiny_recipe()], folder, budget_minutes=budget, show_progress=False)
        os.write(1, f"STATE {status.state}\\n".encode())  # in one piece: two processes share the pipe

# what torchrun asks for, but that its processes are forked
place = {"rdzv_backend": "static", "rdzv_endpoint": f"127.0.0.1:{sys.argv[2]}", "rdzv_configs": {"rank": 0}}
agent = LaunchConfig(1, 1, 2, run_id="two", max_restarts=0, monitor_interval=0.1, start_method="fork", **place)
elastic_launch(agent, one_of_two)()
"""


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    """Folder of what two processes made, and what they printed; one start for all tests, it takes longest."""
    folder = tmp_path_factory.mktemp("two")
    return folder, started(folder, SCRIPT)


def started(folder: Path, code: str) -> str:
    """Runs code that starts two processes on this machine; returns what they print."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    paths = [str(Path(__file__).parent), *sys.path]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = fresh.run(["-c", code, str(folder), str(port)], env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
def test_two_processes_equal_one_with_twice_the_batch(two_processes, tmp_path):
    two, _ = two_processes
    model, result, values = bench.train(tmp_path, batch_examples=8, max_grad_norm=1.0, accumulate=2, select="words")
    assert [step for step, _ in bench.curve(two)] == [step for step, _ in values] and len(values) == result.steps
    for name in ("loss", "loss_words", "grad_norm", "eval_words"):
        left, right = bench.curve(two, name), bench.curve(tmp_path, name)
        assert [v for _, v in left] == pytest.approx([v for _, v in right], abs=3e-5, rel=1e-4), name
    weights = load_file(two / "model" / "model.safetensors")
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(weights[name], parameter.detach(), atol=2e-4, rtol=2e-3, msg=name)


@pytest.mark.slow
def test_two_processes_of_an_adversarial_system_equal_one(two_processes, tmp_path, monkeypatch):
    """Both groups by turns, without chance: each loss by name, and the weights."""
    two = two_processes[0] / "adversarial"
    monkeypatch.setattr(empdg, "gumbel_noise", empdg.gumbel_noise)
    monkeypatch.setattr(empdg, "mixing_shares", empdg.mixing_shares)
    adversarial.without_chance()
    model, result, _ = adversarial.train(tmp_path, batch_examples=8, accumulate=2, same_batch=True)
    assert result.steps > 6
    for name in (*adversarial.CRITICS, *adversarial.GENERATOR):
        left, right = bench.curve(two, f"loss_{name}"), bench.curve(tmp_path, f"loss_{name}")
        assert left and [v for _, v in left] == pytest.approx([v for _, v in right], abs=2e-4, rel=1e-3), name
    weights = load_file(two / "model" / "model.safetensors")
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(weights[name], parameter.detach(), atol=1e-3, rtol=1e-2, msg=name)


@pytest.mark.slow
def test_processes_that_draw_for_themselves_learn_one_model(two_processes):
    folder = two_processes[0]
    first, second = (torch.load(folder / f"chancy{rank}.pt") for rank in (0, 1))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.slow
def test_the_runner_under_torchrun(two_processes):
    two, said = two_processes
    assert sorted(said.split("\n")) == ["", *["STATE finished"] * 2, *["STATE not started"] * 2]
    folder = two / "tiny" / "smoke-seed7"
    record = json.loads((folder / "metrics.json").read_text())
    assert set(record["stages"]) == {"reasoner", "joint"} and record["metrics"]
    assert (folder / "checkpoint" / "model.safetensors").is_file()
