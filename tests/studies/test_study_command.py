"""``empatheia study`` from design to report, the judge beside people, and a server that is killed."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path

import polars as pl
import pytest
from made_studies import RECIPES, fill, made_items, meed2, simple

from empatheia.resources.chat_endpoint import ChatAnswer
from empatheia_people.studies.answers import questions
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.exporting import RATING_COLUMNS
from empatheia_people.studies.judged import ask_judge, keep_verdicts
from empatheia_people.studies.report import report_page
from empatheia_people.studies.results import study_results
from empatheia_people.studies.simulation import Opinion, crowd_of, work_through
from empatheia_people.studies.store import Store
from fresh import Fresh


@pytest.fixture()
def files(tmp_path: Path) -> list[str]:
    """Replies of two systems."""
    for name in ("a", "b"):
        rows = [
            {"context": [f"I lost key {i}."], "reference": f"Oh no {i}!", "hyp": f"{name} says {i}"} for i in range(20)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]


def test_from_design_to_report(cli, tmp_path, files):
    db = f"sqlite:///{tmp_path}/s.db"
    outputs = ("--outputs", files[0], "--outputs", files[1])
    done = cli("study", "init", str(RECIPES / "meed2.yaml"), *outputs, "--db", db)
    assert done.code == 0 and "2 HITs x 4 raters of 20 items and 2 systems" in done.out, done.err
    assert "1.60 an hour, 2.00 with every bonus" in done.err and "the design has 600 HITs; the items make 2" in done.err
    assert "already" in cli("study", "init", "studies/meed2", *outputs, "--db", db).err
    done = cli("study", "simulate", db, "--raters", "honest=5,random=1")
    assert "6 made-up workers handed in 8 HITs" in done.out
    done = cli("study", "status", db, "--json")
    assert json.loads(done.out)["submitted"] == 8 and json.loads(done.out)["seats"] == 8
    done = cli("study", "report", db, "-o", str(tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text()
    assert done.code == 0 and "of 8 assignments" in done.out
    for words in ("Filters", "Shares on ED", "Krippendorff alpha", "meed2, Table 5, as printed", "<svg", "Workers"):
        assert words in page
    assert "src=" not in page and "<script" not in page  # nothing is loaded
    numbers = json.loads(cli("study", "report", db, "--json").out)
    assert {row["system"] for row in numbers["shares"]} == {"a", "b", "gold"}
    assert "is closed" in cli("study", "close", db).out


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_exports_hold_everything_under_one_version(cli, tmp_path, form):
    db = str(tmp_path / "s.db")
    desk = fill(Store(db), meed2("composition.raters=2"), made_items(10))
    for rater in crowd_of({"honest": 2}, Opinion({}, {})):
        work_through(desk, rater, f"secret-name-{id(rater)}")
    desk.store.close()
    assert cli("study", "export", db, "--out", str(tmp_path / "out"), "--format", form).code == 0
    read = {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet}[form]
    ratings = read(tmp_path / "out" / f"ratings.{form}")
    assert tuple(ratings.columns) == RATING_COLUMNS and ratings["version"].unique().to_list() == [1]
    assert len(ratings) == 2 * 23 and set(ratings["system"].unique()) == {"A", "B", "gold"}
    assert read(tmp_path / "out" / f"payments.{form}")["base"].to_list() == [0.4, 0.4]
    assert (tmp_path / "out" / "manifest.jsonl").read_text() == desk.store.manifest().lines()
    assert all(b"secret-name" not in path.read_bytes() for path in (tmp_path / "out").iterdir())


def test_an_export_holds_nothing_that_a_spreadsheet_would_compute(cli, tmp_path):
    db, systems = str(tmp_path / "s.db"), ("=1+1", "B")
    desk = fill(Store(db), meed2("composition.raters=1"), made_items(10, systems), systems)
    for rater in crowd_of({"honest": 1}, Opinion({}, {})):
        work_through(desk, rater, "somebody")
    desk.store.close()
    for form in ("csv", "jsonl"):
        assert cli("study", "export", db, "--out", str(tmp_path / "out"), "--format", form).code == 0
    table = pl.read_csv(tmp_path / "out" / "ratings.csv")
    assert set(table["system"].unique()) == {"'=1+1", "B", "gold"} and table.schema["is_check"] == pl.Boolean
    assert "=1+1" in pl.read_ndjson(tmp_path / "out" / "ratings.jsonl")["system"].to_list()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("init", "studies/meed3", "--outputs", "x"), "Did you mean 'studies/meed2'"),
        (("init", "studies/meed2"), "needs replies: give --outputs"),
        (("init", "studies/meed2", "--outputs", "none.jsonl"), "none.jsonl"),
        (("init", "studies/live", "--system", "x"), "NAME=MODEL"),
        (("init", "studies/meed2", "--outputs", "x", "--set", "worker.capp=1"), "Did you mean 'cap'"),
        (("status", "none.db"), "make one with: empatheia study init"),
        (("serve", "none.db"), "no study in sqlite:///none.db"),
        (("report", "none.db"), "no study in"),
        (("plan",), "give one of --shares"),
        (("plan", "--shares", "a,b"), "two numbers"),
        (("status", "mysql://x"), "no store of kind 'mysql'"),
    ],
)
def test_mistakes_are_told_on_one_line(cli, tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    done = cli("study", *arguments)
    assert done.code != 0 and told in done.err and "Traceback" not in done.err, done.err
    assert list(tmp_path.iterdir()) == []


def test_plans_and_invitations(cli, tmp_path):
    assert "dialogues x 4 raters" in cli("study", "plan", "--shares", "0.32,0.35").out
    found = json.loads(cli("study", "plan", "--difference", "0.3", "--raters", "1", "--json").out)
    assert found["raters"] == 1 and found["ratings"] == found["items"]
    fill(Store(str(tmp_path / "s.db")), meed2("worker.entry=invited"), made_items(10))
    links = cli("study", "invite", str(tmp_path / "s.db"), "-n", "3", "--base", "https://x.example").out.split()
    assert len(set(links)) == 3 and all(link.startswith("https://x.example/?invitation=") for link in links)
    desk = Desk(Store(str(tmp_path / "s.db")))
    assert desk.sessions.session(desk.sessions.enter_invited(links[0].partition("=")[2]))[0] == 1


class Prefers:
    """A judge that prefers replies of A."""

    model = "made-up"

    def ask(self, messages, **_):
        shown = messages[-1]["content"]
        choice = "1" if shown.index("A says") < shown.index("B says") else "2"
        text = json.dumps(dict.fromkeys(("empathy", "relevance", "fluency", "overall"), choice))
        return ChatAnswer(text, "stop", "made-up", 1, 1, 1, 0.0)


@pytest.mark.parametrize("protocol", ["ab", "drag"])
def test_a_judge_is_beside_people_and_never_among_them(tmp_path, protocol):
    """People always prefer A, and so does the judge."""
    design = simple(protocol, composition={"items_per_hit": 5, "raters": 2})
    store = Store(str(tmp_path / "s.db"))
    desk = fill(store, design, made_items(5))
    for name in ("w1", "w2"):
        worker = desk.sessions.session(desk.sessions.enter(name))[0]
        seat = desk.seats.take(worker)
        for screen in desk.seats.screens(seat.hit, seat.seat):
            for asked in questions(design, screen):
                if protocol == "ab":
                    card, value = -1, "first" if screen.order[0] == 0 else "second"
                else:
                    card, value = screen.order.index(asked.card), "good" if asked.card == 0 else "bad"
                desk.ratings.rate(
                    worker, seat.assignment, screen.place, card, "quality", value, f"{screen.place}{card}"
                )
        desk.submissions.submit(worker, seat.assignment)
    before = study_results(store, 50).to_dict()
    verdicts = ask_judge(design, store.items().values(), ("A", "B"), Prefers(), tmp_path / "judged")
    assert {verdict.outcome for verdict in verdicts} == {"win"} and len(verdicts) == 5
    keep_verdicts(store, verdicts)
    keep_verdicts(store, verdicts)
    after = study_results(store, 50)
    assert after.judge[0].percent == 100 and after.judge[0].n == 5
    assert after.to_dict() | {"judge": []} == before
    assert "not people" in report_page(after)


def started(db: str, port: int = 0) -> tuple[Fresh, str]:
    process = Fresh(["-m", "empatheia", "study", "serve", db, "--port", str(port)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def post(url: str, token: str, body: dict, method: str = "POST") -> dict:
    head = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, json.dumps(body).encode(), head, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def test_a_killed_server_has_every_answer_it_acknowledged(tmp_path):
    db = str(tmp_path / "s.db")
    fill(Store(db), meed2("worker.entry=open", "onboarding.warm_up=null"), made_items(40))
    acknowledged: dict[str, str] = {}
    port, token, assignment = 0, "", 0
    for life in range(3):
        process, address = started(db, port)
        port = int(address.rstrip("/").rsplit(":", 1)[1])
        token = post(address + "api/enter", "", {"query": {"worker": "w"}})["token"]
        post(address + "api/consent", token, {})
        page = post(address + "api/take", token, {})
        assert assignment in (0, page["assignment"])
        assignment = page["assignment"]
        kept = {f"{answer['task']}/{answer['card']}": answer["value"] for answer in page["answers"]}
        different = {place for place, value in acknowledged.items() if kept.get(place) != value}
        assert len(different) <= 1  # one may have been changed by an answer whose receipt was not seen
        acknowledged = kept
        killer = threading.Timer(0.15 + 0.2 * life, process.send_signal, [signal.SIGKILL])
        killer.start()
        try:
            for number in range(10_000):
                task, card = number // 2 % 10, number % 2
                value = ("good", "okay", "bad")[(number + life) % 3]
                answer = {"assignment": assignment, "task": task, "card": card, "criterion": "quality", "value": value}
                post(address + "api/rating", token, answer | {"client": f"{life}-{number}"}, "PUT")
                acknowledged[f"{task}/{card}"] = value
        except (
            urllib.error.URLError,
            http.client.HTTPException,
            ConnectionError,
            TimeoutError,
        ):  # cut half through, too
            pass
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    desk = Desk(Store(db))
    kept = {f"{answer['task']}/{answer['card']}": answer["value"] for answer in desk.ratings.answers(1, assignment)}
    different = {place for place, value in acknowledged.items() if kept.get(place) != value}
    assert acknowledged and len(different) <= 1


def test_bonuses_as_the_platform_takes_them(cli, tmp_path):
    """Who won the bonus, and each further HIT of one submission, which the platform pays only once."""
    db = str(tmp_path / "s.db")
    out = tmp_path / "b.csv"
    more = ("composition.raters=3", "composition.items_per_hit=5", "worker.cap=2")
    desk = fill(Store(db), meed2(*more), made_items(10))
    done = cli("study", "bonuses", db, "-o", str(out))
    assert done.out.strip() == "no bonus is owed; nothing was written" and not out.exists()
    for name, platform, n, kind in (("a", "s-a", 1, "okay"), ("b", "=s+b", 2, "okay"), ("c", "", 1, "okay")):
        (rater,) = crowd_of({kind: 1}, Opinion({}, {}))
        worker = desk.sessions.session(desk.sessions.enter(name))[0]
        desk.sessions.consent(worker)
        for _ in range(n):
            seat = desk.seats.take(worker, platform)
            assert seat.is_new
            work_through(desk, rater, name)
    done = cli("study", "bonuses", db, "-o", str(out))
    assert done.code == 0 and "1 payments are left out" in done.err and "no ?assignment=" in done.err
    assert out.read_text().splitlines() == ["s-a,0.10", "'=s+b,0.60"]  # 0.10 twice, and 0.40 for the second HIT
    assert "2 bonuses, 0.70 USD" in done.out


@pytest.mark.parametrize("null", [False, True])
def test_a_rehearsal_looks_like_a_study(cli, tmp_path, files, null):
    """Made-up raters take their time and find the better system; with --null there is nothing to find."""
    db = str(tmp_path / "s.db")
    given = ("--outputs", files[0], "--outputs", files[1], "--set", "composition.items_per_hit=4")
    assert cli("study", "init", "studies/gao_ratings", *given, "--db", db).code == 0
    done = cli("study", "simulate", db, "--raters", "honest=12", *(["--null"] if null else []))
    assert done.code == 0 and "made-up quality" in done.err, done.err
    assert ("a +0.00, b +0.00" in done.err) == null
    best = "a" if "a +0.60" in done.err else "b"
    found = json.loads(cli("study", "report", db, "--json").out)
    assert found["sheets"]["all"] == 25 and all(row["minutes"] > 1 for row in found["workers_each"])
    assert len(found["workers_each"]) == 12  # each has their share
    assert len(found["differences"]) == 3
    for row in found["differences"]:
        low, high = row["delta_interval"]
        assert abs(row["delta"]) < 0.3 if null else (row["delta"] > 0) == (best == "a")
        assert low < row["delta"] < high
    if not null:
        assert min(row["p_adjusted"] for row in found["differences"]) < 0.01


def test_made_up_workers_go_through_every_design_that_rates(cli, tmp_path):
    """Live talks with their comparison, and turns; a collection is refused."""
    dialogues = tmp_path / "d.jsonl"
    rows = [{"id": f"{i}", "turns": ["I lost my dog.", "Oh no!", "He was old."]} for i in range(10)]
    dialogues.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for design, given in (
        ("live", ("--system", "one=x", "--system", "two=y", "--set", "composition.hits=4")),
        ("turn_annotation", ("--outputs", str(dialogues), "--set", "worker.entry=open")),
    ):
        db = str(tmp_path / f"{design}.db")
        assert cli("study", "init", f"studies/{design}", *given, "--db", db).code == 0
        done = cli("study", "simulate", db, "--raters", "honest=4,random=1")
        assert done.code == 0 and "handed in" in done.out, done.err
        found = json.loads(cli("study", "report", db, "--json").out)
        assert found["sheets"]["all"] > 2
    assert {row["criterion"] for row in found["agreement"]} >= {"emotion"}
    assert next(row["alpha"] for row in found["agreement"] if row["criterion"] == "emotion") > 0.3
    db = str(tmp_path / "c.db")
    assert cli("study", "init", "studies/collect", "--db", db).code == 0
    done = cli("study", "simulate", db)
    assert done.code == 2 and "made-up workers only rate" in done.err


def test_what_a_study_costs_is_told_with_what_it_rests_on(cli, tmp_path, files):
    outputs = ("--outputs", files[0], "--outputs", files[1])
    done = cli("study", "init", "studies/meed2", *outputs, "--dry-run")
    # 2 HITs x 4 raters = 8 seats; 8 x 0.40 x 1.2 = 3.84; with every bonus 8 x 0.50 x 1.2 = 4.80
    assert "cost: 3.84 to 4.80 USD (8 seats x 0.40, up to 0.50 with every bonus, + 20 % for the platform)" in done.err
    given = ("--difference", "0.3", "--raters", "3", "--design", "studies/rashkin_ratings", "--systems", "2")
    done = cli("study", "plan", *given, "--json")
    found = json.loads(done.out)
    # gold is the third system, one reply a screen, ten screens a HIT, 1.60 and 20 %
    seats = -(-3 * found["items"] // 10) * 3
    assert found["cost"]["seats"] == seats and found["cost"]["least"] == pytest.approx(seats * 1.6 * 1.2)
    told = cli("study", "plan", *given).out
    for words in ("assumed: ratings deviate by 1.3 points", "correlate by 0.3, so 1.6 of them", f"{seats:,} seats"):
        assert words in told
    assert "cost: name the study with --design" in cli("study", "plan", "--prefer", "0.6").out
    assert "assumed: 60 % of choices" in cli("study", "plan", "--prefer", "0.6").out
    for wrong in (("--difference", "nan"), ("--difference", "0.3", "--deviation", "inf"), ("--prefer", "nan")):
        done = cli("study", "plan", *wrong)
        assert done.code == 2 and "accepted" in done.err and "Traceback" not in done.err
    done = cli("study", "plan", "--prefer", "0.6", "--design", "studies/collect")
    assert done.code == 2 and "accepted: designs that rate or compare replies" in done.err


def test_the_axis_of_the_means_is_the_whole_scale(tmp_path):
    """Two means of nearly the same height stand at nearly the same place."""
    from empatheia.documents.document import Document
    from empatheia.documents.html import to_html
    from empatheia_people.studies.report import _points

    drawn = to_html(Document("", blocks=_points([("a", 3.0, (2.9, 3.1)), ("b", 3.1, (3.0, 3.2))], 1.0, 5.0)))
    first, second = (float(x) for x in re.findall(r'circle cx="([\d.]+)"', drawn))
    assert first == 470 and second - first == pytest.approx(0.1 / 4 * 420, abs=0.1)
    assert re.findall(r">(\d)</text>", drawn) == ["1", "3", "5"]


def test_tables_for_latex(cli, tmp_path, files):
    db = str(tmp_path / "s.db")
    system = f"ED:a_1 & b={files[0]}"
    cli("study", "init", "studies/meed2", "--outputs", system, "--outputs", f"ED={files[1]}", "--db", db)
    cli("study", "simulate", db, "--raters", "honest=4")
    told = cli("study", "report", db, "--latex").out
    assert told.count(r"\toprule") == 1 and r"System & n & good (\%) & okay (\%) & bad (\%) \\" in told
    (line,) = [line for line in told.splitlines() if line.startswith(r"a\_1 \& b &")]
    assert re.fullmatch(r"a\\_1 \\& b & \d+( & \d+\.\d \[\d+\.\d, \d+\.\d\]){3} \\\\", line)
    done = cli("study", "report", db, "--latex", "--json")
    assert done.code == 2 and "choose one" in done.err
