"""Whole runs: the same result from any number of shards and workers and after any interruption."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from dying import doubled
from hypothesis import given
from hypothesis import strategies as st

from empatheia.errors import ConfigError, DataError, MissingDependencyError
from empatheia.reading import read_record
from empatheia.taxonomy import EMOTIONS, LABELS_41
from empatheia_people.curation import global_steps, run, shards, workers
from empatheia_people.curation.labelling import (
    BY_MASS,
    BY_PEAK,
    emotionality,
    engine_of,
    load_labeller,
    mean_emotionality,
    measure_of,
    turn_weights,
)
from empatheia_people.curation.samples import corpus_files
from empatheia_people.curation.settings import CurationSettings, load_settings, memory_bytes
from empatheia_people.curation.shards import rows_of

SAMPLE = "recipes/curation/sample.yaml"


def settings(out: Path, **changes) -> CurationSettings:
    words = {"workers": 0, "label.classifier": "null", **changes}
    return load_settings(SAMPLE, [f"out={out}", *(f"{key}={value}" for key, value in words.items())])


def made(out: Path, **changes) -> dict:
    return run.Curation(settings(out, **changes)).run()


def corpus(out: Path) -> list[str]:
    """Every row of a result with its part and split, sorted by key."""
    return sorted(
        repr((row["key"], part, split, row)) for part, split, path in corpus_files(out) for row in rows_of(path)
    )


def files_of(out: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_mtime_ns, p.stat().st_ino) for p in out.rglob("shard-*") if p.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny_model) -> tuple[Path, dict]:
    """The sample, labelled by a tiny model, in one shard and one process."""
    out = tmp_path_factory.mktemp("curation") / "one"
    return out, made(out, shards=1, **{"label.classifier": tiny_model})


def test_the_sample_ends_with_all_stages(whole):
    out, record = whole
    assert record["files"] == 9 and record["dialogues"]["read"] == 5
    assert record["unreadable"] == 1 and "not well-formed" in record["problems"][0][1]
    dropped = record["dropped"]
    assert all(dropped[step] >= 1 for step in ("music", "addresses", "credits", "brackets", "short", "repetitions"))
    sizes = {part: own["dialogues"] for part, own in record["corpus"].items()}
    assert sizes["edos"] == record["rank"]["top"] == round(sum(sizes.values()) / 2)
    assert record["labelled"]["measure"] == BY_PEAK
    rows = [(part, row) for part, _, path in corpus_files(out) for row in rows_of(path)]
    low = min(row["emotionality"] for part, row in rows if part == "edos")
    assert low == record["rank"]["threshold"] >= max(row["emotionality"] for part, row in rows if part == "os")
    assert not list(out.rglob("*.part")) and (out / "curation.yaml").is_file()


@pytest.mark.parametrize("n", [2, 7])
def test_the_number_of_shards_changes_nothing(n, whole, tmp_path, tiny_model):
    record = made(tmp_path / "out", shards=n, **{"label.classifier": tiny_model})
    assert record["digest"] == whole[1]["digest"] and corpus(tmp_path / "out") == corpus(whole[0])


def test_a_second_run_does_nothing_and_a_changed_setting_only_what_depends_on_it(tmp_path):
    first = made(tmp_path / "out")
    before = files_of(tmp_path / "out")
    assert made(tmp_path / "out")["digest"] == first["digest"] and files_of(tmp_path / "out") == before
    made(tmp_path / "out", **{"split.by": "movie"})
    changed = {path for path, state in files_of(tmp_path / "out").items() if before.get(path) != state}
    assert changed and all("/corpus/" in path for path in changed)
    made(tmp_path / "out", shards=1)
    assert {path.name[:11] for path in (tmp_path / "out").rglob("shard-*")} == {"shard-00000"}


def test_a_changed_input_is_read_again(tmp_path):
    film = tmp_path / "in" / "a.srt"
    film.parent.mkdir()
    text = "1\n00:00:01,000 --> 00:00:02,000\nI am here.\n\n2\n00:00:02,100 --> 00:00:03,000\n- Where were you?\n"
    film.write_text(text)
    chosen = {"inputs": f"[{film.parent}]", "shards": 2}
    first = made(tmp_path / "out", **chosen)
    film.write_text(text.replace("here", "home"))
    second = made(tmp_path / "out", **chosen)
    assert first["corpus"] == second["corpus"] and first["digest"] != second["digest"]
    assert "I am home." in corpus(tmp_path / "out")[0]


class Killed(BaseException):
    """A process that ends at once."""


def test_killed_at_any_moment_and_resumed(tmp_path, monkeypatch):
    """A file appears by one call of ``replace``: the run is ended before and after each of them."""
    want = made(tmp_path / "whole")
    rename = Path.replace
    moments = 0

    def dying(at: int, after: bool) -> Callable:
        count = 0

        def replace(self, target):
            nonlocal count, moments
            count += 1
            moments = max(moments, count)
            if count == at and not after:
                raise Killed
            rename(self, target)
            if count == at:
                raise Killed

        return replace

    monkeypatch.setattr(Path, "replace", dying(0, False))
    made(tmp_path / "count")
    assert moments > 20
    out = tmp_path / "out"
    for at in range(1, moments + 1, 4):
        for after in (False, True):
            monkeypatch.setattr(Path, "replace", dying(at, after))
            with pytest.raises(Killed):
                made(tmp_path / f"{at}-{after}")
            monkeypatch.setattr(Path, "replace", rename)
            out = tmp_path / f"{at}-{after}"
            for path in out.rglob("shard-*.parquet"):
                list(rows_of(path))  # whole
            assert made(out)["digest"] == want["digest"]
    assert corpus(out) == corpus(tmp_path / "whole")


def test_a_full_disk_leaves_no_half_file(tmp_path, monkeypatch):
    flush, n = shards.RowWriter._flush, 0

    def full(self):
        nonlocal n
        n += 1
        if n == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(self)

    monkeypatch.setattr(shards.RowWriter, "_flush", full)
    with pytest.raises(OSError, match="No space"):
        made(tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.part"))
    assert len(list((tmp_path / "out").rglob("shard-*.parquet"))) == 1
    monkeypatch.setattr(shards.RowWriter, "_flush", flush)
    assert made(tmp_path / "out")["digest"] == made(tmp_path / "other")["digest"]


def test_a_shard_that_was_damaged_is_made_again(tmp_path):
    want = made(tmp_path / "out")
    (tmp_path / "out" / "dialogues" / "shard-00001.parquet").write_bytes(b"PAR1")
    (tmp_path / "out" / "unique" / "shard-00000.npy.json").write_text("{")
    assert made(tmp_path / "out")["digest"] == want["digest"]


def test_two_runs_of_one_folder(tmp_path):
    made(tmp_path / "out")
    with run._held(tmp_path / "out"), pytest.raises(DataError, match="another process is writing"):
        made(tmp_path / "out")


def test_bad_files_are_counted_and_listed(tmp_path):
    place = tmp_path / "in"
    place.mkdir()
    (place / "good.srt").write_text(
        "1\n00:00:01,000 --> 00:00:02,000\nHello there.\n\n2\n00:00:03,000 --> 00:00:04,000\n- Hi you.\n"
    )
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    (place / "bomb.xml").write_text(f'<!DOCTYPE d [<!ENTITY l0 "ha">{laughs}]><document><s>&l9;</s></document>')
    (place / "cut.zip").write_bytes(b"PK\x03\x04")
    (place / "one.srt").write_bytes(b"x")
    (place / "none.jsonl").write_bytes(b"")
    (place / "odd.json").write_text("[" * 5000)
    (place / "large.srt").write_bytes(b"1\n" * 600_000)
    record = made(tmp_path / "out", inputs=f"[{place}]", **{"read.most_mb": 1, "read.most_unreadable": 0.9})
    listed = {Path(where).name: why for where, why in record["problems"]}
    assert set(listed) == {"bomb.xml", "cut.zip", "one.srt", "none.jsonl", "odd.json", "large.srt"}
    assert "document type" in listed["bomb.xml"] and "1 bytes" in listed["one.srt"] and "1 MiB" in listed["large.srt"]
    assert record["unreadable"] == 6 and record["corpus"]["all"]["dialogues"] == 1


def test_too_many_unreadable_files_end_the_run_with_code_3(cli, tmp_path):
    place, out = tmp_path / "in", tmp_path / "out"
    place.mkdir()
    (place / "good.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\n- Hello there.\n- Hello you.\n")
    for number in range(2):
        (place / f"bad{number}.xml").write_bytes(b"<document><s>")
    words = ("curate", "run", SAMPLE, "--workers", "0", "--out", str(out), "--set", f"inputs=[{place}]")
    words += ("--set", "label.classifier=null")
    ended = cli(*words)
    assert ended.code == 3 and "2 of 3 files could not be read (66.7%" in ended.err and "Traceback" not in ended.err
    listed = read_record(out / "unreadable.json")
    assert listed["unreadable"] == 2 and [Path(where).name for where, _ in listed["problems"]] == [
        "bad0.xml",
        "bad1.xml",
    ]
    assert not (out / "corpus").exists() and "--set read.most_unreadable=0.667" in ended.err
    assert cli(*words, "--set", "read.most_unreadable=0.667").code == 0
    assert not (out / "unreadable.json").exists() and (out / "report.html").is_file()


def test_an_empty_result(tmp_path):
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nOh\n")
    told: list[str] = []
    chosen = settings(tmp_path / "out", inputs=f"[{tmp_path / 'a.srt'}]", **{"read.most_unreadable": 0})
    record = run.Curation(chosen, told.append).run()
    assert record["corpus"] == {} and "no dialogue is left" in told[-1]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="nothing to read"):
        made(tmp_path / "none", inputs=f"[{tmp_path / 'empty'}]")


def test_duplicates_and_endings_over_all_files(tmp_path):
    place = tmp_path / "in"
    place.mkdir()
    said = "1\n00:00:01,000 --> 00:00:02,000\n{0}\n\n2\n00:00:02,500 --> 00:00:03,000\n- I don't know!\n"
    for number in range(6):
        (place / f"{number}.srt").write_text(said.format("The same line." if number < 3 else f"Line number {number}."))
    for n in (1, 4):
        record = made(tmp_path / f"out{n}", inputs=f"[{place}]", shards=n, **{"clean.cap": 2})
        assert record["unique"] == {"dialogues": 6, "duplicates": 2, "over_cap": 2}
    assert corpus(tmp_path / "out1") == corpus(tmp_path / "out4")


# -- workers -------------------------------------------------------------------------------------------------


def test_workers_of_a_scheduler(tmp_path):
    from distributed import LocalCluster

    workers._distributed()
    want = made(tmp_path / "here")
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        there = settings(tmp_path / "there", shards=4).model_copy(update={"scheduler": address})
        assert run.Curation(there).run()["digest"] == want["digest"]


def test_workers_that_are_killed(tmp_path, monkeypatch):
    """Also while they start, when Dask's nanny leaves them dead: this waited for ever."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    with workers.started(2, "1GB") as own:
        found = dict(own.results(doubled, [(i, str(tmp_path / "once") if i == 3 else "") for i in range(6)]))
        assert found == {i: 2 * i for i in range(6)} and (tmp_path / "once").exists()
        died = dict(own.results(doubled, [(1, "always"), (2, "")]))
        assert isinstance(died[0], workers.DiedError) and died[1] == 4


