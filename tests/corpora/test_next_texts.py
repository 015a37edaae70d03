"""The self-written texts in texts/: every line has the form its data card says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from empatheia.records.danger import ABOUT, KINDS, LEVELS
from empatheia.taxonomy import EMOTIONS, INTENTS, SIDES

TEXTS = Path(__file__).parents[2] / "texts"
FILES = sorted(TEXTS.glob("*/*/*.jsonl"))


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def runs_of_six(record: dict) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z0-9']+", " ".join(record["turns"]).lower())
    return {tuple(words[i : i + 6]) for i in range(len(words) - 5)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_each_line_has_the_form_of_its_family(path):
    ids = set()
    for record in records(path):
        turns = record["turns"]
        assert len(turns) % 2 == 1 and all(turn.strip() for turn in turns), record["id"]
        assert record["id"] not in ids and record["writer"], record["id"]
        ids.add(record["id"])
        if path.parts[-3] == "care":
            assert record["level"] in LEVELS and record["about"] in ABOUT, record["id"]
            assert set(record["kinds"]) <= set(KINDS) and record["form"] and record["lang"], record["id"]
            continue
        assert record["emotion"] in (*EMOTIONS, "none") and set(record["acceptable"]) <= {*EMOTIONS, "none"}
        is_none = record["emotion"] == "none"
        assert record["side"] == "neutral" if is_none else record["side"] in SIDES, record["id"]
        assert bool(record["causes"]) != is_none, record["id"]
        for turn, start, end in record["causes"]:
            assert turn % 2 == 0 and turns[turn][start:end].strip() == turns[turn][start:end] != "", record["id"]
        assert record["intent"] in INTENTS and record["reply"], record["id"]


@pytest.mark.parametrize("family", ["everyday", "care"])
def test_no_training_text_quotes_a_test_text(family):
    held_out = {
        run for path in TEXTS.glob(f"{family}/test/*") for record in records(path) for run in runs_of_six(record)
    }
    assert held_out
    for path in TEXTS.glob(f"{family}/train/*"):
        for record in records(path):
            assert held_out.isdisjoint(runs_of_six(record)), record["id"]
