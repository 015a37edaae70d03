"""Where MEED2's labels come from, what it is told and when, and the chain of runs it learns in."""

import gzip
import json
from functools import cache

import numpy as np
import pytest
import torch
import yaml

from empatheia.errors import CheckpointError, ConfigError, DecodingError, MissingResourceError
from empatheia.listener import Listener
from empatheia.metrics.published import compare, published
from empatheia.metrics.score import Score
from empatheia.records.dialogue import Dialogue, Example
from empatheia.taxonomy import LABELS_41
from empatheia.text.inputs import prepare
from empatheia_research.corpora import edos, pooled, sample
from empatheia_research.corpora.turn_labels import write_turn_labels
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.shipped import recipes_root
from empatheia_research.side_inputs.turn_labels import LabelsOfTurns
from empatheia_research.text.collation import Layout, encode_examples
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.training.evaluation import evaluate_model, generate, one_turn_a_dialogue, similarity_score
from empatheia_research.training.initial_weights import load_start, started_from
from empatheia_research.training.runner import _what_runs
from empatheia_research.training.stages import run_stage
from empatheia_research.training.tasks.respond import RespondTask
from empatheia_research.understanding.labels.next_label import (
    ContextReader,
    NextTurn,
    ReactionPredictor,
    ReactionPredictorConfig,
    predict,
)
from empatheia_research.understanding.labels.utterance_classifier import (
    PieceReader,
    UtteranceClassifier,
    UtteranceClassifierConfig,
    train_pieces,
)

