"""Analyses in the background, over HTTP: pieces, results, cancelling, limits, expiry."""

from __future__ import annotations

import csv
import io
import json
import shutil
import time

import pytest
from fastapi.testclient import TestClient

from empatheia.serve import ServerSettings, create_app
from empatheia.serve.settings import Limits

TEXTS = ["I lost my keys.", " ", "My sister is visiting tomorrow!", "=1+1 my dog is ill"]


def finished(client, id: str) -> dict:
    end = time.monotonic() + 60
    while (job := client.get(f"/v1/jobs/{id}").json())["status"] not in ("done", "cancelled", "failed"):
        assert time.monotonic() < end, job
        time.sleep(0.02)
    return job


@pytest.fixture(scope="module")
def small():
    """A server with narrow limits."""
    limits = Limits(rows=40, row_bytes=4096, jobs=2, job_seconds=0.3)
    with TestClient(create_app(ServerSettings(limits=limits))) as client:
        yield client


def test_results_are_those_of_analyze(client):
    rows = [{"input": text, "id": f"r{place}", "cells": {"who": "me"}} for place, text in enumerate(TEXTS)]
    made = client.post("/v1/jobs", json={"rows": rows[:2], "last": False, "name": "a.csv", "columns": ["who"]})
    assert made.status_code == 202
    id = made.json()["id"]
    assert client.post(f"/v1/jobs/{id}", json={"rows": rows[2:], "last": True}).json()["total"] == 4
    job = finished(client, id)
    assert (job["status"], job["done"], job["failed"], job["name"]) == ("done", 4, 1, "a.csv")
    told = client.post("/v1/analyze", json={"input": TEXTS}).json()["data"]
    data = client.get(f"/v1/jobs/{id}/rows").json()["data"]
    for place, (row, item) in enumerate(zip(data, told, strict=True)):
        assert (row.pop("row"), row.pop("id"), row.pop("cells")) == (place + 1, f"r{place}", [{"who": "me"}])
        assert row == (item["understanding"] or {"error": item["error"]["message"]})
    counted = {item["understanding"]["emotion"] for item in told if item["understanding"]}
    assert set(job["emotions"]) == counted
    assert sum(job["sides"].values()) == 3

    emotion = data[0]["emotion"]
    some = client.get(f"/v1/jobs/{id}/rows", params={"emotion": emotion, "search": "KEYS", "count": 1}).json()
    assert [row["turns"][0]["text"] for row in some["data"]] == [TEXTS[0]]
    assert client.get(f"/v1/jobs/{id}/rows", params={"error": True}).json()["matches"] == 1
    assert client.get(f"/v1/jobs/{id}/rows", params={"start": 3}).json()["data"][0]["row"] == 4

    table = list(csv.DictReader(io.StringIO(client.get(f"/v1/jobs/{id}/result.csv").text)))
    assert [row["who"] for row in table] == ["me"] * 4
    assert table[3]["text"] == "'=1+1 my dog is ill"
    lines = client.get(f"/v1/jobs/{id}/result.jsonl").text.splitlines()
    assert [json.loads(line)["row"] for line in lines] == [1, 2, 3, 4]
    assert client.post(f"/v1/jobs/{id}", json={"rows": rows, "last": True}).status_code == 409
    assert client.delete(f"/v1/jobs/{id}").status_code == 204
    assert client.get(f"/v1/jobs/{id}").status_code == 404


def test_conversations_are_rows_too(client):
    messages = [
        {"role": "user", "content": "My dog ran away."},
        {"role": "assistant", "content": "Oh no."},
        {"role": "user", "content": "He is back!"},
    ]
    id = client.post("/v1/jobs", json={"rows": [{"input": messages}]}).json()["id"]
    assert finished(client, id)["failed"] == 0
    (row,) = client.get(f"/v1/jobs/{id}/rows").json()["data"]
    assert [turn["text"] for turn in row["turns"]] == ["My dog ran away.", "Oh no.", "He is back!"]
    client.delete(f"/v1/jobs/{id}")


