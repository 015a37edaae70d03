"""Two processes learn what one process learns with twice the batch; the runner works under torchrun."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_training as bench
import torch
from safetensors.torch import load_file

STAGE = """
import sys
from pathlib import Path
import tiny_training as bench
folder = Path(sys.argv[1])
model, result, _ = bench.train(folder, batch_examples=4, max_grad_norm=1.0, accumulate=2, save_seconds=0.0, select="words")
if int(__import__("os").environ["RANK"]) == 0:
    model.save_pretrained(folder / "model")
"""
RUNS = """
import sys
from pathlib import Path
from empatheia.config import Recipe
from empatheia.training.runner import run_all
recipe = Recipe.model_validate_json(Path(sys.argv[1], "recipe.json").read_text())
for budget in (0.0, None):
    statuses = run_all([recipe], Path(sys.argv[1]), budget_minutes=budget, show_progress=False)
    print("STATE", statuses[0].state, flush=True)
"""


def torchrun(folder: Path, code: str) -> str:
    """Runs code in two processes on this machine; returns what they print."""
    script = folder / "script.py"
    script.write_text(code, encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", str(port)]
    paths = [str(Path(__file__).parent), *sys.path]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, *command, str(script), str(folder)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
def test_two_processes_equal_one_with_twice_the_batch(tmp_path):
    two, one = tmp_path / "two", tmp_path / "one"
    two.mkdir()
    torchrun(two, STAGE)
    model, result, values = bench.train(one, batch_examples=8, max_grad_norm=1.0, accumulate=2, select="words")
    assert [step for step, _ in bench.curve(two)] == [step for step, _ in values] and len(values) == result.steps
    for name in ("loss", "loss_words", "grad_norm", "eval_words"):
        left, right = bench.curve(two, name), bench.curve(one, name)
        assert [v for _, v in left] == pytest.approx([v for _, v in right], abs=3e-5, rel=1e-4), name
    weights = load_file(two / "model" / "model.safetensors")
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(weights[name], parameter.detach(), atol=2e-4, rtol=2e-3, msg=name)


@pytest.mark.slow
def test_the_runner_under_torchrun(tmp_path):
    (tmp_path / "recipe.json").write_text(bench.tiny_recipe().model_dump_json(), encoding="utf-8")
    said = torchrun(tmp_path, RUNS)
    assert sorted(said.split("\n")) == ["", *["STATE finished"] * 2, *["STATE not started"] * 2]
    folder = tmp_path / "tiny" / "smoke-seed7"
    record = json.loads((folder / "metrics.json").read_text())
    assert set(record["stages"]) == {"reasoner", "joint"} and record["metrics"]
    assert (folder / "checkpoint" / "model.safetensors").is_file()
