"""Whole runs: the same result from any number of shards and workers and after any interruption."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from empatheia.curation import global_steps, run, shards, workers
from empatheia.curation.labelling import BY_MASS, BY_PEAK, emotionality, mean_emotionality, measure_of
from empatheia.curation.samples import corpus_files
from empatheia.curation.settings import CurationSettings, load_settings, memory_bytes
from empatheia.curation.shards import rows_of
from empatheia.errors import ConfigError, DataError
from empatheia.reading import read_record
from empatheia.taxonomy import EMOTIONS, LABELS_41

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


def _doubled(task: tuple[int, str]) -> int:
    """Dies if it is told to: always, or only the first time."""
    number, marker = task
    if marker == "always":
        os.kill(os.getpid(), signal.SIGKILL)
    if marker and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def test_two_worker_processes_and_one_that_is_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    from distributed import LocalCluster

    workers._distributed()
    want = made(tmp_path / "here")
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        with workers.started(0, "1GB", address) as own:
            found = dict(own.results(_doubled, [(i, str(tmp_path / "once") if i == 3 else "") for i in range(6)]))
            assert found == {i: 2 * i for i in range(6)} and (tmp_path / "once").exists()
            died = dict(own.results(_doubled, [(1, "always"), (2, "")]))
            assert isinstance(died[0], workers.DiedError) and died[1] == 4
        there = settings(tmp_path / "there", shards=4).model_copy(update={"scheduler": address})
        assert run.Curation(there).run()["digest"] == want["digest"]


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
    assert global_steps.top_keys(["a", "b", "c"], [0.5, 0.7, 0.5], 2) == ["b", "a"]
    assert global_steps.wanted_number(0.5, 7) == 4 and global_steps.wanted_number(10, 7) == 7


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
        ("name=../x", "no plain name"),
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


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("run", "recipes/curation/sampel.yaml"), 2, "Did you mean"),
        (("run", SAMPLE, "--only", "label"), 2, "Did you mean 'labelled'"),
        (("status", "recipes"), 1, "no folder of a curation"),
        (("report", "recipes"), 1, "no folder of a curation"),
        (("sample", "recipes"), 1, "no folder of a curation"),
        (("resume", "recipes"), 1, "no folder of a curation"),
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