def test_a_scheduler_whose_workers_are_all_gone(monkeypatch):
    """Dask waits for workers for ever."""
    from distributed import LocalCluster

    monkeypatch.setattr(workers, "LOST_SECONDS", 0)
    monkeypatch.setattr(workers, "LOOK_SECONDS", 0.1)
    workers._distributed()
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        workers.started(0, "1GB", cluster.scheduler_address) as others,
    ):
        cluster.scale(0)
        with pytest.raises(DataError, match=r"no worker was left for 0 seconds.*curate resume"):
            list(others.results(doubled, [(1, "")] * 3))


def test_a_shard_whose_workers_die_fails_alone(tmp_path, monkeypatch):
    class Dying(workers.Here):
        def results(self, function, tasks):
            for place, result in super().results(function, tasks):
                yield place, workers.DiedError("its worker died") if tasks[place].number == 1 else result

    tasks = settings(tmp_path / "out")
    monkeypatch.setattr(run, "started", lambda *_: nullcontext(Dying()))
    with pytest.raises(DataError, match=r"stage dialogues: 1 of 3 shards failed, first shard 1.*curate resume"):
        run.Curation(tasks).run()
    monkeypatch.undo()
    assert made(tmp_path / "out")["digest"] == made(tmp_path / "other")["digest"]