def test_a_cancelled_one_keeps_what_is_done(client):
    id = client.post("/v1/jobs", json={"rows": [{"input": TEXTS[0]}], "last": False}).json()["id"]
    assert client.post(f"/v1/jobs/{id}/cancel").status_code == 200
    job = finished(client, id)
    assert job["status"] == "cancelled"
    assert client.get(f"/v1/jobs/{id}/rows").json()["matches"] == job["done"]
    client.delete(f"/v1/jobs/{id}")


@pytest.mark.parametrize("id", ["x", "../../etc/passwd", "%2e%2e%2f%2e%2e%2fetc", "A" * 32, "A" * 500, "."])
def test_nothing_is_found_under_a_guessed_id(client, id):
    for path in (f"/v1/jobs/{id}", f"/v1/jobs/{id}/rows", f"/v1/jobs/{id}/result.csv", f"/v1/jobs/{id}/result.jsonl"):
        answer = client.get(path)
        assert answer.status_code in (404, 405)
        assert "error" in answer.json()
    assert client.delete(f"/v1/jobs/{id}").status_code in (404, 405)


@pytest.mark.parametrize(
    "body",
    [
        {"rows": "all"},
        {"rows": [{}]},
        {"rows": [{"input": 3}]},
        {"rows": [{"input": "a", "cells": {"a": 1}}]},
        {"rows": [{"input": "a", "cells": {"b": "1"}}], "columns": ["a"]},
        {"rows": []},
        {"rows": [{"input": "a"}], "columns": ["c"] * 65},
        {"rows": [{"input": "a"}], "model": "nobody"},
    ],
)
def test_what_is_no_job_is_refused(client, body):
    answer = client.post("/v1/jobs", json=body)
    assert answer.status_code in (400, 404, 422)
    assert answer.json()["error"]["message"]


def test_limits_and_expiry(small):
    too_many = small.post("/v1/jobs", json={"rows": [{"input": "a"}] * 41})
    assert too_many.status_code == 422
    too_large = small.post("/v1/jobs", json={"rows": [{"input": "a" * 5000}]})
    assert too_large.status_code == 413
    given = {"rows": [{"input": "I won."}], "last": False}
    ids = [small.post("/v1/jobs", json=given).json()["id"] for _ in range(2)]
    full = small.post("/v1/jobs", json={"rows": [{"input": "a"}]})
    assert full.status_code == 429
    assert full.headers["retry-after"]
    for id in ids:
        small.post(f"/v1/jobs/{id}", json={"rows": [{"input": "I won."}], "last": True})
    end = time.monotonic() + 60
    while any(small.get(f"/v1/jobs/{id}").status_code != 404 for id in ids):
        assert time.monotonic() < end, "they did not expire"
        time.sleep(0.05)


def test_an_empty_job_made_just_now_stays(small):
    """Five calls deleted what somebody else had begun a second before."""
    empty = [small.post("/v1/jobs", json={"rows": [], "last": False}) for _ in range(3)]
    assert [one.status_code for one in empty] == [202, 202, 429]
    for one in empty[:2]:
        assert small.delete(f"/v1/jobs/{one.json()['id']}").is_success


def test_empty_jobs_do_not_keep_others_out(small, monkeypatch):
    monkeypatch.setattr(small.app.state.jobs, "clock", lambda: time.time() + 3600)
    empty = [small.post("/v1/jobs", json={"rows": [], "last": False}).json()["id"] for _ in range(5)]
    assert [small.get(f"/v1/jobs/{id}").status_code for id in empty] == [404, 404, 404, 200, 200]
    made = small.post("/v1/jobs", json={"rows": [{"input": "I won."}]})
    assert made.status_code == 202
    for id in (*empty[-1:], made.json()["id"]):
        small.delete(f"/v1/jobs/{id}")


