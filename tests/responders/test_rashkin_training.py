"""The retrieval task on the sample: trains, saves, measures by the three protocols, and answers from its folder."""

from dataclasses import replace

import numpy as np
import pytest

from empatheia.cli import main
from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.listener import Listener
from empatheia.records.dialogue import Dialogue
from empatheia_research.corpora import labelled_texts
from empatheia_research.decoding.retrieving import vectors_of
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.training.runner import run
from empatheia_research.training.stages import validation_batches
from empatheia_research.training.tasks.retrieve import RetrieveTask, block_precisions

RECIPES = "recipes/rashkin2018"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of EmoPrepend-3 with an emotion head, and its record."""
    overrides = ["model.emotion_head=true", "stages.replies.losses={response: 0.5, emotion: 0.5}"]
    recipe = load_recipe(f"{RECIPES}/retrieval_emoprepend3.yaml", "smoke", overrides)
    status = run(recipe, tmp_path_factory.mktemp("runs"), show_progress=False)
    return status


def test_check_u_blocks_of_perfect_pairs():
    """Check U: 5,259 perfect pairs evaluate 5,200 and give 100; 100 pairs evaluate none, which is no score at all."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(5259, 64))
    found = block_precisions(vectors, vectors)
    assert {name: score["n"] for name, score in found.items()} == {
        "p_at_1_100": 5200,
        "blocks-ordered: p_at_1_100": 5200,
    }
    assert [score["value"] for score in found.values()] == [100.0, 100.0]
    assert "blocks-shuffled" in found["p_at_1_100"]["signature"]
    assert block_precisions(vectors[:100], vectors[:100]) == {}


def test_the_run_is_measured(trained):
    metrics = trained.metrics["metrics"]
    assert not any("p_at_1_100" in name for name in metrics)  # 17 pairs: no block of 100, which is no score of 0
    assert metrics["bleu_avg"]["n"] == 17 and "tok:rashkin" in metrics["bleu_avg"]["signature"]
    assert 0 <= metrics["accuracy"]["value"] <= 100
    assert metrics["chosen"]["candidates"] == trained.metrics["data"]["candidates"]["own"] > 50


def test_its_folder_answers_like_any_listener(trained):
    listener = Listener.load(trained.folder / "checkpoint")
    texts = ["I lost my grandmother last week.", "I finally got the job!"]
    replies = listener.respond(texts)
    assert [reply.text for reply in replies] == [listener.respond(text).text for text in texts]
    assert all(reply.text in listener.index.texts for reply in replies)
    assert replies[0].decoding["strategy"] == "retrieve"
    assert sum(replies[0].analysis.newest.emotions.values()) == pytest.approx(1)
    matches = listener.best(texts[0], k=3)
    assert matches[0].text == replies[0].text and matches[0].score >= matches[1].score >= matches[2].score
    assert "".join(listener.stream(texts[0])) == replies[0].text
    assert listener.converse().say(texts[1]).text == replies[1].text
    assert listener.analyze(texts[0]).newest.emotions == pytest.approx(
        dict(replies[0].analysis.newest.emotions), rel=1e-4
    )
    listener.use_candidates(["Only this."])
    assert listener.respond(texts[0]).text == "Only this."
    with pytest.raises(DataError, match="1 or more"):
        listener.best(texts[0], k=0)


def test_candidates_of_the_corpus_itself(tmp_path):
    """The third protocol: the gold reply among the 100 a row lists; a row that lists 99 is not asked."""
    task = RetrieveTask(load_recipe(f"{RECIPES}/retrieval_base.yaml", "smoke"), tmp_path)
    corpus, examples = task.source.read("test"), task.examples("test")[:3]
    others = [f"{t.text} {i}" for d in task.source.read("train").dialogues for i, t in enumerate(d.turns)]
    lists = {(e.dialogue_id, e.turn_index): (*others[:40], str(e.response), *others[40:99]) for e in examples[:2]}
    lists[examples[2].dialogue_id, examples[2].turn_index] = (str(examples[2].response), *others[:98])
    task.source.splits["test"] = replace(corpus, candidates=lists)
    queries = vectors_of(task.model, task.reader, [row for row, _, _ in task.pairs(examples)], "context")
    found = task._inline("test", examples, queries)["inline: p_at_1_100"]
    assert found["n"] == 2 and "protocol:inline" in found["signature"]
    hits = 0
    for query, example in zip(queries[:2], examples[:2], strict=True):
        texts = lists[example.dialogue_id, example.turn_index]
        scores = vectors_of(task.model, task.reader, task.reader.replies(texts), "candidate") @ query
        hits += texts[scores.argmax()] == example.response
    assert found["value"] == 50.0 * hits