def test_no_scheduler_there(monkeypatch):
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 1)
    with pytest.raises(DataError, match="no Dask scheduler answers"), workers.started(0, "1GB", "tcp://127.0.0.1:9"):
        raise AssertionError


# -- the steps that see all, and emotionality ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("probabilities", "value"),
    [
        ({"joyful": 0.5, "sad": 0.2, "questioning": 0.2, "neutral": 0.1}, 0.7),
        (dict.fromkeys(LABELS_41, 1 / 41), 32 / 41),
        ({"neutral": 1.0}, 0.0),
    ],
)
def test_emotionality(probabilities, value):
    row = np.array([[probabilities.get(name, 0.0) for name in LABELS_41]])
    assert emotionality(row, LABELS_41)[0] == pytest.approx(value, abs=1e-12)
    assert measure_of(LABELS_41) == BY_MASS and measure_of(EMOTIONS) == BY_PEAK


def test_emotionality_of_a_dialogue():
    assert mean_emotionality([0.7, 0.0]) == pytest.approx(0.35) and mean_emotionality([0.7, 0, 0.5]) == pytest.approx(
        0.4
    )
    assert global_steps.wanted_number(0.5, 7) == 4 and global_steps.wanted_number(10, 7) == 7


@pytest.mark.parametrize("n", [1, 2, 7])
def test_of_equally_emotional_dialogues_the_smaller_key_is_taken(n, tmp_path, tiny_model, monkeypatch):
    """MEED2 checks, emotionality: of {a: .5, b: .7, c: .5} the first two are b and a, in any number of shards."""

    class Known:
        name, labels = "known", EMOTIONS

        def probabilities(self, texts, batch_size):
            peaks = [0.7 if "film b" in text else 0.5 for text in texts]
            return np.array([[peak] + [(1 - peak) / 31] * 31 for peak in peaks])

    place = tmp_path / "in"
    place.mkdir()
    said = (
        "1\n00:00:01,000 --> 00:00:02,000\nI saw film {0}.\n\n2\n00:00:02,500 --> 00:00:03,000\n- Was film {0} good?\n"
    )
    for name in "cab":
        (place / f"{name}.srt").write_text(said.format(name))
    monkeypatch.setattr("empatheia_people.curation.stages.load_labeller", lambda *_: Known())
    made(tmp_path / "out", inputs=f"[{place}]", shards=n, **{"label.classifier": tiny_model, "rank.top": 2})
    parts = {row["key"]: part for part, _, path in corpus_files(tmp_path / "out") for row in rows_of(path)}
    assert parts == {"a/a/00000": "edos", "b/b/00000": "edos", "c/c/00000": "os"}


