"""What can be told without a model is told before torch, which takes seconds, is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from empatheia.cli import main
from empatheia_research.shipped import recipes_root

CODE = """
import contextlib, io, json, sys
from empatheia.cli import main
for line in json.loads(sys.argv[1]):
    code, told = None, io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            main(line)
    except SystemExit as ended:
        code = ended.code
    print(json.dumps([code, told.getvalue(), sorted({"torch", "transformers"} & set(sys.modules))]))
"""
CASES = [
    (("analyze", "no.csv"), 1, "no such file: no.csv"),
    (("analyze", "I won!", "--out", "no/x.csv"), 1, "no does not exist; create it first"),
    (("analyze", "I won!", "--model", "./no"), 3, "no model folder './no'"),
    (("respond", "I won!", "--listener", "no.yaml"), 2, "no file 'no.yaml'; accepted: the YAML file of a listener"),
    (("respond", "I won!", "--model", "no.yml"), 2, "no file 'no.yml'"),
    (("respond", "I won!", "--system", "moell"), 2, "no system 'moell'. Did you mean 'moel'?"),
    (("respond", "I won!", "--system", "moel"), 3, "no checkpoint of 'moel'"),
    (("chat", "--model", "./no"), 3, "no model folder './no'"),
    (("train", "gao2021/sofd"), 2, "Did you mean 'gao2021/soft'?"),
    (("train", "gao2021/soft", "--set", "modle.gate=1"), 2, "unknown key 'modle'"),
    (("evaluate", "./no"), 3, "no model folder './no'"),
    (("package", "no", "out"), 1, "there is no run folder no"),
    (("demo", "--model", "./no"), 3, "no model folder './no'"),
    (("serve", "--model", "./no"), 3, "no model folder './no'"),
    (("annotate", "no", "--out", "x.jsonl"), 3, "the model 'no' is not on this machine"),
    (("care", "check"), 1, "stdin holds no text"),
    (("care", "check", "no.txt"), 1, "'no.txt' is a file, and `empatheia care check` takes texts"),
    (("respond", "no.csv"), 1, "'no.csv' is a file, and `empatheia respond` takes texts"),
    (("respond", "I won!", "--resources", "no.yaml"), 2, "the file of resources no.yaml cannot be read"),
    (("respond", "I won!", "--country", "Utopia"), 2, "country is 'Utopia'"),
    (("respond", "I won!", "--system", "language_model", "--folder", "./no"), 3, "no model folder './no'"),
    (("respond", "I won!", "--system", "language_model", "--folder", "no.gguf"), 3, "no file 'no.gguf'"),
    (("chat", "--resources", "no.yaml"), 2, "the file of resources no.yaml cannot be read"),
    (("serve", "--model", "no"), 3, "the model 'no' is not on this machine"),
    (("serve", "--model", "moel"), 3, "no checkpoint of 'moel'"),
    (("serve", "--resources", "no.yaml"), 2, "the file of resources no.yaml cannot be read"),
    (("mcp", "--model", "./no"), 3, "no model folder './no'"),
    (("mcp", "--resources", "no.yaml"), 2, "the file of resources no.yaml cannot be read"),
    (("analyze", "I won!", "--with", "words", "--model-for", "words=./no"), 3, "no model folder './no'"),
    (("train", "gao2021/soft", "--size", "cpu"), 3, "corpus empathetic_dialogues; get it: empatheia data get"),
    (("train", "cem/cem", "--size", "cpu"), 3, "cache of inferences runs/knowledge/empathetic_dialogues.jsonl; get it"),
    (("train", "cem/cem", "cem/cem_repo", "--size", "cpu"), 3, "cem/cem_repo at size cpu needs what is not here: "),
    (
        ("train", "rashkin2018/retrieval_topicprepend1", "--size", "row"),
        3,
        "get it: empatheia train rashkin2018/topics",
    ),
    (
        ("train", "gao2021/soft", "--size", "cpu", "--set", "data.corpus=own"),
        3,
        "corpus own; get it: EMPATHEIA_DATA/own",
    ),
    (("train", "gao2021/soft", "--size", "smoke", "--device", "gpu"), 2, "unknown device 'gpu'; accepted: cpu, cuda"),
    (("train", "gao2021/soft", "--size", "smoke", "--track", "mlflow"), 2, "unknown tracker 'mlflow'"),
    (("train", "gao2021/soft", "--size", "smoke", "--track", "wandb"), 3, "--track wandb needs the package wandb"),
    (("reproduce", "gao2021/2", "--results", "no"), 1, "there is no folder no of run records"),
]


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> list[tuple[int, str, list[str]]]:
    """What each command ended with and wrote to stderr, and what had been imported by then: all in one process."""
    place = tmp_path_factory.mktemp("place")
    command = [sys.executable, "-c", CODE, json.dumps([words for words, _, _ in CASES])]
    env = {**os.environ, "EMPATHEIA_OFFLINE": "1", "EMPATHEIA_DATA": str(place), "EMPATHEIA_CACHE": str(place)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=env, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and not list(place.iterdir()), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("number", "code", "told"), [(i, code, told) for i, (_, code, told) in enumerate(CASES)])
def test_before_torch(ended, number, code, told):
    found, errors, heavy = ended[number]
    assert told in errors and errors.count("\n") == 1, errors
    assert (found, heavy) == (code, [])


def test_recipes_are_listed(capsys):
    """Outside a checkout nothing else says what they are called."""
    for words, n_least in ((["--list"], 100), (["--list", "moel"], 5), (["--list", "recipes/moel/"], 5)):
        with pytest.raises(SystemExit) as ended:
            main(["train", *words])
        out = capsys.readouterr().out
        names = [line.split()[0] for line in out.splitlines()]
        assert not ended.value.code and len(names) >= n_least and "studies/collect" not in names
        assert all((recipes_root() / f"{name}.yaml").is_file() for name in names)
        line = next(line for line in out.splitlines() if line.startswith("moel/moel "))
        assert line.split(maxsplit=1)[1].startswith("Lin et al. 2019 (EMNLP), MoEL: five of 32 listeners")


def test_a_recipe_or_a_folder_must_be_named(capsys):
    for words, told in (
        ([], "name a recipe, e.g. gao2021/soft"),
        (["--list", "moell"], "'moell'. Did you mean 'moel'?"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["train", *words])
        assert ended.value.code == 2 and told in capsys.readouterr().err
