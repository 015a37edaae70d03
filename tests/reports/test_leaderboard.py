"""The leaderboard: tables made of records, printed rows under them, what the script reads, the page in a browser."""

from __future__ import annotations

import html
import json
import multiprocessing
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from empatheia.errors import DataError
from empatheia.metrics.records import measured_of
from empatheia.replies.alignment import align, read_answers
from empatheia.writing import write_whole
from empatheia_research.corpora.loading import sample_root
from empatheia_research.reports.leaderboard import leaderboard_html, reply_data, write_leaderboard
from empatheia_research.reports.record_tables import in_unit, tables

ROOT = Path(__file__).resolve().parents[2]
REPLIES = sample_root() / "replies"
BROWSER = next((found for name in ("chromium", "google-chrome", "chrome") if (found := shutil.which(name))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium or google-chrome on this machine")


def score(name: str, value: float | None, unit: str = "percent", interval: tuple | None = None, n: int = 100) -> dict:
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "n": n,
        "higher_is_better": True,
        "interval": interval,
        "signature": f"refs:abc|score:{name}",
        "parts": {},
    }


def record(recipe: str, metrics: dict, size: str = "cpu", seed: int = 1, **more: object) -> dict:
    return {
        "recipe": recipe,
        "size": size,
        "seed": seed,
        "note": "",
        "training_seconds": 90.0,
        "parameters": 2_000_000,
        "environment": {"device": "2 CPU cores", "commit": "0123456789abcdef", "packages": {"torch": "2"}},
        "metrics": metrics,
        **more,
    }


def responder(recipe: str, accuracy: float, ppl: float, **more) -> dict:
    metrics = {
        "accuracy": score("accuracy", accuracy, interval=(accuracy - 1, accuracy + 1)),
        "ppl_word": score("ppl_word", ppl, "perplexity"),
        "dist_corpus_1": score("dist_corpus_1", 0.0191, "fraction"),
    }
    return record(recipe, metrics, **more)


RECORDS = [
    responder("gao2021/soft", 41.0, 40.0),
    responder("gao2021/soft", 43.0, 39.0, seed=2, note="a wide encoder"),
    responder("mine/<script>alert(1)</script>", 9.5, 120.0, size="full"),
    record(
        "reccon/entailment",
        {
            "fold1 pairs, threshold 0.5": {"positive_f1": 60.0, "threshold": 0.5, "n_positive": 3, "n_negative": 4},
            "fold1 pairs, threshold tuned on valid": {
                "threshold": 0.7,
                "scores": {"entailment_f1_positive": score("entailment_f1_positive", 0.65, "fraction", (0.6, 0.7))},
            },
            "fold2 pairs, threshold tuned on valid": {"positive_f1": 50.0, "threshold": 0.7},
        },
    ),
    record("epitome/shared", {"exploration: accuracy": score("accuracy", 90.0)}),
    record("strange/thing", {"deep": {"inside": score("any", 1.0)}, "count": 3}),
]


def test_tables_by_task():
    found = {table.key: table for table in tables(RECORDS)}
    assert list(found) == ["responders", "turns", "mechanisms", "other"]
    assert [row.run for row in found["responders"].rows][:2] == ["gao2021/soft/cpu-seed1", "gao2021/soft/cpu-seed2"]
    assert [column.key for column in found["responders"].columns] == ["accuracy", "ppl_word", "dist_corpus_1"]
    assert found["responders"].rows[0].values["dist_corpus_1"].value == pytest.approx(1.91)
    assert found["other"].rows[0].run == "strange/thing/cpu-seed1"
    tuned = found["turns"].rows[1]
    assert tuned.labels == {"fold": "1", "threshold or rule": "0.7 (tuned on valid)"}
    value = tuned.values["entailment_f1_positive"]
    assert (value.value, value.interval) == (pytest.approx(65), pytest.approx((60, 70)))
    assert found["turns"].rows[0].values["entailment_f1_positive"].n == 7
    assert [(row.name, row.score.value) for row in measured_of(RECORDS[-1]).rows] == [("deep: inside", 1.0)]
    assert in_unit(0.5, "fraction", "percent") == 50 and in_unit(7, "perplexity", "perplexity") == 7


def test_printed_rows_stand_under_their_runs():
    found = {table.key: table for table in tables(RECORDS)}
    low, high, own = found["responders"].rows
    assert low.printed is not None and low.printed.source == "gao2021, Table 2, Ours(Soft)"
    assert low.printed.values["accuracy"][0] == "42.4 ± 0.3" and low.printed.values["accuracy"][2] == "missed"
    assert high.printed is not None and high.printed.values["accuracy"][2] == "met"
    assert low.printed.values["dist_corpus_1"][0] == "1.7 ± 0.3"  # a fraction in print, percent here
    assert own.printed is None
    untuned, tuned, other_fold = found["turns"].rows
    assert tuned.printed is not None and tuned.printed.values["entailment_f1_positive"][0] == "64.28"
    assert untuned.printed is None and other_fold.printed is None
    (mechanism,) = found["mechanisms"].rows
    assert mechanism.printed is not None and "recalled" in mechanism.printed.source
    smoke = tables([responder("gao2021/soft", 41.0, 40.0, size="smoke")])
    assert smoke[0].rows[0].printed is None
    small = tables([responder("gao2021/soft", 41.0, 40.0, size="row")])
    assert small[0].rows[0].printed is None and small[0].rows[0].values["accuracy"].value == 41.0


class Cells(HTMLParser):
    """Heads, and the values the script sorts by, of every table of runs."""

    def __init__(self) -> None:
        super().__init__()
        self.heads: dict[str, list[tuple[str, str]]] = {}
        self.rows: dict[str, list[list[str]]] = {}
        self.runs: list[dict[str, str]] = []
        self._table = ""
        self._is_ours = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if tag == "table" and "data-table" in given:
            self._table = given["data-table"]
        elif tag == "tr":
            self._is_ours = given.get("class") == "ours"
            if self._is_ours:
                self.rows.setdefault(self._table, []).append([])
        elif tag == "tbody" and given.get("class") == "run":
            self.runs.append(given)
        elif "data-kind" in given:
            self.heads.setdefault(self._table, []).append((given["data-kind"], given["data-first"]))
        elif self._is_ours and tag in ("td", "th") and self._table:
            self.rows[self._table][-1].append(given["data-value"])


def parsed(text: str) -> Cells:
    cells = Cells()
    cells.feed(text)
    return cells


def data_of(page: str) -> dict:
    """What the script reads."""
    found = re.search(r'id="replies">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def test_what_the_script_sorts_and_filters_by():
    cells = parsed(leaderboard_html(RECORDS))
    for key, rows in cells.rows.items():
        kinds = cells.heads[key]
        assert all(len(row) == len(kinds) for row in rows), key
        for row in rows:
            for value, (kind, _) in zip(row, kinds, strict=True):
                assert kind == "text" or value == "" or float(value) is not None
    (accuracy, ppl) = cells.heads["responders"][1:3]
    assert accuracy == ("number", "desc") and ppl == ("number", "asc")
    assert [row[1] for row in cells.rows["responders"]] == ["41", "43", "9.5"]
    texts = {run["data-run"]: run["data-text"] for run in cells.runs}
    assert "a wide encoder" in texts["gao2021/soft/cpu-seed2"] and "0123456789abcdef" in texts["gao2021/soft/cpu-seed2"]
    assert all(text == text.lower() for text in texts.values())
    assert {run["data-size"] for run in cells.runs} == {"cpu", "full"}


def test_signatures_and_facts_are_in_the_page():
    page = leaderboard_html(RECORDS)
    for wanted in ("refs:abc|score:accuracy", "40.00 to 42.00", "01234567", "2 CPU cores", "1.5", "2.0", "torch 2"):
        assert wanted in page, wanted
    assert 'id="run:gao2021/soft/cpu-seed2"' in page and 'href="#run=gao2021/soft/cpu-seed2"' in page


def test_everything_is_escaped_and_nothing_is_loaded(tmp_path):
    bad = "</script><img src=x onerror=alert(1)>\u202e & \u2028"
    rows = [{"context": [bad], "reference": bad, "emotion": bad, "predicted": [bad], "replies": {bad: bad}}]
    (tmp_path / "bad.jsonl").write_text("\n".join(map(json.dumps, rows)))
    items = align([read_answers(tmp_path / "bad.jsonl")])
    page = leaderboard_html([*RECORDS, record(bad, {}, note=bad)], items, [bad], bad)
    assert "<img" not in page and "<script>alert" not in page and page.count("</script>") == 2
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)|url\(|@import|https?://""", page)
    assert "default-src 'none'" in page and re.search(r"script-src 'sha256-[\w+/=]+'", page)
    data = data_of(page)
    assert data["items"][0][1][0].startswith("</script><img src=x") and "\u202e" not in data["items"][0][1][0]


def test_reply_data():
    files = [read_answers(REPLIES / "moel.txt"), read_answers(REPLIES / "replies.jsonl", name="other")]
    data = json.loads(reply_data(align(files)))
    assert data["systems"][0] == "moel.txt: trs" and data["systems"][-1] == "other: long"
    assert [item[0] for item in data["items"]] == ["#1", "#2"]
    identity, turns, reference, emotion, answers = data["items"][1]
    assert (identity, len(turns), emotion, len(answers)) == ("#2", 3, "lonely", 6)
    assert reference == "i am sorry . i hope you meet some people soon ."
    assert answers[-1] == [5, "i am sorry . i hope you meet some people .", ["sad", "lonely"], []]


def test_the_page_of_this_repository_holds_no_corpus_text(tmp_path):
    n_runs, n_items, notes = write_leaderboard(tmp_path / "page.html", ROOT / "results")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert n_runs == len(list((ROOT / "results").rglob("*-seed*.json"))) and notes == ()
    own = [json.loads(line) for line in (REPLIES / "replies.jsonl").read_text().splitlines()]
    data = data_of(page)
    assert n_items == len(own) and [item[1] for item in data["items"]] == [row["context"] for row in own]
    assert "self-written samples" in page
    assert "hit:" not in page and "published: " in page


def make_run(folder: Path, recipe: str, rows: list[dict]) -> Path:
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_text("data: {corpus: sample}\n")
    (folder / "metrics.json").write_text(json.dumps({"recipe": recipe, "size": "smoke", "seed": 1}))
    (folder / "outputs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    from empatheia_research.corpora import sample

    one, two = list(sample.load("test"))[:2]
    here = {"id": one.id, "turn": 1, "ref": one.turns[1].text, "emotion": one.emotion}
    there = {"id": two.id, "turn": 1, "ref": two.turns[1].text, "emotion": two.emotion}
    span = {"turn": 0, "start": 0, "end": 2}
    bad = {"turn": 5, "start": 0, "end": 2}
    made = {"predicted": one.emotion, "causes": [span, bad]}
    make_run(tmp_path / "runs" / "a", "x/one", [{**here, **made, "hyp": "Oh."}, {**there, "hyp": "First."}])
    make_run(tmp_path / "runs" / "b", "x/two", [{**there, "hyp": "Second."}])
    make_run(tmp_path / "runs" / "c", "x/labels", [{"id": "1", "text": "no reply", "gold": "sad"}])
    results = tmp_path / "results" / "x"
    results.mkdir(parents=True)
    for name, given in (("one", RECORDS[0]), ("two", RECORDS[1]), ("three", RECORDS[2])):
        (results / f"{name}-seed1.json").write_text(json.dumps(given))
    return tmp_path


def test_replies_of_runs_come_with_their_dialogues(runs):
    n_runs, n_items, notes = write_leaderboard(runs / "page.html", runs / "results", runs / "runs")
    page = (runs / "page.html").read_text(encoding="utf-8")
    data = data_of(page)
    assert (n_runs, n_items, data["systems"]) == (3, 2, ["x/one smoke-seed1", "x/two smoke-seed1"])
    assert notes == ("x/one smoke-seed1: 1 cause spans do not fit their turns and are left out",)
    first, second = data["items"]
    assert first[4] == [[0, "Oh.", [first[3]], [[0, 0, 2]]]] and len(first[1]) == 1 and first[1][0]
    assert [answer[1] for answer in second[4]] == ["First.", "Second."]
    assert "self-written samples" not in page


@pytest.mark.parametrize("field", ["value", "n"])
def test_a_number_beyond_all_measure_is_no_score(tmp_path, field):
    score = {"name": "loss", "value": 1.5, "unit": "nats", "n": 9, "higher_is_better": False}
    record = json.dumps({"recipe": "x", "size": "cpu", "seed": 1, "metrics": {"loss": score | {field: "NUMBER"}}})
    (tmp_path / "cpu-seed1.json").write_text(record.replace('"NUMBER"', "1e999"))
    with pytest.raises(DataError, match=r"cpu-seed1\.json is not a whole run record \(the score 'loss'"):
        write_leaderboard(tmp_path / "page.html", tmp_path)


def test_bad_places(tmp_path, cli):
    with pytest.raises(DataError, match=r"no folder .* of run records"):
        write_leaderboard(tmp_path / "page.html", tmp_path / "none")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "cpu-seed1.json").write_text('{"recipe": "x"')
    with pytest.raises(DataError, match=r"cpu-seed1\.json is not a whole run record"):
        write_leaderboard(tmp_path / "page.html", tmp_path / "broken")
    good = {"recipe": "x", "size": "cpu", "seed": 1, "metrics": {}}
    (tmp_path / "broken" / "cpu-seed2.json").write_text(json.dumps(good))
    assert write_leaderboard(tmp_path / "page.html", tmp_path / "broken")[0] == 1
    with pytest.raises(DataError, match="holds no run with replies"):
        write_leaderboard(tmp_path / "page.html", ROOT / "results", tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        write_leaderboard(tmp_path / "none" / "page.html", ROOT / "results")
    done = cli("leaderboard", "--results", str(ROOT / "results"), "--replies", str(tmp_path / "x.txt"))
    assert done.code == 1 and "no such file" in done.err
    out = tmp_path / "page.html"
    done = cli("leaderboard", "--results", str(ROOT / "results"), "--out", str(out))
    assert done.code == 0 and f"{out}: " in done.out and out.is_file()


BROKEN = {
    "no JSON": "{",
    "deep": "[" * 5000,
    "a list": [],
    "no metrics": {"metrics": None},
    "metrics of text": {"metrics": "x"},
    "a seed of text": {"seed": "1"},
    "a seed of thousands of digits": '{"recipe": "x", "size": "cpu", "metrics": {}, "seed": ' + "9" * 4000 + "}",
    "a recipe of numbers": {"recipe": 5},
    "a size of its own": {"size": "huge"},
    "an environment of text": {"environment": "x"},
    "minutes of text": {"training_seconds": "x"},
    "parameters of text": {"parameters": [1]},
    "a value of text": {"metrics": {"bleu_nltk_4": {"value": "x", "unit": "percent"}}},
    "a value without unit": {"metrics": {"bleu_nltk_4": {"value": 1.0}}},
    "an interval of one": {"metrics": {"bleu_nltk_4": {"value": 1.0, "unit": "percent", "interval": [1]}}},
    "items of text": {"metrics": {"bleu_nltk_4": {"value": 1.0, "unit": "percent", "n": "many"}}},
    "systems of text": {"metrics": {"systems": {"S0": "x"}, "S0: coverage": {"value": 1.0, "unit": "percent"}}},
    "packages of text": {"environment": {"packages": "x"}},
}


@pytest.mark.parametrize("name", BROKEN)
def test_one_malformed_record_hides_no_other(tmp_path, name, cli):
    good = {"recipe": "x", "size": "cpu", "seed": 1, "metrics": {"bleu_nltk_4": {"value": 1.0, "unit": "percent"}}}
    bad = BROKEN[name]
    (tmp_path / "cpu-seed1.json").write_text(json.dumps(good))
    (tmp_path / "cpu-seed2.json").write_text(
        bad if isinstance(bad, str) else json.dumps({**good, "seed": 2, **bad} if isinstance(bad, dict) else bad)
    )
    out = tmp_path / "page.html"
    done = cli("leaderboard", "--results", str(tmp_path), "--out", str(out))
    assert done.code == 0 and f"{out}: 1 runs" in done.out, done.err
    args = ["plot", "tradeoff", "--x", "bleu_nltk_4", "--y", "bleu_nltk_4", "--results", str(tmp_path)]
    done = cli(*args, "--out", str(tmp_path / "x.png"))
    assert done.code == 0, done.err


def browse(page: Path, address: str = "", actions: str = "") -> str:
    """The document after the script ran, and after ``actions`` if given."""
    assert BROWSER is not None
    if actions:
        text = re.sub(r"<meta http-equiv=.Content-Security-Policy.[^>]*>", "", page.read_text(encoding="utf-8"))
        page = page.with_name("acted.html")
        page.write_text(text.replace("</body>", f"<script>{actions}</script></body>"), encoding="utf-8")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=2000")
    profile = f"--user-data-dir={page.parent / 'profile'}"
    command = [BROWSER, *flags, profile, "--dump-dom", f"{page.as_uri()}{address}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout


def shown_runs(document: str) -> list[str]:
    table = document.partition('data-table="responders"')[2].partition("</table></div>")[0]
    bodies = re.findall(r'<tbody class="run" data-run="([^"]*)"[^>]*?( hidden="")?>', table)
    return [html.unescape(name) for name, hidden in bodies if not hidden]


@pytest.mark.slow
@needs_browser
def test_the_page_in_a_browser(runs):
    """Sorts, filters and shows replies, by the address and by hand."""
    page = runs / "page.html"
    write_leaderboard(page, runs / "results", runs / "runs")
    items = data_of(page.read_text(encoding="utf-8"))["items"]
    second_emotion = items[1][3]
    assert second_emotion != items[0][3]
    soft, wide, own = (f"{r['recipe']}/{r['size']}-seed{r['seed']}" for r in RECORDS[:3])

    by_address = browse(page, "#sort=responders.1.desc&size=cpu&printed=no&run=gao2021%2Fsoft%2Fcpu-seed2")
    assert shown_runs(by_address) == [wide, soft]
    assert 'aria-sort="descending"' in by_address and "2 of 3 rows" in by_address
    assert by_address.count('<tr class="printed" hidden="">') == 2
    assert re.search(r'<details class="record" id="run:gao2021/soft/cpu-seed2" open="">', by_address)

    actions = """
      const head = (n) => document.querySelectorAll('[data-table=responders] thead button')[n];
      head(2).click(); head(2).click();  // perplexity: lowest first, then highest
      const type = (id, text) => { const box = document.getElementById(id); box.value = text;
        box.dispatchEvent(new Event("input", { bubbles: true })); };
      document.getElementById("next").click();
      document.getElementById("systems").querySelectorAll("input")[0].click();
      document.title = location.hash;
    """
    by_hand = browse(page, "", actions)
    assert shown_runs(by_hand) == [own, soft, wide]
    cards = re.findall(r'<article class="card">(.*?)</article>', by_hand)
    assert len(cards) == 1 and "Second." in cards[0] and "x/two" in cards[0]
    title = re.search(r"<title>(.*?)</title>", by_hand)
    assert title is not None and "sort=responders.2.desc" in title.group(1) and "item=" in title.group(1)

    first = browse(page, "", "document.getElementById('query').value = 'wide ENCODER';"
                   "document.getElementById('filters').dispatchEvent(new Event('input'));")  # fmt: skip
    assert shown_runs(first) == [wide] and "1 of 3 rows" in first
    found = browse(page, f"#find={second_emotion}")
    replies = found.partition('id="shown"')[2].partition("<script")[0]
    assert "1 context<" in found and "Second." in replies and "Oh." not in replies
    assert '<mark class="cause">' in first and "as labelled" in first and "because of" in first


def write_again_and_again(path: Path, number: int) -> None:
    for _ in range(50):
        write_whole(path, f"page of process {number} " + 1000 * "x")


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here")
def test_several_processes_may_write_one_page(tmp_path):
    page = tmp_path / "page.html"
    fork = multiprocessing.get_context("fork")
    busy = [fork.Process(target=write_again_and_again, args=(page, number)) for number in range(4)]
    for process in busy:
        process.start()
    for process in busy:
        process.join()
    assert [process.exitcode for process in busy] == [0, 0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"] and page.read_text().endswith(1000 * "x")


def test_a_run_that_measures_the_weights_of_another_says_so(tmp_path):
    """It looked like the same system twice, trained in 0.0 minutes."""
    start = {"recipe": "imagine/moel", "training_seconds": 120.0}
    other = responder("gao2021/moel", 40.0, 40.0, start=start, training_seconds=0)
    page = leaderboard_html([other, responder("x/as_it_is", 1.0, 2.0, training_seconds=0)])
    assert "gao2021/moel<small>measures the weights of imagine/moel</small>" in page
    assert 'data-value="2">2.0<' in page and ">0.0<" not in page
    assert ">&lt; 0.1<" in leaderboard_html([responder("a/b_c", 1.0, 2.0, training_seconds=1)])
    assert ">a/b_<wbr>c<" in leaderboard_html([responder("a/b_c", 1.0, 2.0)])


def test_closed_details_do_not_widen_a_table():
    assert ".runs .more details { contain: inline-size; }" in leaderboard_html([])