def test_no_dialogue_spans_two_files(tmp_path):
    """MEED2 checks, time rule: the last turn of a file and the first of the next are parted, whatever their times."""
    place = tmp_path / "in"
    place.mkdir()
    said = "1\n00:00:0{0},000 --> 00:00:0{0},900\nI say {0}.\n\n2\n00:00:0{1},000 --> 00:00:0{1},900\n- You say {1}.\n"
    (place / "cd1.srt").write_text(said.format(1, 2))
    (place / "cd2.srt").write_text(said.format(3, 4))
    made(tmp_path / "out", inputs=f"[{place}]", shards=1)
    rows = [row for *_, path in corpus_files(tmp_path / "out") for row in rows_of(path)]
    assert sorted(row["turns"] for row in rows) == [["I say 1.", "You say 2."], ["I say 3.", "You say 4."]]


def test_recent_utterances_may_count_more():
    """MEED2 checks, dialogue weights."""
    assert [[one * (2**n - 1) for one in turn_weights(n, "recent")] for n in (1, 2, 3, 4)] == [
        [1],
        [1, 2],
        [1, 2, 4],
        [1, 2, 4, 8],
    ]
    assert turn_weights(4) == [0.25] * 4 and mean_emotionality([0.0, 0.9], "recent") == pytest.approx(0.6)