TEXTS = ("I lost my job.", "Oh no! Why?", "They closed the shop.", "I hope you find another one.", "Me too.")
DIALOGUE = Dialogue.of(*TEXTS, id="d")
SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A classifier and a predictor with random weights that say different things of different texts."""
    root = tmp_path_factory.mktemp("labellers")
    pieces = train_pieces(TEXTS, 150, 64)
    sizes = {"model_type": "bert", **SIZES, "vocab_size": len(pieces), "max_position_embeddings": 80, "pad_token_id": 0}
    torch.manual_seed(0)
    config = UtteranceClassifierConfig(encoder_config=sizes, labels=LABELS_41, max_pieces=64)
    classifier = UtteranceClassifier(config)
    torch.nn.init.normal_(classifier.head[-1].weight)
    classifier.save_pretrained(root / "classifier")
    PieceReader(pieces, config).save(root / "classifier")
    (root / "classifier" / "empatheia.json").write_text(json.dumps({"name": "tiny intents"}))
    config = ReactionPredictorConfig(encoder_config=sizes, max_pieces=64)
    predictor = ReactionPredictor(config)
    torch.nn.init.normal_(predictor.head[-1].weight)
    torch.nn.init.normal_(predictor.label_table.weight)
    predictor.save_pretrained(root / "predictor")
    ContextReader(pieces, config).save(root / "predictor")
    return {name: str(root / name) for name in ("classifier", "predictor")}


@cache
def tokenizer():
    return DialogueTokenizer.train_words(TEXTS)


def items_of(examples):
    return encode_examples(examples, tokenizer(), Layout(100, separators="double"))


def collated(side, examples, how="add"):
    items = items_of(examples)
    getattr(side, how)(examples, items)
    return side.collate(items, 0, max(len(item.input_ids) for item in items)), items


# -- the side input ------------------------------------------------------------------------------------------


def test_every_piece_has_the_classifiers_label_of_its_turn(models):
    from empatheia_research.understanding.labels.turns import IntentOfTurns

    side = LabelsOfTurns(tokenizer(), **models)
    batch, items = collated(side, DIALOGUE.examples(("speaker", "listener")))
    said = [record.label for record in IntentOfTurns.load(models["classifier"]).annotate([DIALOGUE])[0]]
    assert len(set(said)) > 1
    for row, item in zip(batch["turn_label_ids"].tolist(), items, strict=True):
        turns = [0, *item.turn_ids[1:]]  # <s> belongs to the first turn
        assert row[: len(turns)] == [LABELS_41.index(said[turn]) for turn in turns]
        assert set(row[len(turns) :]) <= {-1}


def test_the_replys_label_is_the_predictors_and_no_reply_is_read(models):
    side = LabelsOfTurns(tokenizer(), **models)
    examples = DIALOGUE.examples()
    batch, items = collated(side, examples)
    model, reader = ReactionPredictor.open(models["predictor"])
    names = [tuple(LABELS_41[i] for i in item.extra["turn_labels"]) for item in items]
    asked = [NextTurn(example.context, row) for example, row in zip(examples, names, strict=True)]
    assert batch["reply_label_ids"].tolist() == predict(model, reader, asked).argmax(-1).tolist()
    assert batch["gold_reply_label_ids"].tolist() == [-1, -1]
    others = [Example(e.context, "Something else.", e.dialogue_id, e.turn_index) for e in examples]
    changed, _ = collated(LabelsOfTurns(tokenizer(), **models), others)
    assert all(torch.equal(batch[name], changed[name]) for name in batch)


def test_training_has_the_same_labels_of_turns_and_the_classifiers_of_the_gold_reply(models):
    side = LabelsOfTurns(tokenizer(), **models)
    examples = DIALOGUE.examples(("speaker", "listener"))
    learning, items = collated(side, examples, "teach")
    answering, _ = collated(side, examples)
    assert torch.equal(learning["turn_label_ids"], answering["turn_label_ids"])
    later = items[-1].extra["turn_labels"]  # the replies are turns of the last context
    assert learning["gold_reply_label_ids"].tolist()[:-1] == later[1:]
    assert learning["reply_label_ids"].tolist() == [-1] * 4


def test_a_file_of_labels_saves_the_classifier_and_must_be_its_own(models, tmp_path):
    path = tmp_path / "labels.jsonl"
    write_turn_labels(path, "tiny intents", [("d", ["sad", "questioning", None, "wishing", "agreeing"])])
    side = LabelsOfTurns(tokenizer(), labels=str(path), **models)
    batch, items = collated(side, DIALOGUE.examples(("speaker", "listener")), "teach")
    assert items[-1].extra["turn_labels"] == [27, 38, -1, 39]
    assert batch["gold_reply_label_ids"].tolist() == [38, -1, 39, 32]
    write_turn_labels(path, "another", [("d", [None] * 5)])
    with pytest.raises(ConfigError, match="by 'another', the classifier is 'tiny intents'"):
        LabelsOfTurns(tokenizer(), labels=str(path), **models)
    _, items = collated(LabelsOfTurns(tokenizer(), labels=str(path)), DIALOGUE.examples())
    assert items[0].extra["doubts"] == ["no classifier of labels is set", "no predictor of labels is set"]


def test_labels_of_training_texts_are_remembered_without_the_texts(models, monkeypatch):
    monkeypatch.setattr("empatheia_research.side_inputs.turn_labels._WORTH_KEEPING", 1)
    first, _ = collated(LabelsOfTurns(tokenizer(), **models), DIALOGUE.examples(), "teach")
    again = LabelsOfTurns(tokenizer(), **models)
    monkeypatch.setattr(again, "_component", lambda: pytest.fail("the classifier was asked again"))
    second, _ = collated(again, DIALOGUE.examples(), "teach")
    assert all(torch.equal(first[name], second[name]) for name in first)
    from empatheia.resources import cache_dir

    (file,) = (cache_dir() / "turn_labels").iterdir()
    assert "job" not in file.read_text()


def test_a_model_that_is_not_there_is_an_error_in_training_and_a_doubt_in_use(models):
    with pytest.raises(MissingResourceError, match=r"side input turn_labels, classifier: .*models train intent"):
        LabelsOfTurns(tokenizer(), classifier="./nowhere")
    side = LabelsOfTurns(tokenizer(), classifier="./nowhere", predictor=models["predictor"], must_exist=False)
    batch, items = collated(side, DIALOGUE.examples())
    assert set(batch["turn_label_ids"].flatten().tolist()) == {-1}
    assert "not here" in items[0].extra["doubts"][0]
    assert LabelsOfTurns(tokenizer(), **side.settings()).settings() == side.settings()


def test_without_settings_nothing_is_labelled_and_nothing_doubted():
    batch, items = collated(LabelsOfTurns(tokenizer()), DIALOGUE.examples())
    assert set(batch["turn_label_ids"].flatten().tolist()) == {-1} and "doubts" not in items[0].extra


# -- training, measuring, answering --------------------------------------------------------------------------


def recipe(name, *overrides):
    return load_recipe(recipes_root() / "meed2" / f"{name}.yaml", size="smoke", overrides=overrides)


@pytest.fixture(scope="module")
def trained(models, tmp_path_factory):
    """MEED2 after a few updates on the sample, with its labellers: the task and the run's folder."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    places = [f"data.side_inputs.turn_labels.{name}={place}" for name, place in models.items()]
    chosen = recipe("generator_raw", "data.side_inputs.turn_labels.labels=null", "data.train_limit=8", *places)
    task = RespondTask(chosen, folder)
    stage = chosen.stages[0].model_copy(update={"max_steps": 6, "evaluations": 0, "select": None})
    run_stage(task.model, stage, task.stage_data(stage), folder=folder / "c", curves=folder / "curves.jsonl", seed=1)
    task.model.eval()
    (folder / "checkpoint").mkdir()
    task.save(folder / "checkpoint")
    return task, folder


