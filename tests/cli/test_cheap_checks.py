"""What can be told without a model is told before torch, which takes seconds, is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

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
]


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> list[tuple[int, str, list[str]]]:
    """What each command ended with and wrote to stderr, and what had been imported by then: all in one process."""
    place = tmp_path_factory.mktemp("place")
    command = [sys.executable, "-c", CODE, json.dumps([words for words, _, _ in CASES])]
    env = {**os.environ, "EMPATHEIA_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=env, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and not list(place.iterdir()), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("number", "code", "told"), [(i, code, told) for i, (_, code, told) in enumerate(CASES)])
def test_before_torch(ended, number, code, told):
    found, errors, heavy = ended[number]
    assert told in errors and errors.count("\n") == 1, errors
    assert (found, heavy) == (code, [])