# -- labelling on ONNX Runtime -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classifier_folder(tmp_path_factory) -> Path:
    """A tiny classifier of the 41 labels."""
    from understanding.tiny_classifiers import encoder_classifier

    classifier = encoder_classifier(LABELS_41, pooling="additive", head_width=32)
    folder = tmp_path_factory.mktemp("models") / "tiny41"
    classifier.model.save_pretrained(folder)
    classifier.reader.save(folder)
    return folder


def test_labels_on_onnx_are_those_on_torch(classifier_folder):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    said = [
        "My dog ate the whole cake.",
        "",
        "Did you tell him?",
        "I walked home in the rain, " * 20,
        "Congratulations",
    ]
    torch, onnx = (load_labeller(str(classifier_folder), False, engine) for engine in ("torch", "onnx"))
    want, found = (one.probabilities(said, 2) for one in (torch, onnx))
    assert onnx.labels == LABELS_41 and np.abs(want - found).max() < 1e-5
    assert (want.argmax(axis=1) == found.argmax(axis=1)).all() and len(set(want.argmax(axis=1))) > 1


def test_a_run_on_onnx_is_that_on_torch(classifier_folder, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    words = {"label.classifier": classifier_folder, "label.exact": "false"}
    rows = []
    for engine in ("torch", "auto"):
        record = made(tmp_path / engine, **words, **{"label.engine": engine})
        assert record["labelled"]["engine"] == ("torch" if engine == "torch" else "onnx")
        rows.append(
            {row["key"]: row["labels"] for *_, path in corpus_files(tmp_path / engine) for row in rows_of(path)}
        )
    assert rows[0] == rows[1] and len(rows[0]) > 10


def test_which_engine(classifier_folder, tiny_model, tmp_path, monkeypatch):
    def engine(**words) -> str:
        return engine_of(settings(tmp_path, **{f"label.{name}": value for name, value in words.items()}).label)

    own = {"classifier": classifier_folder}
    assert engine(classifier="null", engine="onnx") == engine(**own) == engine(classifier=tiny_model, exact="false")
    with pytest.raises(ConfigError, match=r"set label\.exact=false"):
        engine(**own, engine="onnx")
    with pytest.raises(ConfigError, match="is another model"):
        engine(classifier=tiny_model, engine="onnx", exact="false")
    monkeypatch.setattr("empatheia_research.understanding.labels.onnx_inference.PACKAGES", ("no_such_package",))
    assert engine(**own, exact="false") == "torch"
    with pytest.raises(MissingDependencyError, match=r"empatheia\[onnx\]"):
        engine(**own, engine="onnx", exact="false")


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4]), min_size=1, max_size=30), st.integers(0, 35))
def test_top_threshold_is_the_sorted_list(scores, k):
    threshold, n_tied = global_steps.top_threshold(np.array(scores), k)
    chosen = sum(score > threshold for score in scores) + n_tied
    assert chosen == min(k, len(scores))
    if chosen:
        assert sorted(scores, reverse=True)[chosen - 1] == threshold


