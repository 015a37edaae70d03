"""What stands in front of a study is what stands in front of every server of ours; what its API is given is checked."""

from __future__ import annotations

import contextlib
import csv
import json
import random
import re
import resource
import socket

import pytest
from fastapi.testclient import TestClient
from made_studies import fill, made_items, meed2, simple
from served_studies import served
from starlette.testclient import WebSocketDenialResponse

from empatheia.errors import ConfigError, DataError
from empatheia.serve.run import PatientProtocol
from empatheia.serve.settings import WebSettings
from empatheia_people.studies.answers import Screen
from empatheia_people.studies.design import read_design
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.exporting import FORMATS, _write
from empatheia_people.studies.making import make_study
from empatheia_people.studies.serving import STATIC, study_app
from empatheia_people.studies.store import Store
from empatheia_people.studies.submissions import Submissions

SMALL = ("composition.hits=2", "composition.raters=2", "composition.items_per_hit=3")


@pytest.fixture()
def store(tmp_path):
    opened = Store(str(tmp_path / "s.db"))
    fill(opened, meed2(*SMALL), made_items(6))
    return opened


@pytest.fixture()
def collection(tmp_path):
    design = read_design("studies/collect", ["worker.entry=open"])
    made = make_study(design)
    opened = Store(str(tmp_path / "c.db"))
    opened.create(design, made.material, made.manifest)
    return opened


def test_a_head_that_drips_in_is_cut_off_and_a_conversation_is_not(collection, monkeypatch):
    from websockets.sync.client import connect

    monkeypatch.setattr(PatientProtocol, "HEAD_SECONDS", 0.3)
    desk = Desk(collection)
    token = desk.sessions.enter("w")
    desk.sessions.consent(desk.sessions.session(token)[0])
    with served(collection) as url, connect(url.replace("http", "ws") + "/api/room") as room:
        room.send(json.dumps({"token": token}))
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
            slow.sendall(b"POST /api/enter HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            with contextlib.suppress(ConnectionError):
                assert slow.recv(100) == b""
        room.send(json.dumps({"do": "beat", "client": "still here"}))
        while json.loads(room.recv(timeout=20)).get("ack") != "still here":
            pass


def _connects(client: TestClient, **headers: str) -> bool:
    try:
        with client.websocket_connect("/api/room", headers=headers) as room:
            room.send_json({"token": "x"})
            return "ended" in room.receive_json()
    except WebSocketDenialResponse as refused:
        assert refused.json()["error"]["code"] in ("wrong_host", "wrong_origin")
        return False


@pytest.mark.parametrize(
    ("hosts", "host", "origin", "is_let_in"),
    [
        ((), "a.example:80", None, True),  # no browser
        ((), "a.example:80", "http://a.example:80", True),
        ((), "a.example", "https://evil.example", False),
        ((), "a.example", "null", False),
        ((), "127.0.0.1:8000", "https://a.example", False),  # a proxy that changes the name, and nobody said so
        (("a.example", "127.0.0.1"), "127.0.0.1:8000", "https://a.example", True),
        (("a.example",), "evil.example", "https://evil.example", False),
        (("a.example",), "a.example", "https://evil.example", False),
    ],
)
def test_who_may_open_a_conversation(collection, hosts, host, origin, is_let_in):
    given = {"host": host} | ({"origin": origin} if origin else {})
    with TestClient(study_app(collection, WebSettings(hosts=hosts))) as client:
        assert _connects(client, **given) is is_let_in


def test_every_module_that_the_pages_import_is_served(store):
    named = {name for path in STATIC.glob("*.js") for name in re.findall(r'from "\./(\S+?)"', path.read_text())}
    assert "points.js" in named
    with TestClient(study_app(store)) as client:
        for name in named:
            answer = client.get(f"/{name}")
            assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/javascript"), name


HUGE = 2**63
HALF = "\ud83d"


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("POST", "submit", {"assignment": HUGE}, "assignment: .*less than 2147483648"),
        ("POST", "submit", {"assignment": -HUGE}, "assignment: .*greater than or equal to -2147483648"),
        ("POST", "validate", {"assignment": 1, "task": 10**30}, "task: "),
        ("POST", "say", {"assignment": 1, "task": 0, "text": HALF, "client": "c"}, "half a character"),
        ("POST", "enter", {"query": {"worker": HALF, "assignment": "a"}}, "half a character"),
        ("POST", "enter", {"query": {"worker": "w", "assignment": "a" + HALF}}, "half a character"),
        ("POST", "enter", {"query": {"invitation": HALF}}, "half a character"),
        ("POST", "notes", {"events": [{"kind": "dwell", "seconds": 10**400}]}, "too many digits"),
        ("POST", "questions", {"answers": [HUGE]}, r"answers\[0\]: "),
        ("POST", "warm-up", {"answers": [HALF]}, "half a character"),
        ("PUT", "rating", {"card": HUGE}, "card: "),
        ("PUT", "rating", {"seen": HUGE}, "seen: "),
        ("PUT", "rating", {"criterion": HALF}, "half a character"),
        ("PUT", "rating", {"value": [["\udc00"]]}, "half a character"),
        ("PUT", "rating", {"client": HALF}, "half a character"),
    ],
)
def test_numbers_and_characters_that_no_store_holds_are_told(store, method, path, body, told):
    with TestClient(study_app(store)) as client:
        token = client.post("/api/enter", json={"query": {"worker": "w", "assignment": "a"}}).json()["token"]
        if path == "rating":
            usual = {"assignment": 1, "task": 0, "card": 0, "criterion": "quality", "value": "good", "client": "c"}
            body = usual | body
        head = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        answer = client.request(method, f"/api/{path}", headers=head, content=json.dumps(body))
        assert answer.status_code == 400, answer.text
        assert re.search(told, answer.json()["error"]["message"])