def test_perplexity_with_the_gold_label_has_a_name_of_its_own(trained):
    task, _ = trained
    examples = [e for e in task.examples(task.recipe.data, "test") if e.response][:5]
    decoding = task.recipe.decoding.model_copy(update={"max_new_tokens": 3})
    found = evaluate_model(task.contexts(task.recipe.data), examples, decoding, {})
    plain, told = found["ppl_token"], found["gold label: ppl_token"]
    assert "gold_labels:no" in plain["signature"] and "gold_labels:yes" in told["signature"]
    assert plain["value"] != told["value"]
    items = encode_examples(examples, task.tokenizer, task.layout(task.recipe.data))
    task.side_inputs[0].teach(examples, items)
    nll = n = 0
    for item, example in zip(items, examples, strict=True):
        batch = {"input_ids": torch.tensor([item.input_ids]), "role_ids": torch.tensor([item.role_ids])}
        batch |= {"labels": torch.tensor([item.labels])}
        labels = task.side_inputs[0].collate([item], 0, len(item.input_ids))
        batch |= {"turn_label_ids": labels["turn_label_ids"], "reply_label_ids": labels["gold_reply_label_ids"]}
        with torch.no_grad():
            nll, n = nll + task.model(**batch).losses["words"].item() * len(item.labels), n + len(item.labels)
        assert example.response
    assert told["value"] == pytest.approx(np.exp(nll / n), rel=1e-4)


@pytest.mark.parametrize("strategy", ["shrinking_beam", "greedy"])
def test_what_the_model_was_saved_with_does_not_change_what_is_measured(trained, strategy):
    """A run's settings are written to its model before it is measured; shrinking beams have a rule of their own."""
    task, _ = trained
    examples = [e for e in task.examples(task.recipe.data, "test") if e.response][:6]
    items = encode_examples(examples, task.tokenizer, task.layout(task.recipe.data))
    task.side_inputs[0].add(examples, items)
    own = {"strategy": strategy, "num_beams": 3, "no_repeat_ngram_size": 0, "max_new_tokens": 12}
    decoding = task.recipe.decoding.model_copy(update=own)
    settings = task.model.generation_config
    kept = {name: getattr(settings, name) for name in ("no_repeat_ngram_size", "num_beams")}
    said = []
    try:
        for size, beams in ((None, None), (1, 4)):
            settings.no_repeat_ngram_size, settings.num_beams = size, beams
            said.append(generate(task.model, items, task.tokenizer, decoding, side_inputs=task.side_inputs))
    finally:
        for name, value in kept.items():
            setattr(settings, name, value)
    assert said[0] == said[1]


