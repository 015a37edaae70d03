"""``empatheia score``: two text files, released files, several systems, tables and JSON, and what it refuses."""

import csv
import json
import resource
import subprocess
import sys

import pytest

from empatheia_research.corpora.loading import sample_root

SAMPLES = sample_root() / "replies"


@pytest.fixture
def texts(tmp_path):
    hyp, ref = tmp_path / "hyp.txt", tmp_path / "ref.txt"
    hyp.write_text("that is great !\n\ni am sorry to hear that .\n")
    ref.write_text("that is great news !\nwhy ?\ni am so sorry to hear that .\n")
    return hyp, ref


def test_two_text_files(cli, texts):
    hyp, ref = texts
    done = cli("score", "--hyp", str(hyp), "--ref", str(ref))
    assert done.code == 0, done.err
    assert "hyp.txt: 3 replies" in done.out
    lines = {line.split("  ")[1]: line for line in done.out.splitlines() if line.startswith("  ")}
    assert "bleu_corpus_4" in lines["BLEU-4"] and "percent" in lines["BLEU-4"]
    assert "1 blank replies (items at lines 2)" in done.out
    assert "perplexity" in done.out and "empatheia evaluate RUN" in done.out
    assert "tok:" in done.out and "refs:" in done.out


def test_json_of_two_text_files(cli, texts):
    from sacrebleu import corpus_bleu

    hyp, ref = texts
    done = cli("score", "--hyp", str(hyp), "--ref", str(ref), "--metrics", "bleu_sacre,dist_corpus_1", "--json")
    data = json.loads(done.out)
    (system,) = data["systems"]
    assert system["blank_replies"] == {"count": 1, "lines": [2]}
    values = {score["metric"]: score for score in system["scores"]}
    theirs = corpus_bleu(hyp.read_text().split("\n")[:3], [ref.read_text().split("\n")[:3]])
    assert values["bleu_sacre"]["value"] == pytest.approx(theirs.score)
    assert values["dist_corpus_1"]["interval"][0] <= values["dist_corpus_1"]["value"]
    assert "bootstrap-1000" in values["bleu_sacre"]["signature"]


@pytest.mark.parametrize("format", ["moel", "mime", "empdg", "kemp", "cem"])
def test_the_profile_of_each_format(cli, format):
    path = SAMPLES / f"{format}.txt"
    done = cli("score", str(path), "--format", format, "--profile", format, "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert (data["format"], data["profile"]) == (format, format)
    for system in data["systems"]:
        assert system["n"] == 2
        assert {"corpus BLEU-2", "D-1", "length"} <= {score["column"] for score in system["scores"]}
        assert "PPL" in {column["column"] for column in system["missing"]}


def test_several_systems_are_rows_of_one_table(cli):
    done = cli("score", str(SAMPLES / "moel.txt"), "--profile", "moel", "--bootstrap", "0")
    rows = [line for line in done.out.splitlines() if line.strip().startswith(("trs ", "trs+multitask ", "MOE"))]
    assert [row.split()[0] for row in rows] == ["trs", "trs+multitask", "MOE", "MOE+oracle"]
    assert {row.split()[1] for row in rows} == {"2"}
    one = cli("score", str(SAMPLES / "moel.txt"), "--system", "moe", "--system", "trs")
    assert "trs+multitask" not in one.out


def test_what_a_file_states_is_shown_apart(cli):
    done = cli("score", str(SAMPLES / "mime.txt"), "--profile", "mime", "--system", "greedy")
    assert "stated in the file, not measured here: Loss 3.5, PPL 33.1155, Accuracy 0.5" in done.out


def test_stripping_as_released(cli, tmp_path):
    path = tmp_path / "KEMP.txt"
    path.write_text("Emotion:sad \nContext:['oh'] \nPred:dear ? \nRef:dear ? \n")
    plain, released = (
        json.loads(cli("score", str(path), "--metrics", "bleu_corpus_1", "--json", *flags).out)
        for flags in ((), ("--as-released",))
    )
    values = [data["systems"][0]["scores"][0]["value"] for data in (plain, released)]
    assert values == pytest.approx([100, 50])  # "ar ?" for "dear ?"


def test_without_torch_and_under_a_second(texts):
    hyp, ref = texts
    code = (
        "import sys\n"
        "from empatheia.cli import main\n"
        f"try: main(['score', '--hyp', {str(hyp)!r}, '--ref', {str(ref)!r}])\n"
        "except SystemExit as ended: assert not ended.code\n"
        "assert not {'torch', 'transformers', 'nltk'} & set(sys.modules)\n"
    )
    took = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(took) < 1.3, took  # seconds of processor time; an interpreter alone takes some 0.05


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "name files of replies, or text files"),
        (("{moel}", "--hyp", "{moel}"), 2, "name files of replies"),
        (("{moel}", "{moel}"), 2, "moel.txt: trs is named twice; name each file once"),
        (("{moel}", "--baseline", "trz"), 2, "there is no one system 'trz'. Did you mean 'trs'?"),
        (("{moel}", "--csv", "--latex"), 2, "--csv, --latex and --json are three forms of one answer"),
        (("{moel}", "--bertscore-layer", "3"), 2, "--bertscore-layer and --bertscore-baseline go with --bertscore"),
        (("{moel}", "--bertscore", "./none"), 3, "no model folder './none'"),
        (("{moel}", "--ref", "{moel}"), 2, "--ref and --context go with --hyp"),
        (("{moel}", "--profile", "moell"), 2, "unknown profile 'moell'. Did you mean 'moel'?"),
        (("{moel}", "--metrics", "blue"), 2, "no metric is called 'blue'"),
        (("{moel}", "--format", "text"), 2, "unknown format 'text'"),
        (("{moel}", "--system", "nobody"), 2, "has no system 'nobody'"),
        (("{moel}", "--words", "bpe"), 2, "unknown words 'bpe'"),
        (("{moel}", "--bootstrap", "1"), 2, "--bootstrap is 1"),
        (("{moel}", "--format", "kemp"), 1, "moel.txt:3: "),
        (("nowhere.txt",), 1, "no such file: nowhere.txt"),
    ],
)
def test_refusals(cli, arguments, code, message):
    done = cli("score", *(argument.format(moel=SAMPLES / "moel.txt") for argument in arguments))
    assert done.code == code
    assert message in done.err and done.err.count("\n") == 1
    assert done.out == ""