def test_half_a_character_in_a_conversation_is_told_and_the_conversation_goes_on(collection):
    desk = Desk(collection)
    token = desk.sessions.enter("w")
    desk.sessions.consent(desk.sessions.session(token)[0])
    with TestClient(study_app(collection)) as client, client.websocket_connect("/api/room") as room:
        room.send_text(json.dumps({"token": token}))
        room.send_text(json.dumps({"do": "write", "label": "sad", "situation": f"a b c {HALF}", "client": "1"}))
        told = {}
        while told.get("ack") != "1":
            told = room.receive_json()
        assert told["code"] == "half_character" and "send whole characters" in told["error"]
        room.send_text(json.dumps({"do": "beat", "client": "2"}))
        while told.get("ack") != "2":
            told = room.receive_json()


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "JaVaScRiPt:alert(1)//{code}", "data:text/html,x", "//x.example", "https:///x", "x"],
)
def test_the_last_page_leads_to_the_web_only(address):
    with pytest.raises(ConfigError, match=r"worker.completion_url: .* accepted: https://... or http://"):
        meed2(f"worker.completion_url={json.dumps(address)}")


def test_codes_for_who_fails_the_questions_or_a_check(tmp_path):
    url = "https://app.example.org/complete?cc={code}"
    design = meed2(
        *SMALL,
        f"worker.completion_url={url}",
        "worker.completion_code=DONE",
        "worker.screen_out_code=OUT 1",
        'onboarding.questions=[{"question": "?", "answers": ["a", "b"], "right": 0}]',
    )
    desk = fill(Store(str(tmp_path / "s.db")), design, made_items(6))
    worker = desk.sessions.session(desk.sessions.enter("w"))[0]
    desk.sessions.consent(worker)
    assert desk.sessions.standing(worker)["code"] == "" and desk.sessions.comprehension(worker, [1])["code"] == ""
    out = desk.sessions.comprehension(worker, [1])
    assert (out["left"], out["code"], out["url"]) == (0, "OUT 1", "https://app.example.org/complete?cc=OUT%201")
    assert desk.sessions.standing(worker)["code"] == "OUT 1"
    passed = desk.sessions.session(desk.sessions.enter("w2"))[0]
    assert desk.sessions.comprehension(passed, [0]) == {"passed": True, "left": 1, "code": "", "url": ""}


