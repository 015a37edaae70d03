"""``empatheia doctor --licences``; and the report of ``make audit``."""

from __future__ import annotations

import importlib.util
import json
from email.message import Message
from pathlib import Path
from types import SimpleNamespace

import pytest

from empatheia.cli.licences import licence_of, licences


def test_every_package_needed_is_listed(cli):
    done = cli("doctor", "--licences", "--json")
    rows = {row["name"]: row for row in json.loads(done.out)}
    assert done.code == 0 and {"numpy", "huggingface-hub", "pydantic-core"} <= set(rows)
    assert rows["onnxruntime"]["licence"]
    assert ("torch" in rows) == (importlib.util.find_spec("torch") is not None)
    assert "empatheia" not in rows
    shown = cli("doctor", "--licences").out.splitlines()
    assert len(shown) == len(rows) and all(line.split()[0] in rows for line in shown)


def test_nothing_that_we_need_forbids_what_our_licence_allows():
    strong = [row for row in licences() if "GPL" in row["licence"] and "LGPL" not in row["licence"]]
    assert strong == []


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ({"License-Expression": "MIT", "License": "a"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: BSD License", "License": "x"}, "BSD License"),
        ({"Classifier": "License :: OSI Approved", "License": "Apache 2.0"}, "Apache 2.0"),
        ({"License": "Permission is hereby granted " * 20}, "not told; see its home page"),
        ({}, "not told; see its home page"),
    ],
)
def test_where_a_licence_is_told(fields, licence):
    said = Message()
    for name, value in fields.items():
        said[name] = value
    assert licence_of(SimpleNamespace(metadata=said)) == licence


def test_the_report_of_an_audit():
    path = Path(__file__).resolve().parents[1] / "project" / "audit.py"
    spec = importlib.util.spec_from_file_location("audit", path)
    assert spec is not None and spec.loader is not None
    audit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(audit)
    sound = {"name": "a", "version": "1", "vulns": []}
    faulty = {"name": "b", "version": "2", "vulns": [{"id": "X-1", "fix_versions": ["3"]}]}
    unknown = {"name": "c", "skip_reason": "not found"}
    assert audit.judged([sound]) == (0, ["1 packages audited, 0 known faults"])
    assert audit.judged([sound, faulty, unknown]) == (
        1,
        ["b 2: X-1, mended in 3", "2 packages audited, 1 known faults", "not audited: c"],
    )
    assert audit.judged([unknown]) == (0, ["skipped: no advisories can be asked for from here"])
