"""Offsets of the pages are those of Python: the pages' own module in node, beside Python's slices."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from empatheia.serve.pages import SHARED
from empatheia_people.studies.serving import STATIC

TEXTS = json.loads((Path(__file__).parents[1] / "data" / "reports" / "offsets.json").read_text(encoding="utf-8"))
SCRIPT = """
import { readFileSync } from "node:fs";
const { cut, wordsOf } = await import(process.argv[1]);
const told = JSON.parse(readFileSync(0)).map(({ text, spans }) => ({ words: wordsOf(text), parts: cut(text, spans) }));
console.log(JSON.stringify(told));
"""


def test_words_and_parts_of_every_kind_of_text_have_pythons_offsets():
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    words = [[(found.start(), found.end()) for found in re.finditer(r"\S+", text)] for text in TEXTS]
    asked = [
        {"text": text, "spans": [{"start": start, "end": end} for start, end in own[1:]]}
        for text, own in zip(TEXTS, words, strict=True)
    ]
    place = (SHARED[0] / "points.js").as_uri()
    command = ["node", "--input-type=module", "-e", SCRIPT, place]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True)
    for text, own, told in zip(TEXTS, words, json.loads(done.stdout), strict=True):
        assert [(word["start"], word["end"]) for word in told["words"]] == own
        assert [word["text"] for word in told["words"]] == [text[start:end] for start, end in own]
        assert "".join(part["text"] for part in told["parts"]) == text
        marked = [part["text"] for part in told["parts"] if part["span"]]
        assert marked == [text[start:end] for start, end in own[1:]]


def test_no_page_counts_offsets_by_itself():
    """The place of a match counts UTF-16 units; only the shared module turns it into an offset."""
    for folder in (SHARED[0], STATIC):
        for path in folder.glob("*.js"):
            if path.name != "points.js":
                assert not re.search(r"\bmatchAll\(|\.search\(/\\S|\bcodePointAt\(", path.read_text()), path.name