@given(
    st.lists(st.tuples(st.integers(0, 2**64 - 1) | st.integers(0, 5), st.integers(0, 2**64 - 1)), max_size=40),
    st.integers(1, 3),
    st.integers(1, 5000),
)
def test_keep_some_is_the_same_with_little_memory(rows, most, memory):
    groups, order = (np.array([row[k] for row in rows], np.uint64) for k in (0, 1))
    keep = global_steps.keep_some(groups, order, most, memory)
    want: dict[int, int] = {}
    for place in sorted(range(len(rows)), key=lambda i: (rows[i][1], i)):
        want[rows[place][0]] = want.get(rows[place][0], 0) + 1
        assert keep[place] == (want[rows[place][0]] <= most)


def test_splits_are_shares_of_names():
    names = [global_steps.split_of(str(i), (8, 1, 1)) for i in range(2000)]
    assert 1500 < names.count("train") < 1700 and set(names) == {"train", "valid", "test"}
    assert {global_steps.split_of(str(i), (0, 0, 1)) for i in range(50)} == {"test"}


# -- settings and commands -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("shards=0", "shards"),
        ("workerz=2", "workerz"),
        ("name=../x", "not a plain name"),
        ("memory=1MB", "accepted: 64MB or more"),
        ("rank.top=0", "rank.top"),
        ("split.shares=[0,0,0]", "not all 0"),
        ("clean.without=[shorts]", "Did you mean 'short'"),
        ("inputs=[]", "inputs"),
    ],
)
def test_bad_settings(change, told):
    with pytest.raises(ConfigError, match=told):
        load_settings(SAMPLE, [change])


def test_settings_go_round(tmp_path):
    one = settings(tmp_path, shards=5)
    (tmp_path / "x.yaml").write_text(one.to_yaml())
    assert load_settings(tmp_path / "x.yaml") == one
    assert memory_bytes("2GB") == 2_000_000_000 and memory_bytes("500 MiB") == 500_000_000
    assert load_settings("recipes/curation/opensubtitles.yaml").rank.top == 1_000_000


def test_commands(cli, whole, tmp_path):
    out = tmp_path / "out"
    done = cli("curate", "run", SAMPLE, "--out", str(out), "--workers", "0", "--set", "label.classifier=null")
    assert done.code == 0 and "clean dialogues" in done.out and "dialogues: 3 of 3 shards" in done.err
    page = (out / "report.html").read_text()
    assert "4,010,009" in page and "<svg" in page and "not well-formed" in page and "Subtitles by nobody" in page
    assert cli("curate", "status", str(out)).out.count("of 3 shards") == 4
    (out / "corpus" / "shard-00001.parquet.json").unlink()
    done = cli("curate", "status", str(out))
    assert "2 of 3 shards   <- not finished" in done.out and "curate resume" in done.err
    assert cli("curate", "resume", str(out)).code == 0
    done = cli("curate", "sample", str(out), "-n", "1", "--json")
    assert done.code == 0 and '"part": "all"' in done.out
    done = cli("curate", "sample", str(whole[0]), "-n", "2", "--part", "edos")
    assert done.out.count("edos/") == 2 and "emotionality" in done.out