@pytest.mark.parametrize(("value", "code"), [("2", "DONE"), ("1", "CARELESS")])
def test_a_failed_check_of_attention_has_a_code_of_its_own(tmp_path, value, code):
    check = {"text": "Choose 2.", "right": "2"}
    design = simple(
        "likert",
        composition={"cards": "one", "items_per_hit": 1, "raters": 1},
        attention=[check],
        worker={"completion_code": "DONE", "attention_code": "CARELESS"},
    )
    desk = fill(Store(str(tmp_path / "s.db")), design, made_items(1))
    worker = desk.sessions.session(desk.sessions.enter("w"))[0]
    seat = desk.seats.take(worker)
    for screen in desk.seats.screens(seat.hit, seat.seat):
        desk.ratings.rate(worker, seat.assignment, screen.place, 0, "quality", value, f"c{screen.place}")
    assert desk.submissions.submit(worker, seat.assignment)["code"] == code


# copies


@contextlib.contextmanager
def full_disk():
    """Files cannot grow beyond 40 kB; writing fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_copy_on_a_full_disk_leaves_nothing(cli, store, tmp_path):
    folder = tmp_path / "copies"
    folder.mkdir()
    (folder / "copy.db").write_text("an earlier copy")
    with full_disk():
        done = cli("study", "backup", store.url, "--out", str(folder / "copy.db"))
    assert done.code == 1 and "copy.db was not written" in done.err and "Make room" in done.err
    assert [path.read_text() for path in folder.iterdir()] == ["an earlier copy"]


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_on_a_full_disk_leaves_nothing_half(tmp_path, form):
    rows: list[dict[str, object]] = [{"text": random.Random(i).randbytes(60).hex()} for i in range(2000)]
    with full_disk(), pytest.raises(DataError, match=r"m\.\w+ was not written: .*Make room"):
        _write(rows, tmp_path / f"m.{form}", form)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("days", ["nan", "inf", "-inf", "0", "-1"])
def test_links_expire_after_days_that_are_a_number(cli, store, days):
    done = cli("study", "invite", store.url, "--days", days)
    assert done.code == 2 and "--days is" in done.err and "accepted: above 0" in done.err and not done.out


def test_links_lead_to_a_server(cli, store):
    done = cli("study", "invite", store.url, "--base", "javascript:alert(1)")
    assert done.code == 2 and "accepted: https://HOST" in done.err and not done.out


def test_cells_of_exported_tables_are_text(tmp_path):
    """A message that a spreadsheet would compute; other forms have it as it was typed."""
    said = '=HYPERLINK("http://x")'
    row = {"version": 1, "room": "r", "text": said, "score": "-3"}
    (line,) = csv.DictReader(_write([row], tmp_path / "m.csv", "csv").open())
    assert line == {"version": "1", "room": "r", "text": f"'{said}", "score": "-3"}
    assert json.loads(_write([row], tmp_path / "m.jsonl", "jsonl").read_text())["text"] == said


def test_a_study_at_home_is_served_under_its_own_names_only(cli, store, monkeypatch):
    given = {}
    monkeypatch.setattr("empatheia_people.studies.serving.run", lambda *args, **_: given.update(hosts=args[3]))
    for more, hosts in (
        ((), ("127.0.0.1", "localhost", "::1")),
        (("--allowed-host", "a.example"), ("a.example", "127.0.0.1", "localhost", "::1")),
        (("--host", "0.0.0.0"), ()),
    ):
        assert cli("study", "serve", store.url, *more).code == 0
        assert given["hosts"] == hosts


def test_every_check_of_attention_must_be_right():
    checks = [{"text": f"Put it into {box}.", "right": box} for box in ("good", "bad")]
    own = object.__new__(Submissions)
    own.design = simple("drag", attention=checks)
    screens = [Screen(n, n, f"check:{n}", None, (), (), False) for n in (0, 1)]
    placed = {(0, 0, "quality"): "good", (1, 0, "quality"): "bad"}
    assert own._is_attentive(screens, placed) is True
    assert own._is_attentive(screens, placed | {(1, 0, "quality"): "good"}) is False
    assert own._is_attentive([], {}) is None