def test_misaligned_text_files(cli, texts):
    hyp, ref = texts
    ref.write_text("only one\n")
    done = cli("score", "--hyp", str(hyp), "--ref", str(ref))
    assert done.code == 1
    assert "hyp.txt has 3 lines" in done.err and "line 2 has no counterpart" in done.err


# -- several systems against one -----------------------------------------------------------------------------

REPLIES = ("so sad !", "how nice !", "oh no !", "why ?", "when ?", "great !", "i see .", "and then ?")
ITEMS = [{"context": [f"turn {i} ."], "reference": f"{i} {reply}"} for i, reply in enumerate(REPLIES)]


@pytest.fixture
def two(tmp_path):
    """One system that says the reference, in order; one that never does, of six of the items and backwards."""
    good = [{**item, "reply": item["reference"]} for item in ITEMS]
    poor = [{**item, "reply": "well"} for item in reversed(ITEMS[:6])]
    for name, rows in (("good", good), ("poor", poor)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "poor.jsonl", tmp_path / "good.jsonl"


def test_several_files_are_compared_item_by_item(cli, two):
    poor, good = map(str, two)
    done = cli("score", poor, good, "--metrics", "bleu_corpus_1", "--bootstrap", "199", "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert [(each["system"], each["n"]) for each in data["systems"]] == [("poor.jsonl", 6), ("good.jsonl", 8)]
    (tests,) = data["tests"]
    assert (tests["system"], tests["baseline"]) == ("good.jsonl", "poor.jsonl")
    assert (tests["n"], tests["n_left_out"]) == (6, 2)
    (test,) = tests["tests"]
    assert test["difference"] == 100 and test["interval"] == [100, 100]
    # of the 64 ways to exchange items only the given one and its mirror are as extreme
    assert 0 < test["p_value"] < 0.1 and test["p_adjusted"] == test["p_value"]
    turned = json.loads(cli("score", poor, good, "--metrics", "bleu_corpus_1", "--baseline", good, "--json").out)
    assert turned["tests"][0]["tests"][0]["difference"] == -100
    shown = cli("score", poor, good, "--metrics", "bleu_corpus_1")
    assert "good.jsonl minus poor.jsonl, paired over 6 items; 2 in one of them only, left out:" in shown.out
    assert "bleu_corpus_1        +100  +100 to +100" in shown.out


def test_systems_of_one_file_and_of_text_files(cli, texts, tmp_path):
    one = cli("score", str(SAMPLES / "moel.txt"), "--profile", "moel", "--baseline", "trs")
    assert one.out.count(" minus trs, paired over 2 items") == 3 and "Holm over 3 systems" in one.out
    assert "paired" not in cli("score", str(SAMPLES / "moel.txt"), "--profile", "moel").out
    hyp, ref = texts
    (other := tmp_path / "other.txt").write_text("why\nwhy\nwhy\n")
    words = ("--hyp", str(hyp), "--hyp", str(other), "--ref", str(ref), "--metrics", "bleu_corpus_1")
    assert "other.txt minus hyp.txt, paired over 3 items:" in cli("score", *words).out


def test_files_without_a_common_item_are_not_compared(cli, two, tmp_path):
    (strange := tmp_path / "strange.jsonl").write_text('{"reply": "a", "reference": "b", "context": ["c"]}\n')
    done = cli("score", str(two[0]), str(strange))
    assert done.code == 1 and "no item is in both files (1 and 6 items)" in done.err


def test_tables_for_a_paper(cli, two):
    words = ("score", *map(str, two), "--metrics", "bleu_corpus_1,dist_corpus_1", "--bootstrap", "999")
    rows = list(csv.DictReader(cli(*words, "--csv").out.splitlines()))
    assert [(row["system"], row["metric"]) for row in rows] == [
        (f"{name}.jsonl", metric) for name in ("poor", "good") for metric in ("bleu_corpus_1", "dist_corpus_1")
    ]
    assert rows[2]["value"] == "100.0" and rows[2]["difference"] == "100.0" and rows[0]["difference"] == ""
    assert rows[2]["baseline"] == "poor.jsonl" and float(rows[2]["p_holm"]) < 0.05
    table = cli(*words, "--latex").out.splitlines()
    assert table[2] == r"System & $n$ & bleu\_corpus\_1 & dist\_corpus\_1 \\"
    assert table[5].startswith("good.jsonl & 8 & 100.00$^{*}$ & ") and table[4].startswith("poor.jsonl & 6 & 0.00 & ")
    assert "Holm-adjusted p < 0.05 against poor.jsonl" in table[-1]


def test_a_name_that_latex_or_a_spreadsheet_would_obey(cli, tmp_path):
    rows = [{"reply": "a", "reference": "a", "system": name} for name in ("=1+1", "50%_&")]
    (file := tmp_path / "odd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("score", str(file), "--metrics", "bleu_corpus_1", "--bootstrap", "0")
    assert "'=1+1" in cli(*words, "--csv").out
    assert r"50\%\_\& & 1 & " in cli(*words, "--latex").out