def test_explained_sentences(cli, tmp_path):
    place, out = tmp_path / "in", tmp_path / "out"
    place.mkdir()
    said = "1\n00:00:01,000 --> 00:00:02,000\nThe same line.\n"
    said += "\n2\n00:00:02,500 --> 00:00:03,000\n- [sighs] I don't know!\n"
    said += "\n3\n00:00:09,000 --> 00:00:10,000\n- Subtitles by nobody\n"
    for name in ("a", "b"):
        (place / f"{name}.srt").write_text(said)
    (place / "bad.srt").write_bytes(b"x")
    words = ("--set", f"inputs=[{place}]", "--set", "label.classifier=null", "--set", "read.most_unreadable=0.5")
    assert cli("curate", "run", SAMPLE, "--out", str(out), "--workers", "0", *words).code == 0
    (kept,) = [row["key"] for *_, path in corpus_files(out) for row in rows_of(path)]
    other = {"a/a/00000": "b/b/00000", "b/b/00000": "a/a/00000"}[kept]
    done = cli("curate", "explain", str(out), f"{kept[0]}.srt")
    assert done.code == 0 and "new: a dash before it" in done.out and "brackets: I don't know!" in done.out
    assert f"-> {kept}: in all/" in done.out and "begins: 6.000 s after the turn before" in done.out
    assert "dropped by credits" in done.out and "nothing is left of it" in done.out
    done = cli("curate", "explain", str(out), other)
    assert f"-> {other}: dropped: equal to {kept}" in done.out and "credits" not in done.out
    done = cli("curate", "explain", str(out), str(place / "a.srt"), "3", "--json")
    assert '"line": 3' in done.out and '"line": 1' not in done.out
    assert "not read: holds 1 bytes" in cli("curate", "explain", str(out), "bad/bad").out
    (place / "more").mkdir()
    (place / "more" / "a.srt").write_text(said)
    for file, line, told in (
        ("a.srt", [], "2 files end with"),
        ("c", [], "no file 'c'"),
        ("b.srt", ["9"], "3 sentences"),
    ):
        ended = cli("curate", "explain", str(out), file, *line)
        assert ended.code == 1 and told in ended.err and "Traceback" not in ended.err


def test_an_explained_file_that_was_not_chosen(cli, tmp_path):
    out = tmp_path / "out"
    made(out)
    chosen = {row["key"].rsplit("/", 1)[0] for *_, path in corpus_files(out) for row in rows_of(path)}
    sources = run.find_sources(["recipes/curation/films"]).sources
    others = {f"{one.movie}/{one.subtitle}" for one in sources} - chosen
    told = {other: cli("curate", "explain", str(out), other).out for other in others}
    assert len(told) == 4 and all(
        "not chosen: of the film's files" in one or "not read: " in one for one in told.values()
    )
    assert sum("not read: not well-formed" in one for one in told.values()) == 2


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("run", "recipes/curation/sampel.yaml"), 2, "Did you mean"),
        (("run", SAMPLE, "--only", "label"), 2, "Did you mean 'labelled'"),
        (("status", "recipes"), 1, "not a folder of a curation"),
        (("report", "recipes"), 1, "not a folder of a curation"),
        (("sample", "recipes"), 1, "not a folder of a curation"),
        (("resume", "recipes"), 1, "not a folder of a curation"),
        (("explain", "recipes", "x"), 1, "not a folder of a curation"),
        (("train-segmenter", "--data", "recipes", "--out", "x"), 3, "no NAME.srt with a NAME.truth.tsv"),
    ],
)
def test_commands_tell_what_is_wrong(cli, words, code, told, tmp_path, monkeypatch):
    ended = cli("curate", *words)
    assert ended.code == code and told in ended.err and "Traceback" not in ended.err


def test_an_unfinished_run_has_no_report(cli, tmp_path):
    out = tmp_path / "out"
    done = cli("curate", "run", SAMPLE, "--out", str(out), "--workers", "0", "--only", "unique")
    assert done.code == 0 and not (out / "corpus").exists()
    assert "is not finished" in cli("curate", "report", str(out)).err
    assert "has no corpus yet" in cli("curate", "sample", str(out)).err
    assert read_record(out / "inventory.json")["files"] == 9