def test_rows_with_other_cells_give_a_whole_table_of_text(client):
    rows = [
        {"input": "I won.", "cells": {"=a": "@b", "text": "I won."}},
        {"input": "I lost."},
        {"input": "I cried.", "cells": {"text": "\tx"}},
    ]
    id = client.post("/v1/jobs", json={"rows": rows, "columns": ["=a", "text"]}).json()["id"]
    finished(client, id)
    table = list(csv.DictReader(io.StringIO(client.get(f"/v1/jobs/{id}/result.csv").text)))
    assert [(row["'=a"], row["text"], row["empatheia_text"], row["row"]) for row in table] == [
        ("'@b", "I won.", "I won.", "1"),
        ("", "", "I lost.", "2"),
        ("", "'\tx", "I cried.", "3"),
    ]
    client.delete(f"/v1/jobs/{id}")


def test_nothing_is_left_when_the_server_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with TestClient(create_app(ServerSettings())) as client:
        client.post("/v1/jobs", json={"rows": [{"input": "I won."}], "last": False})
        assert list(tmp_path.glob("empatheia-texts-*"))
    assert not list(tmp_path.glob("empatheia-texts-*"))


def test_what_a_killed_server_left_is_finished_by_the_next(tmp_path):
    """A row and two given rows are cut, as a kill leaves them; the result is that of a server nobody killed."""
    rows = [{"input": text, "id": f"r{place}"} for place, text in enumerate(TEXTS * 3)]
    settings = ServerSettings(jobs=str(tmp_path / "jobs"))
    with TestClient(create_app(settings)) as client:
        whole = client.post("/v1/jobs", json={"rows": rows}).json()["id"]
        ended = finished(client, whole)
        wanted = client.get(f"/v1/jobs/{whole}/rows").json()["data"]
    left = tmp_path / "jobs" / ("k" * 32)
    shutil.copytree(tmp_path / "jobs" / whole, left)
    records = [json.dumps(record) + "\n" for record in wanted]
    (left / "rows.jsonl").write_text("".join(records[:5]) + records[5][:40])
    (left / "given.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"input": "I w')
    for name, changed in (("head", {"id": left.name}), ("state", {"status": "running", "done": 2, "expires": None})):
        told = json.loads((left / f"{name}.json").read_text())
        (left / f"{name}.json").write_text(json.dumps(told | changed))
    with TestClient(create_app(settings)) as client, TestClient(create_app(settings)) as second:
        job = finished(second, left.name)
        for name in ("status", "done", "failed", "emotions", "sides", "total"):
            assert job[name] == ended[name], name
        assert sorted(map(str, job["causes"])) == sorted(map(str, ended["causes"]))
        found = client.get(f"/v1/jobs/{left.name}/rows").json()["data"]
        assert found == wanted  # nothing lost, nothing twice
        assert client.get(f"/v1/jobs/{whole}").json()["status"] == "done"


def test_what_ended_before_a_kill_expires_and_who_cannot_answer_any_more_is_told(tmp_path):
    for name, head, state in (
        ("e" * 32, {"model": "empatheia"}, {"status": "done", "expires": 5}),
        ("m" * 32, {"model": "gone"}, {"status": "running", "expires": None}),
    ):
        place = tmp_path / name
        place.mkdir()
        (place / "given.jsonl").write_text('{"input": "I won."}\n')
        (place / "rows.jsonl").touch()
        told = {"error": None, "seen": 0, "done": 0, "failed": 0, "emotions": {}, "sides": {}, "causes": []}
        (place / "state.json").write_text(json.dumps(told | state))
        (place / "given.json").write_text('{"rows": 1, "closed": true}')
        (place / "head.json").write_text(json.dumps({"id": name, "name": "", "columns": [], "created": 0} | head))
    with TestClient(create_app(ServerSettings(jobs=str(tmp_path)))) as client:
        job = finished(client, "m" * 32)
        assert job["status"] == "failed" and "the model 'gone' is not served here" in job["error"]
        end = time.monotonic() + 60
        while (tmp_path / ("e" * 32)).exists():
            assert time.monotonic() < end, "it did not expire"
            time.sleep(0.05)
        assert client.get(f"/v1/jobs/{'m' * 32}").status_code == 200


def test_labels(client):
    told = client.get("/v1/labels").json()
    assert len(told["emotions"]) == 32
    assert len(told["intents"]) == 41
    assert {"name": "questioning", "kind": "act"} in told["intents"]
