"""The index and the look-up: right neighbours, right tails, one encoder only, whole or absent."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
from tiny_inferences import Axes, save_encoder, table

from empatheia.errors import CheckpointError, ConfigError, DataError, MissingDependencyError, MissingResourceError
from empatheia.taxonomy import RELATIONS
from empatheia_research.corpora import atomic
from empatheia_research.understanding.inferences import index as index_module
from empatheia_research.understanding.inferences.index import TupleIndex, build_index
from empatheia_research.understanding.inferences.nearest import NearestInferences
from empatheia_research.understanding.inferences.turns import open_provider
from empatheia_research.understanding.vectors.texts import SentenceVectors, WordVectors

PLANE = {"east": (1, 0), "north": (0, 1), "northeast": (1, 1), "west": (-1, 0)}
ROWS = (
    *("east|xReact|Sunny.", "east|xReact|sunny", "east|xReact|warm", "east|xReact|warm", "east|Causes|a sunrise"),
    *("northeast|xReact|warm", "northeast|xReact|windy", "northeast|xWant|none", "north|xReact|cold"),
    *("west|xWant|to rest", "north|HasProperty|white"),
)


def plane(text: str) -> tuple[float, float]:
    return next((PLANE[word] for word in text.split() if word in PLANE), (0.0, 0.0))


@pytest.fixture
def compass(tmp_path) -> TupleIndex:
    return build_index(table(*ROWS, folder=tmp_path), Axes(2, plane), tmp_path / "index")


def test_what_the_index_holds(compass):
    assert len(compass) == 4 and compass.heads == ["east", "northeast", "north", "west"]
    assert compass.tails(0, "xReact") == [("Sunny.", 1), ("sunny", 1), ("warm", 2)]
    assert compass.tails(3, "xReact") == []
    assert compass.relations() == ("xReact", "xWant", "HasProperty", "Causes")
    assert compass.meta["counts"]["xWant"] == 1  # the tail `none` was dropped
    assert isinstance(compass.vectors, np.memmap)
    np.testing.assert_allclose(compass.vectors[1], [0.5**0.5] * 2, rtol=1e-6)


def test_answer_by_hand(compass):
    """score = cos * log(1 + count): 'warm' is said 2 + 1 times, the nearest time at cosine 1."""
    (answer,) = NearestInferences(compass, minimum=0.5).infer(["east wind"])
    tails = answer["xReact"]
    expected = {"warm": np.log(4), "sunny": np.log(3), "windy": 0.5**0.5 * np.log(2)}
    assert dict(zip(tails.texts, tails.scores, strict=True)) == pytest.approx(expected, abs=1e-4)
    assert list(tails.texts) == ["warm", "sunny", "windy"] and tails.head == "east"
    assert answer["Causes"].texts == ("a sunrise",)
    assert answer["xWant"].absent == "no near head"
    assert answer["xNeed"].absent == answer["xReason"].absent == "relation not covered"
    assert NearestInferences(compass, minimum=0.8).infer(["east"])[0]["xReact"].texts == ("sunny", "warm")  # a tie
    assert NearestInferences(compass, n_heads=1).infer(["northeast"])[0]["xReact"].texts == ("warm", "windy")
    assert NearestInferences(compass).infer(["east"], n=1)[0]["xReact"].texts == ("warm",)


def test_sentences_and_things_are_asked_apart(compass):
    provider = NearestInferences(compass, minimum=0.9, phrase_minimum=0.9)
    (answer,) = provider.infer(["nothing here . the west is far . old north"], ["xWant", "HasProperty"])
    assert answer["xWant"].texts == ("to rest",)  # by its own sentence
    assert answer["HasProperty"].texts == ("white",)  # by a word


def test_only_none(tmp_path):
    tuples = atomic.read(table("east|xReact|none", "east|xWant|x", folder=tmp_path).paths[0], none="keep")
    provider = NearestInferences(build_index(tuples, Axes(2, plane), tmp_path / "index"))
    (answer,) = provider.infer(["east"], ["xReact"])
    assert answer["xReact"].absent == "nothing but 'none'"
    assert provider.infer([""], ["xReact"])[0]["xReact"].absent == "nothing to ask about"


def random_table(tmp_path, n=400):
    rows = [f"h{i}|{RELATIONS[i % 3]}|tail {i}" for i in range(n)] + [f"h{i}|xAttr|kind" for i in range(0, n, 7)]
    spread = np.random.default_rng(0).normal(size=(n, 8))
    spread[5] = spread[4]  # a tie
    tuples = table(*rows, folder=tmp_path)
    return tuples, Axes(8, lambda text: spread[int(text[1:])]), spread


def test_search_is_the_whole_search(tmp_path, monkeypatch):
    """Blocks change nothing; owners only; ties go to the earlier head."""
    tuples, axes, spread = random_table(tmp_path)
    index = build_index(tuples, axes, tmp_path / "index")
    unit = spread / np.linalg.norm(spread, axis=1, keepdims=True)
    queries = unit[[4, 17, 300]].astype(np.float32)
    found = index.nearest(queries, ["xReact", "xAttr"], 6, 0.2)
    monkeypatch.setattr(index_module, "BLOCK", 37)
    assert index.nearest(queries, ["xReact", "xAttr"], 6, 0.2) == found
    for name, own in (("xReact", range(0, 400, 3)), ("xAttr", range(0, 400, 7))):
        for query, hits in zip(queries, found[name], strict=True):
            cosines = {i: float(unit[i] @ query) for i in own}
            best = sorted((i for i in own if cosines[i] >= 0.2), key=lambda i: (-round(cosines[i], 5), i))[:6]
            assert [i for i, _ in hits] == best
    (both,) = index.nearest(unit[4:5].astype(np.float32), ["xIntent"], 2)["xIntent"]
    assert both[0][0] == 4 and index.nearest(queries, ["Desires"], 2)["Desires"] == [[], [], []]


def test_alone_as_among_others(tmp_path):
    encoder = save_encoder(tmp_path / "encoder")
    sample = atomic.load("all", root=atomic.sample_root())
    provider = NearestInferences(build_index(sample, encoder, tmp_path / "index"), minimum=0.2, phrase_minimum=0.2)
    heads = ["i lost my job", "my dog died . i was so sad . all day long", "", "happy", "i lost my job"]
    together = provider.infer(heads, batch_size=3)
    assert together[0] == together[4] and together[0]["xReact"].texts
    for head, answer in zip(heads, together, strict=True):
        assert provider.infer([head], batch_size=2)[0] == answer
    assert provider.infer(list(reversed(heads))) == list(reversed(together))


def test_approximate_finds_what_exact_finds(tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    tuples, axes, spread = random_table(tmp_path)
    index = build_index(tuples, axes, tmp_path / "index", approximate=True)
    unit = spread / np.linalg.norm(spread, axis=1, keepdims=True)
    monkeypatch.setattr(index_module, "FEW_HEADS", 100)
    queries = unit[:40].astype(np.float32)
    exact = index.nearest(queries, ["xReact", "xAttr"], 4, 0.3)
    near = index.nearest(queries, ["xReact", "xAttr"], 4, 0.3, search="approximate")
    assert near["xAttr"] == exact["xAttr"]  # few heads: searched exactly
    same = [
        len({i for i, _ in a} & {i for i, _ in b}) / max(1, len(a))
        for a, b in zip(exact["xReact"], near["xReact"], strict=True)
    ]
    assert np.mean(same) > 0.95
    assert build_index(tuples, axes, tmp_path / "index", approximate=True).fingerprint == index.fingerprint


def test_approximate_needs_graph_and_library(compass, monkeypatch, tmp_path):
    with pytest.raises(ConfigError, match="search is 'fast'; accepted: exact, approximate"):
        NearestInferences(compass, search="fast")
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'empatheia\[search\]'"):
        NearestInferences(compass, search="approximate")
    with pytest.raises(MissingDependencyError, match="approximate search needs faiss"):
        build_index(table(*ROWS, folder=tmp_path), Axes(2, plane), tmp_path / "other", approximate=True)
    assert not (tmp_path / "other").exists()


def test_no_graph(compass):
    pytest.importorskip("faiss")
    with pytest.raises(CheckpointError, match="no graph for approximate search"):
        NearestInferences(compass, search="approximate")


def test_built_once(compass, tmp_path, monkeypatch):
    stamp = (tmp_path / "index" / "vectors.npy").stat().st_mtime_ns
    again = build_index(table(*ROWS, folder=tmp_path), Axes(2, plane), tmp_path / "index")
    assert (tmp_path / "index" / "vectors.npy").stat().st_mtime_ns == stamp
    assert again.fingerprint == compass.fingerprint
    other = build_index(table(*ROWS[1:], folder=tmp_path), Axes(2, plane), tmp_path / "index")
    assert other.fingerprint != compass.fingerprint and other.tails(0, "xReact")[0] == ("sunny", 1)
    form = build_index(table(*ROWS, folder=tmp_path), Axes(2, plane), tmp_path / "person", form="person")
    assert form.fingerprint != compass.fingerprint


def test_a_stopped_build_leaves_the_old_index(compass, tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(index_module, "_write_tails", stop)
    with pytest.raises(KeyboardInterrupt):
        build_index(table(*ROWS[1:], folder=tmp_path), Axes(2, plane), tmp_path / "index")
    assert TupleIndex(tmp_path / "index", Axes(2, plane)).tails(0, "xReact") == compass.tails(0, "xReact")
    monkeypatch.undo()
    assert len(build_index(table(*ROWS[1:], folder=tmp_path), Axes(2, plane), tmp_path / "index")) == 4
    assert not list(tmp_path.glob("*.partial"))


def test_another_encoder_is_refused(tmp_path):
    first, second = save_encoder(tmp_path / "first"), save_encoder(tmp_path / "second", seed=1)
    sample = atomic.load("all", root=atomic.sample_root())
    build_index(sample, first, tmp_path / "index")
    moved = shutil.copytree(first, tmp_path / "moved")
    assert NearestInferences.load(tmp_path / "index", encoder=moved).infer(["my dog died"], ["xReact"])
    with pytest.raises(CheckpointError, match=r"made with the encoder '.*first'.*not with '.*second'"):
        TupleIndex.open(tmp_path / "index", second)
    shutil.rmtree(first)
    with pytest.raises(MissingResourceError, match=r"first.*Or use the encoder 'words'"):
        open_provider(tmp_path / "index")


def test_damaged_folders(compass, tmp_path):
    folder = tmp_path / "index"

    def broken(change):
        copy = shutil.copytree(folder, tmp_path / "copy", dirs_exist_ok=True)
        change(copy)
        with pytest.raises(CheckpointError) as caught:
            TupleIndex(copy, Axes(2, plane))
        shutil.rmtree(copy)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def set_meta(**fields):
        def change(copy):
            meta = json.loads((copy / "empatheia.json").read_text())
            (copy / "empatheia.json").write_text(json.dumps(meta | fields))

        return change

    assert "has format 9; this release reads 1" in broken(set_meta(format=9))
    assert "is not an index" in broken(set_meta(kind="model"))
    assert "No such file" in broken(lambda copy: (copy / "counts.npy").unlink())
    assert "do not fit" in broken(lambda copy: (copy / "tails.txt").write_bytes(b"cut\n"))
    assert "do not fit" in broken(lambda copy: np.save(copy / "vectors.npy", np.zeros((3, 2), np.float32)))
    assert "Build the index again" in broken(lambda copy: (copy / "vectors.npy").write_bytes(b"junk"))
    assert "--build-index" in broken(lambda copy: (copy / "empatheia.json").unlink())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="exists and is not an index"):
        build_index(table(*ROWS, folder=tmp_path), Axes(2, plane), tmp_path / "full")
    assert (tmp_path / "full" / "thesis.txt").exists()
    with pytest.raises(ConfigError, match="form is 'x'"):
        build_index(table(*ROWS, folder=tmp_path), Axes(2, plane), tmp_path / "other", form="x")
    with pytest.raises(DataError, match="no tuple of xReact"):
        build_index(
            atomic.read(table("a|oReact|b", folder=tmp_path).paths[0], relations=None),
            Axes(2, plane),
            tmp_path / "other",
        )


@pytest.mark.parametrize("setting", [{"minimum": 2}, {"phrase_minimum": -1.5}, {"n_heads": 0}])
def test_settings(compass, setting):
    (name,) = setting
    with pytest.raises(ConfigError, match=name):
        NearestInferences(compass, **setting)


def test_fingerprint(compass):
    """Check 22: every setting changes it."""
    settings = [{}, {"minimum": 0.3}, {"phrase_minimum": 0.5}, {"n_heads": 3}]
    assert len({NearestInferences(compass, **options).fingerprint() for options in settings}) == len(settings)


def test_approximate_answers(tmp_path):
    """The same tails, another fingerprint."""
    pytest.importorskip("faiss")
    index = build_index(table(*ROWS, folder=tmp_path), Axes(2, plane), tmp_path / "index", approximate=True)
    exact, near = (NearestInferences(index, search=search) for search in ("exact", "approximate"))
    assert exact.infer(["east", "old north"]) == near.infer(["east", "old north"])
    assert exact.fingerprint() != near.fingerprint()


def test_sentence_vectors(tmp_path):
    """The mean over kept pieces of length 1; padding and company do not matter."""
    import torch

    vectors = SentenceVectors.load(save_encoder(tmp_path / "encoder"))
    texts = ["i was so sad", "happy", "my dog died and then i was so sad all day long", "happy", ""]
    out = vectors.encode(texts, batch_size=3)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), 1, atol=1e-6)
    for text, row in zip(texts, out, strict=True):
        np.testing.assert_allclose(vectors.encode([text])[0], row, atol=1e-6)
    with torch.no_grad():
        states = vectors.model(**vectors.tokenizer(texts[0], return_tensors="pt")).last_hidden_state[0]
    mean = states.mean(0).numpy()
    np.testing.assert_allclose(out[0], mean / np.linalg.norm(mean), atol=1e-6)
    counted = []
    assert vectors.encode(texts, progress=counted.append).shape == (5, 16) and sum(counted) == 5
    assert vectors.encode([]).shape == (0, 16)


def test_word_vectors(tmp_path):
    vectors = WordVectors(256).fit(["i lose my job", "my dog dies", "i lose my dog"])
    cosines = vectors.encode(["she loses her job", "the", "dogs"]) @ vectors.encode(["i lose my job", "my dog dies"]).T
    assert cosines[0, 0] > 0.99 and cosines[0, 1] == 0 and not cosines[1].any() and cosines[2, 1] > 0.5
    vectors.save(tmp_path)
    assert WordVectors.open(tmp_path).fingerprint() == vectors.fingerprint() != WordVectors(256).fingerprint()


def test_devices(tmp_path):
    encoder = save_encoder(tmp_path / "encoder")
    for device in ("bogus", "meta:x"):
        with pytest.raises(ConfigError, match=rf"device '{device}' cannot be used.*Use cpu") as caught:
            SentenceVectors.load(encoder, device)
        assert "\n" not in str(caught.value)
    vectors = SentenceVectors.load(encoder, "cpu")
    assert vectors.name == str(encoder.resolve())


def test_words_need_nothing(tmp_path):
    sample = atomic.load("all", root=atomic.sample_root())
    build_index(sample, "words", tmp_path / "index")
    provider = open_provider(tmp_path / "index")
    assert "lonely" in provider.infer(["my old dog dies"], ["xReact"])[0]["xReact"].texts
    assert provider.source.endswith("MIT") and provider.name == "atomic-sample by words"
    assert "sample" in json.loads((tmp_path / "index" / "empatheia.json").read_text())["degraded"]


@pytest.mark.real_data
@pytest.mark.usefixtures("sentence_encoder")
def test_real_encoder_and_table(tmp_path):
    """Fifty real heads: a plain sentence finds the event it paraphrases."""
    if not os.environ.get("EMPATHEIA_DATA"):
        pytest.skip("EMPATHEIA_DATA is not set: the real corpora are not here")
    whole = atomic.load("v4")
    heads = whole.frame["head"].unique(maintain_order=True)
    some = heads.filter(heads.str.contains("phone|dinner|dentist"))[:50]
    small = atomic.AtomicTuples(
        "v4", whole.paths, whole.sha256, whole.frame.filter(whole.frame["head"].is_in(some.implode())), whole.counts
    )
    provider = NearestInferences(build_index(small, "minilm", tmp_path / "index"))
    (answer,) = provider.infer(["i have to see my dentist on monday"], ["xReact", "Desires"])
    assert "dentist" in str(answer["xReact"].head) and answer["Desires"].absent == "relation not covered"
    heads = [
        f"i {verb} my {thing} {when}"
        for verb in ("lost", "found", "made")
        for thing in ("phone", "dinner")
        for when in ("today", "again")
    ]
    together = provider.infer(heads, batch_size=7)
    assert [provider.infer([head])[0] for head in heads] == together and any(a["xReact"].texts for a in together)
