"""What every provider shares: names, clean tails, merging; and the providers made of others."""

from __future__ import annotations

import pytest

from empatheia.errors import ConfigError
from empatheia.taxonomy import RELATION_GROUPS, RELATIONS
from empatheia_research.understanding.fingerprints import fingerprint_of
from empatheia_research.understanding.inferences.provider import (
    REASONS,
    Fallback,
    Filtered,
    NoInferences,
    Tails,
    asked_relations,
    clean_tails,
    merge,
)


class Table:
    """Answers from a dict; what is not in it is not covered."""

    source, stride = "a table", 7

    def __init__(self, name="table", **tails):
        self.name, self.said, self.asked = name, tails, []

    def relations(self):
        return tuple(name for name in RELATIONS if name in self.said)

    def fingerprint(self):
        return fingerprint_of(kind="table", said=self.said)

    def infer(self, heads, relations=RELATIONS, n=5, *, batch_size=32, progress=None):
        names = asked_relations(relations, n)
        self.asked.append((tuple(heads), names))
        return [
            {
                r: Tails(r, tuple(self.said[r][:n]), tuple(range(n, 0, -1))[: len(self.said[r])])
                if r in self.said
                else Tails(r, absent="relation not covered")
                for r in names
            }
            for _ in heads
        ]


def test_eleven_relations_in_four_groups():
    """Chen et al. (2022), section 3.3, in the order of the text."""
    assert {name: len(members) for name, members in RELATION_GROUPS.items()} == {
        "affect": 1,
        "behaviour": 5,
        "physical": 3,
        "events": 2,
    }
    assert list(RELATIONS) == [
        *("xReact", "xIntent", "xNeed", "xWant", "xEffect", "xAttr"),
        *("HasProperty", "CapableOf", "Desires", "Causes", "xReason"),
    ]


def test_names_of_relations():
    """Names are normalised (9.2, item 7); a group is its members; what is unknown is told."""
    assert asked_relations(["XReact", "xreact", "HasProPerty"]) == ("xReact", "HasProperty")
    assert asked_relations("physical, affect") == ("HasProperty", "CapableOf", "Desires", "xReact")
    for wrong, match in ((["oReact"], "unknown relation 'oReact'"), ("", "unknown relation"), ([], "no relation")):
        with pytest.raises(ConfigError, match=match):
            asked_relations(wrong)
    with pytest.raises(ConfigError, match="n is 0"):
        asked_relations(["xReact"], 0)


def test_clean_tails():
    """Check 22: "none", " happy", "happy." and "Happy" are ["happy"]."""
    assert clean_tails(["none", " happy", "happy.", "Happy"]) == [("happy", 1)]
    assert clean_tails([" None. ", "", " To  go\thome!", "to go home", "why?"]) == [("to go home", 2), ("why?", 4)]


def test_tails_as_a_dict():
    tails = Tails("xReact", ("sad",), (0.5,), "PersonX naps")
    assert Tails.from_dict("xReact", tails.to_dict()) == tails
    absent = Tails("xReact", absent="no near head")
    assert absent.to_dict() == {"absent": "no near head"} and Tails.from_dict("xReact", absent.to_dict()) == absent
    assert Tails("xReact", ("sad",)).to_dict() == {"tails": ["sad"]}


def test_merged_by_rank():
    """Spec 2.4, `each`: one query a cause, merged by rank and cut to five."""
    first = Tails("xReact", ("a", "b", "c"), (9.0, 8.0, 7.0), "one")
    second = Tails("xReact", ("b", "d", "e", "f"), (3.0, 2.0, 1.0, 0.0), "two")
    merged = merge([first, second], 5)
    assert merged.texts == ("a", "b", "d", "c", "e") and merged.scores == (9.0, 3.0, 2.0, 7.0, 1.0)
    assert merged.head == "one"
    absent = Tails("xReact", absent="no near head")
    assert merge([absent, second], 5) == second and merge([absent, absent], 5) == absent
    assert merge([first, Tails("xReact", ("z",))], 5).scores == ()


def test_no_inferences():
    counted = []
    answers = NoInferences().infer(["a", "b"], ["xReact"], progress=counted.append)
    assert answers == [{"xReact": Tails("xReact", absent="relation not covered")}] * 2 and sum(counted) == 2
    assert NoInferences().relations() == () and answers[0]["xReact"].absent in REASONS


def test_fallback_asks_only_for_what_is_empty():
    first, second = Table("first", xReact=["sad"]), Table("second", xReact=["glad"], xWant=["to rest"])
    both = Fallback(first, second)
    (answer,) = both.infer(["my dog died"], ["xReact", "xWant", "Causes"])
    assert answer["xReact"].texts == ("sad",) and answer["xWant"].texts == ("to rest",)
    assert answer["Causes"].absent == "relation not covered" and list(answer) == ["xReact", "xWant", "Causes"]
    assert second.asked == [(("my dog died",), ("xWant", "Causes"))]
    assert both.relations() == ("xReact", "xWant") and both.source == "a table" and both.stride == 7
    assert both.name == "first, else second"
    assert len({both.fingerprint(), Fallback(second, first).fingerprint(), first.fingerprint()}) == 3
    assert Fallback(second, first).infer(["x"], ["xReact"])[0]["xReact"].texts == ("glad",)
    assert len(first.asked) == 1  # the second answered all


def test_filtered_leaves_out_whole_words():
    table = Table(xReact=["to kill time", "skilled", "kill-joy"], xWant=["to kill"])
    (answer,) = Filtered(table, ["KILL", " "]).infer(["x"], ["xReact", "xWant"])
    assert answer["xReact"].texts == ("skilled",) or answer["xReact"].texts == ("skilled", "kill-joy")
    assert answer["xReact"].scores[0] == 4 and answer["xWant"] == Tails("xWant", absent="blocked")
    free = Filtered(table, [])
    assert free.infer(["x"], ["xWant"]) == table.infer(["x"], ["xWant"])
    assert len({free.fingerprint(), Filtered(table, ["a"]).fingerprint(), Filtered(table, ["b"]).fingerprint()}) == 3