def test_the_told_perplexity_stands_beside_the_printed_one():
    row = published("meed2", "3", "MEED2 (OS → ED)", dataset="ED test")
    ours = [
        Score(name, value, "perplexity", 9, False)
        for name, value in (("ppl_token", 40.0), ("gold label: ppl_token", 30.0))
    ]
    (verdict,) = [verdict for verdict in compare(ours, row) if verdict.metric == "PPL"]
    assert verdict.ours == 30.0 and verdict.score == "gold label: ppl_token"
    (verdict,) = [verdict for verdict in compare(ours[:1], row) if verdict.metric == "PPL"]
    assert verdict.ours == 40.0


def test_a_listener_answers_from_the_saved_folder_and_takes_a_label(trained):
    task, folder = trained
    listener = Listener.load(folder / "checkpoint")
    dialogue = Dialogue.of(*TEXTS[:3])
    (item,) = listener.reader.encode([prepare(dialogue)])
    side = task.side_inputs[0]
    examples = [Example(dialogue.turns, None)]
    _, items = collated(side, examples)
    assert item.pieces.extra["turn_labels"] == items[0].extra["turn_labels"]  # the same in training and in use
    assert item.pieces.extra["reply_label"] == items[0].extra["reply_label"]
    reply = listener.respond(dialogue, label="Consoling", max_new_tokens=4)
    assert reply.decoding["label"] == "consoling" and reply.text
    assert "label" not in listener.respond(dialogue, max_new_tokens=4).decoding
    with pytest.raises(DecodingError, match="label: unknown emotion or intent 'kind'"):
        listener.respond(dialogue, label="kind")
    assert listener.network.generation_config.no_repeat_ngram_size == 4


def test_a_model_without_labels_refuses_one(tiny_model):
    with pytest.raises(DecodingError, match="takes no label of the reply"):
        Listener.load(tiny_model).respond("I lost my job.", label="sad")


# -- chain ---------------------------------------------------------------------------------------------------


def test_a_run_starts_from_another_ones_weights_and_pieces(trained, tmp_path):
    task, folder = trained
    start = folder.with_name("smoke-seed1024")
    if not start.exists():
        start.symlink_to(folder)
    chosen = recipe("generator", f"start={folder.parent}/{{size}}-seed{{seed}}", "tokenizer.kind=word")
    assert started_from(chosen) == start / "checkpoint"
    second = RespondTask(chosen, tmp_path / "second")
    assert second.tokenizer.piece_texts() == task.tokenizer.piece_texts()
    weights = task.model.state_dict()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in second.model.state_dict().items())


def test_a_start_that_does_not_fit_is_refused(trained, tmp_path):
    _, folder = trained
    with pytest.raises(CheckpointError, match=r"does not fit the recipe's model: .*differences, first"):
        RespondTask(recipe("transformer_finetuned", f"start={folder}"), tmp_path / "a")
    with pytest.raises(CheckpointError, match=r"\(32,\), not \(16,\)"):
        RespondTask(recipe("generator", f"start={folder}", "model.width=16"), tmp_path / "b")
    with pytest.raises(MissingResourceError, match=r"starts from './nowhere'.*Train that run first"):
        RespondTask(recipe("generator", "start=./nowhere"), tmp_path / "c")
    with pytest.raises(CheckpointError, match=r"no model.safetensors"):
        load_start(None, tmp_path)


def test_a_run_begun_before_a_field_was_there_goes_on():
    now = yaml.safe_load(recipe("transformer_raw", "start=null", "decoding.length_penalty=1.0").dump())
    before = {**now, "decoding": {k: v for k, v in now["decoding"].items() if k != "length_penalty"}}
    del before["start"]
    assert _what_runs(before) == _what_runs(now)
    assert _what_runs({**before, "seed": 5}) != _what_runs(now)


