"""The examples of docs/howto/serve.md, run against a server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "serve.md").read_text(encoding="utf-8")
WRITTEN = "http://127.0.0.1:8321"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def run(command: list[str], address: str, code: str) -> str:
    done = subprocess.run(
        command, input=code.replace(WRITTEN, address), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", blocks("python"))
def test_python_examples(address, code):
    assert len(run([sys.executable, "-"], address, code).split()) > 3


def test_curl_examples(address):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    asking = [code for code in blocks("sh") if code.startswith("curl")]
    assert asking
    for code in asking:
        assert json.loads(run(["sh"], address, code.replace("curl ", "curl -s ")))["choices"][0]["message"]["content"]


def test_javascript_examples(address):
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    for code in blocks("javascript"):
        assert "dog" in run(["node", "--input-type=module", "-"], address, code)


def test_commands_and_options_are_there():
    from empatheia.cli import load_command

    for line in re.findall(r"^(?:\w+=\S+ )*empatheia (serve|mcp)(.*)$", PAGE, re.MULTILINE):
        known = {option for one in load_command(line[0]).params for option in one.opts + one.secondary_opts}
        assert set(re.findall(r"--[a-z-]+", line[1])) <= known
    known = {
        option
        for name in ("serve", "mcp")
        for one in load_command(name).params
        for option in one.opts + one.secondary_opts
    }
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) <= known


def test_deployments_name_what_is_there():
    from empatheia.cli import load_command

    known = {option for one in load_command("serve").params for option in one.opts}
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    for place in re.findall(r"^COPY (?!--)(.+) \S+$", dockerfile, re.MULTILINE):
        assert all((ROOT / name).exists() for name in place.split())
    (entry,) = re.findall(r"^ENTRYPOINT (\[.*\])$", dockerfile, re.MULTILINE)
    assert json.loads(entry)[:2] == ["empatheia", "serve"]
    assert {part for part in json.loads(entry) if part.startswith("--")} <= known
    assert re.search(r"^USER (?!root)", dockerfile, re.MULTILINE) and "HEALTHCHECK" in dockerfile
    unit = (ROOT / "deploy" / "empatheia.service").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=\S+ serve (.*)$", unit, re.MULTILINE)
    assert set(re.findall(r"--[a-z-]+", command)) <= known
    assert "User=root" not in unit and "DynamicUser=yes" in unit
