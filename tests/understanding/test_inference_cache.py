"""The cache: what was written is what is read; stopped and resumed is the same file; wrong files are refused."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest
from tiny_inferences import Echo

import fresh
from empatheia.errors import CheckpointError, ConfigError, DataError, MissingResourceError
from empatheia.taxonomy import RELATIONS
from empatheia_research.understanding.inferences import cache as cache_module
from empatheia_research.understanding.inferences.cache import CachedInferences, cache_key, fill_cache
from empatheia_research.understanding.inferences.heads import Asked

TEXTS = ("i lost my job", "my dog died", "i lost my job", "so sad \ud83d", "happy", "all day long", "", "angry")


def turns(texts=TEXTS, heads=None) -> list[Asked]:
    return [
        Asked(i // 2 + 1, f"d{i // 2}", i % 2, text, heads if heads is not None else ((text,) if text else ()))
        for i, text in enumerate(texts)
    ]


def fill(path, provider=None, asked=None, **options):
    return fill_cache(provider or Echo(), turns() if asked is None else asked, path, **options)


@pytest.fixture
def cache(tmp_path) -> Path:
    fill(tmp_path / "c.jsonl")
    return tmp_path / "c.jsonl"


def test_a_hit_is_what_was_written(cache):
    """Check 22: equal results, and the file's bytes do not change when it is read or made again."""
    before = cache.read_bytes()
    read = CachedInferences(cache)
    texts = [text for text in TEXTS if text]
    assert read.infer(texts) == Echo().infer(texts)
    assert read.infer(texts[:1], ["xWant", "Causes"], n=2) == Echo().infer(texts[:1], ["xWant", "Causes"], n=2)
    assert read.infer(["  I lost  my JOB "]) == Echo().infer(["i lost my job"])
    assert (len(read), read.name, read.source, read.fingerprint()) == (
        8,
        "echo (cache)",
        "made up",
        Echo().fingerprint(),
    )
    fill(cache.with_name("again.jsonl"))
    assert cache.read_bytes() == before == cache.with_name("again.jsonl").read_bytes()


def test_what_it_lacks_is_absent(cache):
    (answer,) = CachedInferences(cache).infer(["nobody asked this"], ["xReact"])
    assert answer["xReact"].absent == "not in the cache"
    (more,) = CachedInferences(cache).infer(["happy"], ["xReact"], n=9)  # five were written
    assert more["xReact"].absent == "not in the cache"


def test_the_key_depends_on_all_of_it():
    """Check 22: n and whatever changes the fingerprint."""
    keys = {cache_key(("a",), "f", 5), cache_key(("b",), "f", 5), cache_key(("a",), "g", 5), cache_key(("a",), "f", 4)}
    assert len(keys) == 4 and cache_key((" A  b",), "f", 5) == cache_key(("a b",), "f", 5)
    assert cache_key(("a b",), "f", 5) != cache_key(("a", "b"), "f", 5)


def test_equal_texts_are_asked_once(tmp_path):
    provider = Echo()
    report = fill(tmp_path / "c.jsonl", provider)
    assert sorted(provider.asked) == sorted({text for text in TEXTS if text})
    assert (report.turns, report.before, report.reused) == (8, 0, 1)
    assert report.answered["xReact"] == 7 and report.answered["Causes"] == 0
    assert report.absent["xReact"] == {"nothing to ask about": 1}
    assert report.absent["Causes"] == {"relation not covered": 7, "nothing to ask about": 1}
    assert json.loads(json.dumps(report.to_dict()))["same_text"] == 1


