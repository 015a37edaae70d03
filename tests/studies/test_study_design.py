"""Study files and what replies become."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from made_studies import RECIPES, made_items, meed2, simple

from empatheia.errors import ConfigError, DataError
from empatheia.settings import read_yaml
from empatheia_people.studies.costs import cost_of
from empatheia_people.studies.design import read_design, validate_design
from empatheia_people.studies.items import Candidate, StudyItem, leaks, normalised, read_material
from empatheia_people.studies.making import make_study


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_designs_load_and_read_back(path):
    design = read_design(path)
    assert design.name == path.stem and design.texts.consent
    copy = path.parent / path.name
    assert read_design(copy, [f"payment.base={design.payment.base}"]) == design


def test_the_settings_of_the_prolific_page_are_a_design_and_its_address_has_their_names():
    page = (Path(__file__).parents[2] / "docs" / "howto" / "prolific.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    tree = read_yaml(RECIPES / "rashkin_ratings.yaml")
    design = validate_design(tree | yaml.safe_load(block), "the page")
    assert design.attention and design.worker.screen_out_code and design.payment.fee
    (address,) = re.findall(r"^https://study\.example\.org/\?(\S+)$", page, re.MULTILINE)
    names = dict(part.split("=", 1) for part in address.split("&"))
    for field in (design.worker.id_field, design.worker.assignment_field):
        assert names[field] == f"{{{{%{field}%}}}}"


def test_meed2_has_the_papers_numbers():
    design = meed2()
    assert (design.composition.hits, design.composition.items_per_hit, design.composition.raters) == (600, 10, 4)
    assert (design.worker.cap, design.payment.base, design.payment.bonus) == (50, 0.4, 0.1)
    assert design.hourly_rate == pytest.approx(1.6) and design.hourly_rate_with_bonus == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("worker.capp=3", "unknown key 'worker.capp'. Did you mean 'cap'?"),
        ("protokol=drag", "unknown key 'protokol'. Did you mean 'protocol'?"),
        ("worker.cap=0", "worker.cap: Input should be greater than or equal to 1 (found 0)"),
        ("composition.bonus.right=[god]", "no box 'god'. Did you mean 'good'? Boxes: good, okay, bad"),
        ("composition.bonus.per_hit=11", "11 bonus tasks"),
        ("criteria=[]", "needs at least one question"),
        ("collect.offered=40", "40 labels are offered, there are 32"),
        ("protocol=turn_annotation", "composition.bonus belongs to protocol drag"),
    ],
)
def test_wrong_settings_are_told(override, told):
    with pytest.raises(ConfigError, match=r"meed2\.yaml") as caught:
        meed2(override)
    assert told in str(caught.value)


def test_an_unknown_study_names_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'studies/meed2'"):
        read_design("studies/meed")


def replies(path, system, n=30, skip=(), **more):
    rows = [
        {"context": [f"I lost key {i}."], "reference": f"Oh no {i}!", "hyp": f"{system} says {i}", **more}
        for i in range(n)
        if i not in skip
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_sets_and_systems_are_named_in_the_argument(tmp_path):
    a, b = replies(tmp_path / "a.jsonl", "a"), replies(tmp_path / "b.jsonl", "b")
    found = read_material(meed2("composition.default_set=''"), [f"ED:ours={a}", f"ED:theirs={b}"])
    assert found.systems == ("ours", "theirs") and {item.set for item in found.items} == {"ED"}
    assert found.items[0].candidates["ours"].text == "a says 0" and len(found.items) == 30
    with pytest.raises(DataError, match=r"no file holds the system 'our'. Did you mean 'ours'"):
        read_material(meed2("systems=[our]"), [f"ED:ours={a}"])


def test_systems_that_answered_other_contexts_are_told(tmp_path):
    a, b = replies(tmp_path / "a.jsonl", "a"), replies(tmp_path / "b.jsonl", "b", skip=(3,))
    with pytest.raises(DataError, match=r"^b did not answer item #4 \('I lost key 3.'\).*29 of 30 items"):
        read_material(meed2(), [str(a), str(b)])
    found = read_material(meed2(), [str(a), str(b)], allow_missing=True)
    assert len(found.items) == 29 and found.left_out == {"a system has no answer": 1}


def test_blank_replies_are_shown_or_left_out(tmp_path):
    a = replies(tmp_path / "a.jsonl", "a")
    b = tmp_path / "b.jsonl"
    b.write_text(a.read_text().replace("a says 5", ""))
    assert len(read_material(meed2(), [str(a), str(b)]).items) == 30
    found = read_material(meed2("composition.blank=leave_out"), [str(a), str(b)])
    assert len(found.items) == 29 and found.left_out == {"an answer is empty": 1}


def test_what_gives_systems_away_is_warned_of():
    texts = {
        "A": "I am so sorry, Tom.",
        "B": "i am sorry . <b>",
        "C": "As an AI, I cannot feel, but here are many words.",
    }
    items = [StudyItem(str(i), "ED", ("x",), {s: Candidate(s, t) for s, t in texts.items()}) for i in range(4)]
    told = " ".join(leaks(items, ("A", "B", "C")))
    assert "C: 4 replies say what wrote them" in told and "B: 4 replies hold markup" in told
    assert "upper case tell systems apart" in told and "length tells systems apart" in told
    assert leaks(made_items(5), ("A", "B")) == []


def test_normalised_texts_look_alike():
    assert normalised("i am sorry to hear that . do n't worry !") == "I am sorry to hear that. Don't worry!"
    assert normalised("OK, I see.  NASA called.") == "OK, I see. NASA called."
    assert normalised("") == ""


def test_dialogues_and_their_faults(tmp_path):
    path = tmp_path / "d.jsonl"
    row = {"id": "x", "system": "A", "turns": ["Hi, I am sad.", "Why?"]}
    path.write_text(json.dumps(row) + "\n" + json.dumps(row | {"system": "B", "turns": ["Hi", "Ok"]}) + "\n")
    pairs = read_design(RECIPES / "dialogue_pairs.yaml", ["composition.items_per_hit=1"])
    found = make_study(pairs, [str(path)])
    assert found.manifest.hits[0].tasks[0].cards == (("A",), ("B",)) or found.manifest.hits[0].tasks[1].cards
    for text, told in (('{"id": 1}', "not a dialogue"), ("{", "not valid JSON"), ('{"turns": [1]}', "a turn is 1")):
        path.write_text(text + "\n")
        with pytest.raises(DataError, match=told):
            make_study(pairs, [str(path)])


def test_a_study_without_replies_says_what_it_needs():
    with pytest.raises(ConfigError, match="needs replies: give --outputs"):
        make_study(meed2())
    with pytest.raises(ConfigError, match="--system NAME=MODEL"):
        make_study(simple("live"))


def test_what_a_study_costs():
    """By hand: 2,400 seats of 0.40, or 0.50 with the bonus, and a fifth for the platform."""
    cost = cost_of(meed2(), 2400)
    assert (cost.least, cost.most) == pytest.approx((2400 * 0.40 * 1.2, 2400 * 0.50 * 1.2))
