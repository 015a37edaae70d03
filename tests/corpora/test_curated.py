"""What a curation made, read as a corpus."""

from __future__ import annotations

import pytest

from empatheia.errors import DataError, MissingResourceError
from empatheia_people.curation.run import Curation
from empatheia_people.curation.settings import load_settings
from empatheia_research.corpora import CORPORA, curated


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_model):
    out = tmp_path_factory.mktemp("curated") / "run"
    settings = [f"out={out}", "workers=0", f"label.classifier={tiny_model}"]
    Curation(load_settings("recipes/curation/sample.yaml", settings)).run()
    return out


def test_parts_and_splits(folder):
    splits = [CORPORA.get("curated")(split, root=folder) for split in ("train", "valid", "test")]
    keys = [dialogue.id for corpus in splits for dialogue in corpus]
    assert len(keys) == len(set(keys)) == 15
    train = splits[0]
    assert [d.id for d in train] == sorted(d.id for d in train) and train.name == "curated"
    assert all(len(train.turn_labels[d.id]) == len(d.turns) for d in train)
    assert train[0].turns[0].role == "speaker" and train[0].turns[1].role == "listener"
    parts = [len(curated.load(split, folder, parts=["edos"])) for split in ("train", "valid", "test")]
    assert 0 < sum(parts) < 15 and len(curated.load("train", folder, limit=1)) == 1


def test_what_is_not_there(folder, tmp_path, monkeypatch):
    with pytest.raises(MissingResourceError, match="has no part all; there is: edos, os"):
        curated.load("train", folder, parts=["all"])
    with pytest.raises(MissingResourceError, match="Make one: empatheia curate run"):
        curated.load("train", tmp_path)
    with pytest.raises(DataError, match="unknown split"):
        curated.load("all", folder)
    monkeypatch.setenv("EMPATHEIA_DATA", str(folder.parent))
    with pytest.raises(MissingResourceError, match="no curated corpus"):
        curated.load("train")
    file = next((folder / "corpus" / "os" / "train").glob("*.parquet"))
    whole = file.read_bytes()
    file.write_bytes(b"PAR1")
    with pytest.raises(DataError, match="not a complete Parquet file"):
        curated.load("train", folder)
    file.write_bytes(whole)