@pytest.mark.parametrize("after", [0, 1, 3, 4, 5])
def test_stopped_and_resumed_is_the_same_file(cache, tmp_path, after):
    path = tmp_path / "stopped.jsonl"
    with pytest.raises(KeyboardInterrupt):
        fill(path, Echo(stop_after=after))
    counted = []
    report = fill(path, resume=True, progress=counted.append)
    assert path.read_bytes() == cache.read_bytes()
    assert sum(counted) == report.turns == 8 and report.before == 3 * (after // 2 > 0) + 3 * (after // 5 > 0)
    provider = Echo()
    assert fill(path, provider, resume=True).before == 8 and provider.asked == []


def test_killed_and_resumed(cache, tmp_path):
    """The process is killed in the middle of a chunk; a half-written line is cut."""
    path = tmp_path / "killed.jsonl"
    code = (
        "import os, signal, sys\n"
        "sys.path[:0] = sys.argv[2:]\n"
        "from test_inference_cache import Echo, fill\n"
        "fill(sys.argv[1], Echo(4, lambda: os.kill(os.getpid(), signal.SIGKILL)))\n"
    )
    done = fresh.run(["-c", code, str(path), *map(str, Path(__file__).parents[:2])])
    assert done.returncode == -9, done.stderr
    assert not path.exists()
    assert 1 < len(path.with_name("killed.jsonl.partial").read_bytes().splitlines()) < 9
    partial = path.with_name("killed.jsonl.partial")
    with partial.open("ab") as stream:
        stream.write(b'{"row": 2, "id": "d')
    assert len(CachedInferences(partial)) == 3  # readable as it is
    with pytest.raises(DataError, match=r"killed\.jsonl\.partial already exists.*--resume"):
        fill(path)
    fill(path, resume=True)
    assert path.read_bytes() == cache.read_bytes() and not partial.exists()


def test_a_killed_start_leaves_nothing_to_trip_over(tmp_path, cache):
    path = tmp_path / "new.jsonl"
    path.write_bytes(b"")
    fill(path, resume=True)
    assert path.read_bytes() == cache.read_bytes()


def test_what_is_not_gone_on_with(cache, tmp_path):
    def refused(error, match, *arguments, **options):
        before = cache.read_bytes()
        with pytest.raises(error, match=match) as caught:
            fill(cache, *arguments, **options)
        assert "\n" not in str(caught.value) and cache.read_bytes() == before

    refused(DataError, r"already exists.*--resume")
    refused(CheckpointError, "with n 5, now it is 3", n=3, resume=True)
    refused(CheckpointError, "with relations", relations=["xReact"], resume=True)
    refused(CheckpointError, "with heads", heads={"head": "causes"}, resume=True)
    other = Echo()
    other.fingerprint = lambda: "another"
    refused(CheckpointError, "with fingerprint", other, resume=True)
    refused(
        DataError,
        r"turn 2 of it is not that of the input \(row 1\)",
        asked=turns([TEXTS[0], "my cat died"]),
        resume=True,
    )
    refused(DataError, "has more turns", asked=turns(TEXTS[:4]), resume=True)
    refused(ConfigError, "n is 0", n=0, resume=True)
    with pytest.raises(DataError, match="its folder does not exist"):
        fill(tmp_path / "no" / "c.jsonl")
    with pytest.raises(DataError, match="it is a folder"):
        fill(tmp_path)


def test_two_writers(cache):
    fcntl = pytest.importorskip("fcntl")
    with cache.open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DataError, match="another process is writing"):
            fill(cache, resume=True)
    fill(cache, resume=True)


def test_files_that_are_no_cache(cache, tmp_path):
    def refused(content: bytes, match: str):
        path = tmp_path / "x.jsonl"
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=match) as caught:
            CachedInferences(path)
        assert "\n" not in str(caught.value)

    lines = cache.read_bytes().splitlines(keepends=True)
    refused(b"", "is not a cache")
    refused(b'{"text": "hello"}\n', "is not a cache")
    refused(b"[1]\n", "is not a cache")
    refused(b"\x89PNG\r\n\x1a\n", "is not a cache")
    refused(lines[0].replace(b'"format": 1', b'"format": 7'), "has format 7")
    refused(b"".join([*lines[:2], b"junk\n", *lines[2:]]), r"x\.jsonl:3: a damaged line")
    refused(b"".join([*lines[:2], b"{}\n"]), r"x\.jsonl:3: a damaged line")
    with pytest.raises(MissingResourceError, match="empatheia infer"):
        CachedInferences(tmp_path / "nowhere.jsonl")


