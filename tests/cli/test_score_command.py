"""``empatheia score``: two text files, released files, several systems, tables and JSON, and what it refuses."""

import json
import resource
import subprocess
import sys

import pytest

from empatheia.corpora.loading import sample_root

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
        ((), 2, "name one file of replies, or text files"),
        (("{moel}", "--hyp", "{moel}"), 2, "name one file of replies"),
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
