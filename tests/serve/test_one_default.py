"""Whoever is asked without a name answers the same: command line, CSV, Python, frames, HTTP, jobs, the page of HTML."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from pathlib import Path

import polars as pl
import pytest
from test_jobs import finished

import empatheia
from empatheia import Analysis, Analyzer, Dialogue, Listener
from empatheia.files.result_table import as_text
from empatheia.taxonomy import POSITIVE_EMOTIONS

ITEMS = Path(__file__).parents[1] / "data" / "reports" / "texts_of_all_kinds.jsonl"
BLENDER = "I love this blender, it crushed ice in seconds!"


@pytest.fixture(scope="module")
def items() -> list[str | Dialogue]:
    """60 texts and 10 conversations of all kinds."""
    rows = [json.loads(line) for line in ITEMS.read_text(encoding="utf-8").splitlines()]
    found = [row["text"] if "text" in row else Dialogue.of(*row["turns"]) for row in rows]
    assert [sum(isinstance(item, kind) for item in found) for kind in (str, Dialogue)] == [60, 10]
    return found


@pytest.fixture(scope="module")
def alone(items) -> list[Analysis]:
    """What Python says of each by itself: the answer that all others must give."""
    return [empatheia.analyze(item) for item in items]


@pytest.fixture(scope="module")
def dicts(alone) -> list[dict]:
    return [one.to_dict() for one in alone]


def messages(item: str | Dialogue) -> object:
    """An item as HTTP takes it."""
    roles = {"speaker": "user", "listener": "assistant"}
    if isinstance(item, str):
        return item
    return [{"role": roles[turn.role], "content": turn.text} for turn in item.turns]


def test_the_default_is_the_listener(alone):
    assert {one.by["emotion"] for one in alone} == {"empatheia-listener"}


def test_a_list_is_each_alone(items, alone):
    assert empatheia.analyze(items) == alone
    assert empatheia.analyze([BLENDER, *items[::-1]])[1:] == alone[::-1]


def test_the_listener_that_answers_understands_the_same(items, dicts):
    found = [one.to_dict() for one in Listener.load().analyze(items)]
    for one, own in zip(found, dicts, strict=True):
        assert {**one, "model": own["model"]} == own


def test_frames(items, alone):
    texts = [item for item in items if isinstance(item, str)]
    found = empatheia.analyze(pl.DataFrame({"body": texts}), column="body")
    for row, one in zip(found.iter_rows(named=True), alone, strict=False):
        assert (row["emotion"], row["probability"]) == felt(one)
        assert row["side"] == side(one)
        assert row["causes"] == " | ".join(cause.of(one.dialogue.turns) for cause in one.newest.causes)


def test_the_command_line_on_a_file_and_on_texts(cli, items, dicts):
    done = cli("analyze", str(ITEMS), "--json")
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [{name: value for name, value in one.items() if name != "row"} for one in records] == dicts
    some = cli("analyze", "--json", "--model", "empatheia-listener", BLENDER)
    assert json.loads(some.out) == dicts[0]


def test_csv_in_and_out(cli, items, alone, tmp_path):
    texts = [item for item in items if isinstance(item, str)]
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["body"], *([text] for text in texts)])
    done = cli("analyze", str(tmp_path / "in.csv"), "--column", "body", "--out", str(tmp_path / "out.csv"))
    assert done.code == 0, done.err
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["body", "row", "emotion", "probability", "side", "causes", "uncertain", "error"]
    for row, one, text in zip(rows, alone, texts, strict=False):
        assert row["body"].strip() == str(as_text(text)).strip()
        assert (row["emotion"], row["probability"]) == (felt(one)[0], f"{felt(one)[1]:.4f}")
        assert row["side"] == side(one)
        assert row["causes"] == as_text(" | ".join(cause.of(one.dialogue.turns) for cause in one.newest.causes))


def test_http_and_jobs(client, items, dicts):
    given = [messages(item) for item in items]
    answer = client.post("/v1/analyze", json={"input": given}).json()
    assert [one["understanding"] for one in answer["data"]] == dicts
    id = client.post("/v1/jobs", json={"rows": [{"input": one} for one in given]}).json()["id"]
    assert finished(client, id)["failed"] == 0
    rows = [json.loads(line) for line in client.get(f"/v1/jobs/{id}/result.jsonl").text.splitlines()]
    assert [{name: value for name, value in row.items() if name != "row"} for row in rows] == dicts
    table = list(csv.DictReader(io.StringIO(client.get(f"/v1/jobs/{id}/result.csv").text)))
    assert [row["emotion"] for row in table] == [one["emotion"] for one in dicts] and "id" not in table[0]


def test_an_analyzer_and_the_page_of_the_command_line(cli, items, dicts, tmp_path):
    analyses = Analyzer("emotion,causes").analyze(items)
    for analysis, own in zip(analyses, dicts, strict=True):
        last = analysis.newest
        assert (last.emotion.probabilities, last.sides) == (own["emotions"], own.get("sides", {}))
        assert [(span.turn, span.start, span.end) for span in last.causes] == [
            (cause["turn"], cause["start"], cause["end"]) for cause in own["causes"]
        ]
    page = tmp_path / "page.html"
    done = cli("analyze", str(ITEMS), "--html", str(page))
    assert done.code == 0 and "without" not in done.err
    sections = page.read_text(encoding="utf-8").split('<section class="conversation"')[1:]
    assert len(sections) == 50 and "missing</strong>" not in sections[0]
    for section, own in zip(sections, dicts, strict=False):
        facts = section.split('<li class="turn')[-1]
        best = max(own["emotions"], key=lambda name: own["emotions"][name])
        first = re.search(r'<dt>emotion</dt>.*?"name">(\w+)<.*?"value">(\d+%)<', facts)
        assert first is not None and first.groups() == (best, f"{own['emotions'][best]:.0%}")
        if own.get("sides"):
            name, value = max(own["sides"].items(), key=lambda one: one[1])
            assert f"<dt>side</dt><dd>{name} {value:.0%}</dd>" in facts
        quoted = [html.unescape(text) for text in re.findall("“(.*?)”", facts.partition("caused by")[2], re.DOTALL)]
        assert sorted(quoted) == sorted(cause["text"] for cause in own["causes"])


@pytest.mark.usefixtures("sentence_encoder")
def test_a_praised_blender_is_pleasant_whoever_is_asked(cli, client):
    told = [
        empatheia.analyze(BLENDER).to_dict(),
        json.loads(cli("analyze", "--json", BLENDER).out),
        client.post("/v1/analyze", json={"input": BLENDER}).json()["data"][0]["understanding"],
        json.loads(cli("respond", "--json", BLENDER).out)["understanding"],
    ]
    assert len({json.dumps([one["emotion"], one["sides"], one["causes"]]) for one in told}) == 1
    assert told[0]["emotion"] in POSITIVE_EMOTIONS


@pytest.mark.usefixtures("sentence_encoder")
def test_every_name_of_the_default_gives_its_reply(cli, client):
    reply = empatheia.respond(BLENDER).text
    for name in ("empatheia", "listener", "empatheia-listener"):
        assert Listener.load(name).respond(BLENDER).text == reply
        assert cli("respond", BLENDER, "--model", name).out.strip() == reply
        focused = empatheia.respond(BLENDER, name, focus="ice").text
        assert focused == cli("respond", BLENDER, "--model", name, "--focus", "ice").out.strip()
        assert focused == empatheia.respond(BLENDER, focus="ice").text
        body = {"model": name, "messages": [{"role": "user", "content": BLENDER}]}
        assert client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"] == reply
    assert Listener.load().respond(BLENDER).text == reply


def test_the_old_name_of_the_small_model_says_the_new_one(cli, client):
    told = "no model is called 'default': the small bundled responder is 'gao2021-small'"
    for command in ("respond", "analyze"):
        done = cli(command, BLENDER, "--model", "default")
        assert done.code == 3 and told in done.err and done.err.count("\n") == 1
    assert told in client.post("/v1/analyze", json={"input": "x", "model": "default"}).json()["error"]["message"]


def felt(one: Analysis) -> tuple[str, float]:
    label = one.newest.emotion.label
    return label, one.newest.emotions[label]


def side(one: Analysis) -> str:
    """The likeliest side; of the small model, which knows none, that of the emotion."""
    if one.newest.side is not None:
        return one.newest.side.label
    return "pleasant" if one.newest.emotion.label in POSITIVE_EMOTIONS else "unpleasant"