def test_turns_are_found_by_place_whatever_was_asked(tmp_path):
    """A cache of causes is read back by conversation, turn and text, with no model that finds causes."""
    path = tmp_path / "c.jsonl"
    fill(path, asked=turns(TEXTS[:2], heads=("the cause", "another")))
    read = CachedInferences(path)
    assert read.find_turn("d0", 1, "my dog died")["xReact"].texts[:2] == ("the cause xReact 0", "another xReact 0")
    assert read.find_turn("d0", 1, "my dog died", n=1)["xReact"].texts == ("the cause xReact 0",)
    assert read.find_turn("d0", 1, "my cat died") is None and read.find_turn("d1", 1, "my dog died") is None
    assert read.find_turn("d0", 1, "my dog died", n=9) is None
    assert read.find(("the cause", "another"))["xWant"].texts == read.find_turn("d0", 0, TEXTS[0])["xWant"].texts


def test_a_cache_before_a_provider(tmp_path):
    """What the file lacks is asked for and added; the file then answers alone."""
    path = tmp_path / "c.jsonl"
    provider = Echo()
    cached = CachedInferences(path, provider)
    heads = ["a", "b", "a"]
    assert cached.infer(heads, ["xReact"]) == Echo().infer(heads, ["xReact"])
    assert provider.asked == ["a", "b"]
    assert cached.infer(heads, ["xReact"]) and provider.asked == ["a", "b"]
    assert cached.infer(["a"], ["xReact", "xWant"]) == Echo().infer(["a"], ["xReact", "xWant"])
    again = CachedInferences(path)
    assert again.infer(["a"], ["xReact", "xWant"]) == Echo().infer(["a"], ["xReact", "xWant"])
    assert again.infer(["b"], ["xWant"])[0]["xWant"].absent == "not in the cache"
    assert cached.relations() == Echo().relations() and again.relations() == RELATIONS
    other = Echo()
    other.fingerprint = lambda: "another"
    with pytest.raises(CheckpointError, match="other weights or settings"):
        CachedInferences(path, other)


def test_one_process_adds_to_a_cache_and_others_read_it(tmp_path):
    """Two that added at once wrote into each other's lines, which damaged the file for good."""
    pytest.importorskip("fcntl")
    path = tmp_path / "c.jsonl"
    cached = CachedInferences(path, Echo())
    cached.infer(["a", "A"], ["xReact"])
    with path.open("ab") as stream:
        stream.write(b'{"key": "cut')  # as the other one leaves it in the middle of a line
    for _ in range(2):
        with pytest.raises(DataError, match=r"another process is writing to .*c\.jsonl\. Wait for it, or name another"):
            CachedInferences(path, Echo())
        with pytest.raises(DataError, match="another process is writing"):
            fill(path, resume=True)
    assert path.read_bytes().endswith(b'"cut') and len(CachedInferences(path)) == 2
    cached.close()
    after = CachedInferences(path, Echo())
    after.infer(["b"], ["xReact"])
    assert len(after) == 3 and len(CachedInferences(path)) == 3


def test_a_cache_that_another_process_has_just_made_is_not_replaced(tmp_path, monkeypatch):
    """The second saw no file, and then put its own in the place of the one that the first holds."""
    pytest.importorskip("fcntl")
    path, made = tmp_path / "c.jsonl", []

    def late(where, header):
        if not made:
            made.append("")
            made[0] = CachedInferences(where, Echo())
            made[0].infer(["a"], ["xReact"])
        start(where, header)

    start = cache_module._start
    monkeypatch.setattr(cache_module, "_start", late)
    with pytest.raises(DataError, match="another process is writing"):
        CachedInferences(path, Echo())
    assert len(CachedInferences(path)) == 1 and [p.name for p in tmp_path.iterdir()] == ["c.jsonl"]


def add_again_and_again(path: Path, number: int) -> None:
    for i in range(60):
        try:
            cached = CachedInferences(path, Echo())
        except DataError:
            continue
        cached.infer([f"process {number} says {i} {j} " + 300 * "x" for j in range(20)], ["xReact"])
        cached.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here")
def test_processes_that_are_killed_at_work_leave_whole_lines(tmp_path):
    path = tmp_path / "c.jsonl"
    busy = [multiprocessing.get_context("fork").Process(target=add_again_and_again, args=(path, i)) for i in range(4)]
    for process in busy:
        process.start()
    for process in busy[:2]:
        process.join(0.2)
        process.kill()
    for process in busy:
        process.join()
    assert [process.exitcode for process in busy][2:] == [0, 0]
    assert len(CachedInferences(path, Echo())) > 0