def test_only_runs_on_other_corpora_are_named_after_them():
    for name in ("generator_dialogues", "transformer_dialogues", "generator_edos", "transformer_edos"):
        full = load_recipe(recipes_root() / "meed2" / f"{name}.yaml", size="full")
        assert full.published is None and "NOT the paper's" in full.note
        assert full.data.corpus == "empathetic_dialogues" and full.stages[0].data["corpus"] == "pooled"


def write_corpora(root):
    (root / "dialogue_corpora").mkdir()
    rows = [
        {"id": str(i), "turns": [{"speaker": s, "text": f"text {i} {j}"} for j, s in enumerate("AABAB")]}
        for i in range(60)
    ]
    rows.append({**rows[0], "id": "again"})
    with gzip.open(root / "dialogue_corpora" / "dream.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    (root / "edos").mkdir()
    for part in edos.PARTS.values():
        header = f"{part.id},{part.text},{part.label}\n"
        (root / "edos" / part.file).write_text(header + '7,"- You \'re late .\n- Traffic .",Angry\n')


def test_pooled_corpora_are_split_by_conversation(tmp_path):
    write_corpora(tmp_path)
    splits = {s: pooled.load(["dream", "edos"], s, tmp_path, max_turns=2) for s in ("train", "valid", "test")}
    texts = {s: {turn.text for d in dialogues for turn in d.turns} for s, dialogues in splits.items()}
    assert not texts["train"] & texts["valid"] | texts["train"] & texts["test"] | texts["valid"] & texts["test"]
    assert sum(len({d.id.split("#")[0] for d in dialogues}) for dialogues in splits.values()) == 65
    for dialogue in splits["train"]:
        assert len(dialogue.turns) == 2 and [turn.role for turn in dialogue.turns] == ["speaker", "listener"]
        assert dialogue.emotion is None
    assert splits["train"] == pooled.load(["edos", "dream"], "train", tmp_path, max_turns=2)
    with pytest.raises(ConfigError, match=r"unknown corpus 'draem' in data\.pool\. Did you mean 'dream'"):
        pooled.load(["draem"], "train", tmp_path)
    with pytest.raises(ConfigError, match="needs names of corpora"):
        pooled.load([], "train", tmp_path)


def test_an_unknown_corpus_is_refused(tmp_path):
    task = RespondTask(recipe("transformer_raw"), tmp_path)
    data = task.recipe.data.model_copy(update={"corpus": "empathetic_dialogue"})
    with pytest.raises(ConfigError, match="Did you mean 'empathetic_dialogues'"):
        task.source.dialogues(data, "valid")


# -- test set and similarity ---------------------------------------------------------------------------------


def test_one_turn_of_each_conversation_is_drawn():
    examples = [e for d in sample.load("test").dialogues for e in d.examples(("speaker", "listener"))]
    drawn = one_turn_a_dialogue(examples)
    ids = [example.dialogue_id for example in drawn]
    assert len(ids) == len(set(ids)) == len({e.dialogue_id for e in examples})
    assert drawn == one_turn_a_dialogue(examples) != one_turn_a_dialogue(examples, seed=3)
    assert len(one_turn_a_dialogue(examples, most=3)) == 3 and len({e.turn_index for e in drawn}) > 1


def test_similarity_of_a_text_with_itself_is_1_and_of_nothing_0(models):  # check "Metrics"
    same = similarity_score(["i lost my job .", "oh no !"], ["i lost my job .", "oh no !"], models["classifier"])
    assert same.value == pytest.approx(1.0) and same.name == "sentence_similarity"
    half = similarity_score(["i lost my job .", ""], ["i lost my job .", "oh no !"], models["classifier"])
    assert half.value == pytest.approx(0.5) and half.parts["n_empty"] == 1
