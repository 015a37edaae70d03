"""Every reader of files of others, with a good file for each; what a reader raises on a damaged one must be told."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as save_tensors

from empatheia_research.corpora.loading import sample_root
from empatheia_research.understanding.inferences.cache import cache_key

Read = Callable[[Path], object]
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Reader:
    """Something that reads a file.

    Attributes:
        name: What the table calls it.
        file: Where the file lies, below a folder that is empty.
        good: What it holds; a reader takes it without a fault.
        read: Takes that folder.
    """

    name: str
    file: str
    good: bytes
    read: Read


def sample(name: str, lines: int = 6) -> bytes:
    """The beginning of a bundled sample file; all of one that is a JSON value."""
    raw = (sample_root() / name).read_bytes()
    return raw if name.endswith(".json") else b"".join(raw.splitlines(keepends=True)[:lines])


def jsonl(*rows: Any) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "replace")


TURNS = {
    "id": "a",
    "turns": [
        {"role": "speaker", "text": "I lost my job."},
        {"role": "listener", "text": "Oh."},
        {"role": "speaker", "text": "Yes."},
    ],
}
SCORE = {
    "name": "bleu_nltk_4",
    "value": 1.5,
    "unit": "percent",
    "n": 9,
    "higher_is_better": True,
    "interval": [1.0, 2.0],
}
SCORE |= {"signature": "x:y", "parts": {"a": 1.0}}
RECORD = {
    **{"recipe": "gao2021/soft", "size": "cpu", "seed": 1, "note": "A note.", "training_seconds": 60.5, "stages": {}},
    **{
        "parameters": 1000,
        "environment": {"python": "3", "packages": {"torch": "2"}, "device": "cpu", "commit": "abc"},
    },
    **{
        "data": {"train": {"items": 3}},
        "overrides": ["seed=1"],
        "start": {"from": "x", "recipe": "y", "training_seconds": 5},
    },
    "metrics": {
        "bleu_nltk_4": SCORE,
        "ppl_word": {**SCORE, "name": "ppl_word", "unit": "perplexity"},
        "decoding": {"replies_per_second": 3},
    },
}
FOCUS = {
    **RECORD,
    "metrics": {
        "systems": {"S0": {}, "random a1 b0.5": {"kind": "random", "alpha": 1.0, "beta": 0.5}},
        **{f"{name}: {score}": SCORE for name in ("S0", "random a1 b0.5") for score in ("coverage", "ppl_token")},
        "tests": {"coverage: random a1 b0.5 against S0": {"method": "x", "n_resamples": 9, "p_value": 0.1, "n": 9}},
    },
}
CURVES = [{"stage": "joint", "step": i, "loss": 3.0 / i, "eval_loss": 3.5 / i, "loss_x": 1.0} for i in range(1, 5)]
CACHE = [
    {
        "format": 1,
        "kind": "inferences",
        "provider": "echo",
        "fingerprint": "f",
        "n": 5,
        "relations": ["xReact"],
        "covered": ["xReact"],
        "heads": {},
        "source": "s",
    },
    {
        "row": 1,
        "id": "d",
        "turn": 0,
        "text": "t",
        "key": cache_key(("i lost my job",), "f", 5),
        "inferences": {"xReact": {"relation": "xReact", "tails": ["sad"], "scores": [1.0], "head": "h"}},
    },
]
INDEX = {
    "format": 1,
    "kind": "inference_index",
    "encoder": {"name": "words", "fingerprint": "x"},
    "counts": {"heads": 1},
}
VERDICT = {
    **{"pair": "p", "order": "ab", "model": "m", "prompt": "q", "material": "x", "choices": {"overall": "a"}},
    **{"prompt_tokens": 3, "completion_tokens": 4},
}
ANSWER = {
    "choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}],
    "model": "m",
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}
JOURNAL = {
    "key": cache_key(("i lost my job",), "f", 5),
    "answer": "a",
    "finish": "stop",
    "served": "m",
    "prompt_tokens": 1,
    "completion_tokens": 2,
    "tries": 1,
}
ROW = {"row": 1, "id": "a", "turns": [{"role": "speaker", "text": "x"}], "emotion": "sad", "emotions": {"sad": 1.0}}
ROW |= {"causes": [], "uncertain": []}
MANIFEST = {
    **{"format": 1, "system": "cause_gated", "name": "m", "layout": {}, "side_inputs": {}, "cause_threshold": 0.5},
    **{"temperature": 1.0, "licence": "MIT", "weights": "model.safetensors", "kind": "x", "counts": {"heads": 1}},
}
CARD = {"metrics": {"accuracy": SCORE, "group": {"x": 1.0}}}


def _pages(folder: Path) -> None:
    from empatheia_research.reports.leaderboard import _showable, leaderboard_html
    from empatheia_research.reports.reproduction import read_runs
    from empatheia_research.reports.results_page import results_page
    from empatheia_research.reports.system_charts import points_of, unit_of

    (folder / "good-seed2.json").write_text(json.dumps({**RECORD, "seed": 2}), encoding="utf-8")
    shown, _ = _showable(read_runs(folder))
    assert any(record["seed"] == 2 for record in shown), "one record hid another"
    leaderboard_html(shown)
    points_of(read_runs(folder), "bleu_nltk_4", "bleu_nltk_4")
    unit_of(read_runs(folder), "bleu_nltk_4")
    results_page(folder)


def _reproduction(folder: Path) -> None:
    from empatheia_research.reports.reproduction import read_runs, report_table
    from empatheia_research.reports.targets import read_targets
    from empatheia_research.voices.systems import _records

    _records(folder)
    report_table("gao2021/2", _targets(read_targets), read_runs(folder))


@cache
def _targets(read: Callable[..., Any]) -> Any:
    return read(ROOT / "recipes")


def _curves(folder: Path) -> None:
    from empatheia_research.reports.curves import _series, read_curves

    for rows in read_curves(folder / "curves.jsonl").values():
        _series(rows)


def _cache(folder: Path) -> None:
    from empatheia_research.understanding.inferences.cache import CachedInferences

    read = CachedInferences(folder / "c.jsonl")
    try:
        read.infer(["i lost my job", "another"])
        read.find_turn("d", 0, "t")
    finally:
        read.close()


def _rows(folder: Path, name: str, **options: Any) -> None:
    from empatheia.errors import DataError
    from empatheia.files.conversations import read_conversations
    from empatheia.files.rows import read_rows
    from empatheia.text.inputs import prepare

    for row in read_conversations(folder / name, **options):
        assert (row.error is None) != (row.item is None), row
        if row.item is not None:
            try:
                prepare(row.item)
            except DataError:
                continue
    list(read_rows(folder / name))


def _partial(folder: Path) -> None:
    from empatheia.files.result_file import ResultFile
    from empatheia.files.rows import Row

    with ResultFile(folder / "r.csv", resume=True) as file:
        list(file.done_records())
        _ = Row


def _judge(folder: Path) -> None:
    from empatheia_people.judging.judge import _kept

    _kept(folder / "j.jsonl", {}, "m", "q")


def _answer(folder: Path) -> None:
    from empatheia.errors import EndpointError
    from empatheia.resources.chat_endpoint import _answer_of, _UnreadableError

    try:
        _answer_of((folder / "a.json").read_bytes(), 1, 0.1)
    except _UnreadableError as error:
        raise EndpointError(str(error)) from None


def _texts_of_models(folder: Path) -> None:
    from empatheia.errors import EndpointError
    from empatheia.listener.steps.served import _distribution, _object
    from empatheia_people.judging.prompts import read_choices

    text = (folder / "t.txt").read_bytes().decode("utf-8", "replace")
    read_choices(text, ("overall",))
    try:
        _distribution(_object(text), ("sad", "joyful"))
    except ValueError as error:
        raise EndpointError(str(error)) from None


def _model(folder: Path) -> None:
    from empatheia.listener.parts import stand_in_reason
    from empatheia.resources.catalogue import describe_model
    from empatheia.resources.manifest import read_manifest
    from empatheia_research.understanding.affect.reader import read_facts

    for name in ("config.json", "model.safetensors"):
        (folder / name).touch()
    describe_model(folder, "m")
    stand_in_reason(folder)
    read_facts(folder)
    read_manifest(folder)


def _config(folder: Path) -> None:
    from empatheia.errors import CheckpointError
    from empatheia_research.pretrained import _check_config, model_type_of
    from empatheia_research.understanding.labels.classifier import TextClassifier

    model_type_of(folder)
    _check_config(folder, "m")
    with contextlib.suppress(CheckpointError):  # the good one is no classifier's
        TextClassifier.load(folder)


def _recipe(folder: Path) -> None:
    from empatheia_research.recipes.recipe import load_recipe

    load_recipe(folder / "recipe.yaml", "cpu")


def _gguf(folder: Path) -> None:
    from empatheia_research.gguf_header import check_gguf

    check_gguf(folder / "x.gguf")


def _where_help_is() -> bytes:
    from empatheia.care.resources import RESOURCES

    return RESOURCES.read_bytes()


def _gguf_file() -> bytes:
    import struct

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    fields: dict[str, Any] = {"general.architecture": "llama", "llama.embedding_length": 8, "llama.block_count": 2}
    fields |= {"llama.feed_forward_length": 16}
    out = b"GGUF" + struct.pack("<IQQ", 3, 1, len(fields))
    for name, value in fields.items():
        told = struct.pack("<I", 8) + text(value) if isinstance(value, str) else struct.pack("<IQ", 10, value)
        out += text(name) + told
    return (out + text("t") + struct.pack("<IQQIQ", 2, 8, 64, 0, 0)).ljust(3000, b"\0")


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.ones((3, 2), np.float32))
    return file.getvalue()


def _npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, train=np.ones((3, 2), np.float32))
    return file.getvalue()


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("emocause/valid.json", sample("emocause/valid.json"))
    return file.getvalue()


def _tar() -> bytes:
    import tarfile

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        entry = tarfile.TarInfo("a/b.txt")
        entry.size = 3
        archive.addfile(entry, io.BytesIO(b"abc"))
    return file.getvalue()


@cache
def readers() -> tuple[Reader, ...]:
    """All of them."""
    from models import model_readers

    from empatheia.care.evaluating import read_items
    from empatheia.care.lexicon import LEXICON, Lexicon
    from empatheia.care.resources import Resources
    from empatheia.metrics.bertscore import read_baseline
    from empatheia.metrics.records import read_records
    from empatheia.reading import read_array, read_record
    from empatheia.replies.alignment import read_answers
    from empatheia.replies.reply_files import FORMATS, read_replies, read_texts
    from empatheia.resources.fetch import extract_tar
    from empatheia.voices.language_endpoint import _read_journal
    from empatheia_people.judging.verdicts import read_ratings
    from empatheia_research.corpora import (
        atomic,
        conceptnet,
        conversations,
        edos,
        emocause,
        empathetic_dialogues,
        empathetic_intents,
        epitome,
        everyday,
        labelled_texts,
        lexicons,
        mechanism_levels,
        reccon,
        recec,
        turn_labels,
    )
    from empatheia_research.corpora.annotations import read_annotations
    from empatheia_research.decoding.reply_index import ReplyIndex
    from empatheia_research.reports.focus_chart import focus_chart, read_focus_record
    from empatheia_research.reports.label_charts import GOLD_FIELDS, labels_in, read_rows
    from empatheia_research.side_inputs.external_vectors import read_features as read_vectors
    from empatheia_research.text.vectors import load_vectors
    from empatheia_research.understanding.inferences.index import read_meta
    from empatheia_research.understanding.labels.feature_classifier import read_features

    everyday_lines = sample("everyday/test.jsonl", 4)
    made = [
        Reader("rows csv", "x.csv", b'id,text\n1,"I lost, my job"\n2,So sad\n', lambda f: _rows(f, "x.csv")),
        Reader(
            "turns csv",
            "x.csv",
            b"conversation_id,speaker,text\n1,Ann,Hi.\n1,Bob,Oh\n2,Ann,No\n",
            lambda f: _rows(f, "x.csv", speaker="Ann"),
        ),
        Reader("rows tsv", "x.tsv", b"id\ttext\n1\tHi\n", lambda f: _rows(f, "x.tsv")),
        Reader(
            "rows jsonl",
            "x.jsonl",
            jsonl(TURNS, {"text": "Hi.", "id": 3}, "Hello", {"messages": [{"role": "user", "content": "Hi"}]}),
            lambda f: _rows(f, "x.jsonl"),
        ),
        Reader(
            "transcript",
            "x.txt",
            b"Ann: Hi.\nBob: Hello!\nAnn: I lost my job.\n\nBob: Oh no.\n",
            lambda f: _rows(f, "x.txt", speaker="Ann"),
        ),
        Reader("texts", "x.txt", b"I lost my job.\nSo sad.\n", lambda f: _rows(f, "x.txt")),
        Reader("partial results", "r.csv.partial", jsonl(ROW, {**ROW, "row": 2}), _partial),
        Reader(
            "conversations",
            "x.jsonl",
            jsonl({"id": "a", "turns": [{"speaker": "A", "text": "Hi.", "label": "sad"}], "split": "train"}),
            lambda f: conversations.read(f / "x.jsonl", "x"),
        ),
        Reader(
            "annotations",
            "a.jsonl",
            jsonl({"id": "d", "target": 2, "turns": [0], "spans": [[0, 1, 2]], "by": "x", "p": [0.5]}),
            lambda f: read_annotations(f / "a.jsonl"),
        ),
        Reader("ATOMIC", "t.tsv", sample("atomic/train.tsv"), lambda f: atomic.read(f / "t.tsv")),
        Reader(
            "ATOMIC generations",
            "g.jsonl",
            jsonl({"head": "h", "relation": "xReact", "tails": ["a"], "generations": ["b"], "greedy": "c"}),
            lambda f: atomic.read_generations(f / "g.jsonl"),
        ),
        Reader(
            "ConceptNet",
            "a.csv",
            sample("conceptnet/assertions.csv"),
            lambda f: list(conceptnet.read_assertions(f / "a.csv")),
        ),
        Reader(
            "EDOS",
            f"{edos.FOLDER}/{next(iter(edos.PARTS.values())).file}",
            _edos(edos),
            lambda f: edos.load(next(iter(edos.PARTS)), f),
        ),
        Reader("EmoCause", "valid.json", sample("emocause/valid.json"), lambda f: emocause.read(f / "valid.json")),
        Reader("EmoCause archive", "e.zip", _zip(), lambda f: emocause.read(f / "e.zip", "valid")),
        Reader(
            "EmpatheticDialogues",
            "empatheticdialogues/test.csv",
            sample("empatheticdialogues/test.csv", 9),
            lambda f: empathetic_dialogues.load("test", f),
        ),
        Reader(
            "EmpatheticIntents",
            "empathetic_intents/train_data/test.txt",
            sample("empathetic_intents/train_data/test.txt"),
            lambda f: empathetic_intents.load("test", f),
        ),
        Reader(
            "label names",
            "labels.txt",
            sample("empathetic_intents/train_data/labels.txt", 99),
            lambda f: empathetic_intents.read_label_names(f / "labels.txt"),
        ),
        Reader(
            "turn labels, released",
            "empathetic_intents/annotated_labels.tsv",
            sample("empathetic_intents/annotated_labels.tsv"),
            turn_labels.load_released,
        ),
        Reader(
            "turn labels",
            "l.jsonl",
            jsonl({"model": "m"}, {"id": "a", "turns": ["sad", None]}),
            lambda f: turn_labels.read_turn_labels(f / "l.jsonl"),
        ),
        Reader(
            "EPITOME",
            "epitome/explorations-reddit.csv",
            sample("epitome/explorations-reddit.csv"),
            lambda f: _epitome(epitome, f),
        ),
        Reader("everyday", "test.jsonl", everyday_lines, lambda f: everyday.items("test", f)),
        Reader("labelled texts", "t.txt", sample("topics/test.txt"), lambda f: labelled_texts.read(f / "t.txt")),
        Reader("lexicon vader", "v.txt", sample("lexicons/affect.txt"), lambda f: lexicons.load(f / "v.txt")),
        Reader("lexicon vad", "v.txt", sample("lexicons/vad.txt"), lambda f: lexicons.load(f / "v.txt")),
        Reader(
            "lexicon json",
            "NRCDict.json",
            json.dumps([["a", "b"], {"c": 1}]).encode(),
            lambda f: lexicons.load(f / "NRCDict.json"),
        ),
        Reader(
            "mechanism levels",
            "l.jsonl",
            sample("mechanisms/levels.jsonl"),
            lambda f: mechanism_levels.read_levels(f / "l.jsonl"),
        ),
        Reader(
            "RECCON",
            "reccon/dailydialog_valid.json",
            sample("reccon/dailydialog_valid.json"),
            lambda f: reccon.load("valid", f),
        ),
        Reader(
            "RECEC",
            "recec/valid_with_cause.jsonl",
            sample("recec/valid_with_cause.jsonl", 3),
            lambda f: recec.load("valid", f),
        ),
        *(
            Reader(f"replies {name}", file, sample(f"replies/{file}", 40), _replies(name))
            for name in FORMATS
            for file in [f"replies.{name}" if name in ("csv", "jsonl") else f"{name}.txt"]
        ),
        Reader(
            "replies, format told",
            "r.jsonl",
            sample("replies/replies.jsonl", 40),
            lambda f: read_replies(f / "r.jsonl"),
        ),
        Reader(
            "replies, parallel lists",
            "r.json",
            json.dumps({"ref": ["a", "b"], "x": ["c", "d"]}).encode(),
            lambda f: read_replies(f / "r.json", "empdg"),
        ),
        Reader("replies, texts", "h.txt", b"Oh.\nYes.\n", lambda f: read_texts(f / "h.txt", f / "h.txt", f / "h.txt")),
        Reader(
            "replies side by side",
            "outputs.jsonl",
            jsonl(
                {
                    "id": "a",
                    "turn": 1,
                    "context": ["Hi."],
                    "hyp": "Oh.",
                    "ref": "No.",
                    "causes": [{"turn": 0, "start": 0, "end": 1}],
                }
            ),
            lambda f: read_answers(f / "outputs.jsonl"),
        ),
        Reader(
            "people's choices csv",
            "p.csv",
            b"pair,choice,rater\n1,a,x\n2,tie,x\n",
            lambda f: read_ratings(f / "p.csv", "A", "B"),
        ),
        Reader(
            "people's choices jsonl",
            "p.jsonl",
            jsonl({"pair": "1", "choice": "a"}),
            lambda f: read_ratings(f / "p.jsonl", "A", "B"),
        ),
        Reader("answers of a judge", "j.jsonl", jsonl(VERDICT), _judge),
        Reader("answers of a model", "j.jsonl", jsonl(JOURNAL), lambda f: _read_journal(f / "j.jsonl")),
        Reader("answer of an endpoint", "a.json", json.dumps(ANSWER).encode(), _answer),
        Reader(
            "text of an endpoint", "t.txt", b'Sure: {"overall": "A", "probabilities": {"sad": 0.5}}', _texts_of_models
        ),
        Reader(
            "baseline", "b.tsv", b"LAYER,P,R,F\n0,0.1,0.2,0.3\n1,0.1,0.2,0.3\n", lambda f: read_baseline(f / "b.tsv", 1)
        ),
        Reader(
            "word vectors", "v.txt", b"cat 0.1 0.2\ndog 0.3 0.4\n", lambda f: load_vectors(f / "v.txt", ["cat", "dog"])
        ),
        Reader(
            "external vectors",
            "v.safetensors",
            save_tensors({"vectors": np.ones((2, 3), np.float32)}, {"keys": '["a", "b"]'}),
            lambda f: read_vectors(f / "v.safetensors"),
        ),
        Reader("features npz", "f.npz", _npz(), lambda f: read_features(f / "f.npz")),
        Reader(
            "features",
            "f.safetensors",
            save_tensors({"train": np.ones((2, 3), np.float32)}),
            lambda f: read_features(f / "f.safetensors"),
        ),
        Reader("array", "a.npy", _npy(), lambda f: read_array(f / "a.npy")),
        Reader("candidates", "candidates.json", b'["a", "b", "c"]', lambda f: _candidates(ReplyIndex, f)),
        Reader("tar archive", "a.tar.gz", _tar(), lambda f: extract_tar(f / "a.tar.gz", f / "out")),
        Reader("run record, tables", "x/cpu-seed1.json", json.dumps(RECORD).encode(), _pages),
        Reader("run record, published", "x/cpu-seed1.json", json.dumps(RECORD).encode(), _reproduction),
        Reader("focus record, tables", "x/cpu-seed1.json", json.dumps(FOCUS).encode(), _pages),
        Reader(
            "focus record, picture",
            "m.json",
            json.dumps(FOCUS).encode(),
            lambda f: _close(focus_chart({"x": read_focus_record(f / "m.json")})),
        ),
        Reader("records", "x/cpu-seed1.json", json.dumps(RECORD).encode(), read_records),
        Reader("curves", "curves.jsonl", jsonl(*CURVES), _curves),
        Reader(
            "labels of a picture",
            "o.jsonl",
            jsonl({"gold": "sad", "predicted": ["sad"]}),
            lambda f: labels_in(read_rows(f / "o.jsonl"), GOLD_FIELDS, f),
        ),
        Reader("cache of inferences", "c.jsonl", jsonl(*CACHE), _cache),
        Reader("index of inferences", "empatheia.json", json.dumps(INDEX).encode(), read_meta),
        Reader("manifest", "empatheia.json", json.dumps(MANIFEST).encode(), _model),
        Reader("card", "card.json", json.dumps(CARD).encode(), _card),
        Reader("configuration", "config.json", json.dumps({"model_type": "bert", "hidden_size": 8}).encode(), _config),
        Reader("any object", "x.json", json.dumps(RECORD).encode(), lambda f: read_record(f / "x.json")),
        Reader("recipe", "recipe.yaml", (ROOT / "recipes/rashkin2018/fasttext.yaml").read_bytes(), _recipe),
        Reader(
            "care, texts",
            "t.jsonl",
            (ROOT / "tests/data/care_texts.jsonl").read_bytes()[:700].rpartition(b"\n")[0],
            lambda f: read_items(f / "t.jsonl"),
        ),
        Reader(
            "care, lexicon",
            "l.tsv",
            b"".join(LEXICON.read_bytes().splitlines(keepends=True)[:60]),
            lambda f: Lexicon.read(f / "l.tsv"),
        ),
        Reader("care, where help is", "r.yaml", _where_help_is(), lambda f: Resources.read(f / "r.yaml").block()),
        Reader("GGUF header", "x.gguf", _gguf_file(), _gguf),
    ]
    return (*made, *model_readers())


def _candidates(index: Any, folder: Path) -> None:
    np.save(folder / "candidates.npy", np.ones((3, 2), np.float16))
    index.load(folder)


def _close(figure: Any) -> None:
    import matplotlib.pyplot as plt

    plt.close(figure)


def _replies(name: str) -> Read:
    from empatheia.replies.reply_files import read_replies

    return lambda folder: read_replies(next(folder.iterdir()), name)


def _card(folder: Path) -> None:
    from empatheia.resources.catalogue import _numbers

    _numbers(folder / "card.json")


def _edos(edos: Any) -> bytes:
    part = next(iter(edos.PARTS.values()))
    return f'{part.id},{part.text},{part.label}\n1,"- Hi.\n- Oh.",sad\n2,Hello,-\n'.encode()


def _epitome(epitome: Any, folder: Path) -> None:
    for name in ("emotional-reactions-reddit.csv", "interpretations-reddit.csv"):
        (folder / "epitome" / name).write_bytes(sample(f"epitome/{name}"))
    epitome.load("train", folder)
