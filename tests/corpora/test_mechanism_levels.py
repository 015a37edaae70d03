"""Files of mechanism levels, and how replies get them."""

import pytest

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.records.analysis import Mechanism
from empatheia.records.dialogue import Dialogue
from empatheia.taxonomy import MECHANISMS
from empatheia_research.corpora import sample
from empatheia_research.corpora.mechanism_levels import read_levels, write_levels
from empatheia_research.training.corpus_labels import mechanism_levels, shares_shown


class Component:
    name, mechanisms = "made up", MECHANISMS

    def annotate(self, dialogues, *, progress=None):
        one = (1.0, 0.0, 0.0)
        return [tuple(Mechanism(1, name, i, one) for i, name in enumerate(MECHANISMS)) for _ in dialogues]


def test_written_and_read(tmp_path):
    """Check 24 of IMAGINE's specification: level 0 is no, 1 and 2 are yes."""
    rows = mechanism_levels(Component(), [Dialogue.of("a", "b", id="d")])
    assert rows == [("d", 1, (0, 1, 2))]
    assert shares_shown(rows) == {"emotional reaction": 0.0, "interpretation": 100.0, "exploration": 100.0}
    for name in ("l.jsonl", "l.jsonl.gz"):
        assert write_levels(tmp_path / name, "made up", rows) == 1
        read = read_levels(tmp_path / name)
        assert (read.model, read.shown("d", 1), read.shown("d", 3)) == ("made up", (0, 1, 1), None)


def test_the_sample_has_one_for_each_reply():
    read = read_levels("sample")
    replies = {
        (d.id, i)
        for split in ("train", "valid")
        for d in sample.load(split).dialogues
        for i, turn in enumerate(d.turns)
        if turn.role == "listener"
    }
    assert set(read.levels) == replies


@pytest.mark.parametrize(
    "line", ['{"id": "d", "turn": 1, "levels": [0, 3, 1]}', '{"id": "d", "levels": [0, 0, 1]}', "x"]
)
def test_bad_files(tmp_path, line):
    path = tmp_path / "l.jsonl"
    path.write_text('{"model": "m"}\n' + line + "\n")
    with pytest.raises(DataError, match=r"l\.jsonl:2: not of the form"):
        read_levels(path)
    with pytest.raises(MissingResourceError, match="empatheia annotate"):
        read_levels(tmp_path / "none.jsonl")


def test_a_component_without_all_mechanisms():
    lacking = Component()
    lacking.mechanisms = MECHANISMS[:1]
    with pytest.raises(ConfigError, match="made up knows emotional reaction; needed"):
        mechanism_levels(lacking, [])