def test_the_second_candidate_set_holds_the_first(tmp_path, monkeypatch):
    recipe = load_recipe(f"{RECIPES}/retrieval_base.yaml", "smoke", ["data.candidates=[own, dailydialog]"])
    task = RetrieveTask(recipe, tmp_path)
    own = task.candidates("own")
    words = own[1].rstrip(".!?")
    assert f"{words}?" not in own
    again = own[0].replace(".", " .").replace("!", " !").replace("?", " ?")  # other blanks, the same words
    assert again not in own
    dialogue = Dialogue.of("Hi.", again, f"{words}?", id="d")
    monkeypatch.setattr("empatheia_research.training.tasks.retrieve.conversations.load", lambda name: [dialogue])
    made = task.indices()
    assert list(made) == ["own", "own+dailydialog"]
    assert made["own+dailydialog"].texts == [*own, f"{words}?"]


def test_training_learns_both_roles_and_is_measured_on_the_listener(tmp_path):
    task = RetrieveTask(load_recipe(f"{RECIPES}/retrieval_base.yaml", "smoke"), tmp_path)
    assert {e.turn_index % 2 for e in task.examples("train")} == {0, 1}
    assert {e.turn_index % 2 for e in task.examples("test")} == {1}


def test_validation_has_the_batches_of_training(tmp_path):
    """The loss is over the batch: ln B at chance, so early stopping must not see batches of other sizes."""
    recipe = load_recipe(f"{RECIPES}/retrieval_base.yaml", "smoke")
    task = RetrieveTask(recipe, tmp_path)
    (stage,) = recipe.stages
    data = task.stage_data(stage)
    n, size = len(data.valid), stage.batch_examples
    batches = validation_batches(data, stage)
    assert [len(batch) for batch in batches] == [size] * (n // size) + [n % size] * (n % size > 0)
    assert sorted(i for batch in batches for i in batch) == list(range(n))
    assert batches == validation_batches(data, stage)
    lengths = [[data.valid_lengths[i] for i in batch] for batch in batches]
    assert lengths != [sorted(row) for row in lengths]  # negatives are not of one length


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.corpus=sampel", "no corpus is called 'sampel'. Did you mean 'sample'"),
        ("model.pooling=max", "accepted: mean, first"),
        ("model.widht=3", "Did you mean 'width'"),
        ("system=transformer", "task retrieve is for system rashkin_retrieval"),
    ],
)
def test_bad_recipes(tmp_path, override, message):
    with pytest.raises(ConfigError, match=message):
        RetrieveTask(load_recipe(f"{RECIPES}/retrieval_base.yaml", "smoke", [override]), tmp_path)


def test_labelled_texts(tmp_path):
    file = tmp_path / "topics.txt"
    file.write_text("".join(f"a\ttext {i}\nb\tother {i}\n" for i in range(200)), encoding="utf-8")
    parts = {split: labelled_texts.load(file, split) for split in labelled_texts.SPLITS}
    assert sum(map(len, parts.values())) == 400 and 280 < len(parts["train"]) < 360
    assert len({pair for rows in parts.values() for pair in rows}) == 400  # no text is in two splits
    file.write_text("no tab here\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"topics.txt:1: .* a tab and a text"):
        labelled_texts.load(file, "train")
    with pytest.raises(MissingResourceError, match=r"20news-bydate\.tar\.gz"):
        labelled_texts.load(tmp_path / "none", "train")


def test_twenty_newsgroups_from_an_unpacked_archive(tmp_path):
    pytest.importorskip("sklearn")
    for part in ("train", "test"):
        for group in ("comp.os.ms-windows.misc", "sci.crypt"):
            place = tmp_path / f"20news-bydate-{part}" / group
            place.mkdir(parents=True)
            for i in range(20):
                (place / str(i)).write_bytes(f"Subject: {group}\n\ntext {i} caf\xe9".encode("latin-1"))
    rows = {split: labelled_texts.load(tmp_path, split) for split in labelled_texts.SPLITS}
    assert {label for label, _ in rows["train"]} == {"windows", "cryptography"}
    assert len(rows["train"]) + len(rows["valid"]) == 40 == len(rows["test"])
    assert (
        rows["test"][0][1].endswith("café")
        and len(labelled_texts.GROUPS) == len(set(labelled_texts.GROUPS.values())) == 20
    )


def test_topics_and_the_retriever_from_the_command_line(trained, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["respond", "My dog is ill.", "--model", str(trained.folder / "checkpoint")])
    assert not ended.value.code
    assert capsys.readouterr().out.strip() in Listener.load(trained.folder / "checkpoint").index.texts
