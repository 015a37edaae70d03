"""Coverage, mechanisms and the fresh listener side by side, with gold and trivial replies."""

from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_focus import byte_tokenizer
from tiny_models import make_model

from empatheia.analysis.targets import GivenTargets
from empatheia.errors import ConfigError, DataError
from empatheia.metrics.significance import paired_permutation
from empatheia.records.analysis import Mechanism
from empatheia.records.dialogue import Dialogue
from empatheia.taxonomy import MECHANISMS
from empatheia_research.decoding.distractors import GivenDistractors
from empatheia_research.decoding.focus_scores import focus_scores
from empatheia_research.decoding.given_replies import focused_score
from empatheia_research.decoding.listening import FreshListener
from empatheia_research.decoding.world_inputs import stacked_worlds, worlds_of
from empatheia_research.understanding.vectors.words import WordVectors

DIALOGUES = [Dialogue.of("My dog died.", id="a"), Dialogue.of("Hi.", "Hello!", "I lost my keys today.", id="b")]
TARGETS = [GivenTargets(["dog", "died"]).find(DIALOGUES[:1])[0], GivenTargets(["lost", "keys"]).find(DIALOGUES[1:])[0]]
FOCUSED = ["Oh, your dogs are dying?", "You're losing the keys!"]


class Mechanisms:
    """Level by the number of question marks; keeps what it was asked."""

    mechanisms = MECHANISMS

    def __init__(self):
        self.asked = []

    def annotate(self, dialogues, *, batch_size=32, progress=None):
        self.asked += dialogues
        return [
            tuple(Mechanism(1, name, min(2, d.turns[1].text.count("?")), (1, 0, 0)) for name in MECHANISMS)
            for d in dialogues
        ]


def test_side_by_side():
    component = Mechanisms()
    table = focus_scores(
        {"focused": FOCUSED, "plain": ["I am sorry.", "Oh no. Why??"]},
        DIALOGUES, TARGETS, gold=["I'm sorry your puppy died.", ""], mechanisms=component,
        vectors=WordVectors(lambda words: np.array([[w in ("dog", "puppy"), w == "keys"] for w in words], float), "v"),
    )  # fmt: skip
    assert list(table) == ["focused", "plain", "gold", "trivial: sorry", "trivial: why"]
    values = {name: {key: metric.compute().value for key, metric in own.items()} for name, own in table.items()}
    assert values["focused"]["coverage"] == 100 and values["plain"]["coverage"] == 0
    assert values["gold"]["coverage"] == 25 and values["gold"]["coverage_near"] == 50
    assert values["plain"]["exploration"] == 1.0 and values["trivial: why"]["exploration"] == 1.0
    assert values["gold"]["exploration"] == 0 and set(values["gold"]) == {"coverage", "coverage_near", *MECHANISMS}
    signature = table["focused"]["coverage_near"].compute().signature
    assert "threshold:0.6" in signature and "encoder:v" in signature
    for pair in component.asked:  # Kim et al.'s input: the last speaker turn alone, and the reply
        assert [turn.role for turn in pair.turns] == ["speaker", "listener"] and pair.id == ""
    assert {pair.turns[0].text for pair in component.asked} == {"My dog died.", "I lost my keys today."}
    compared = paired_permutation(table["focused"]["coverage"], table["plain"]["coverage"], 99)
    assert compared.difference == 100


def test_vectors_of_stop_words_are_near_nothing():
    calls = []

    def source(words):
        calls.append(list(words))
        return np.ones((len(words), 2))

    vectors = WordVectors(source, "same", 0.7)
    metric = vectors.coverage()
    metric.update([["it", "is", "!"], ["cake"]], [["dog"], ["dog"]])
    assert metric.compute().value == 50 and "threshold:0.7" in metric.compute().signature
    assert sorted(chain(*calls)) == ["!", "cake", "dog", "is", "it"], "a word is encoded once"


def test_static_vectors_from_a_file(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("dog 1 0\npuppy 0.9 0.1\nexam 0 1\n", encoding="utf-8")
    vectors = WordVectors.of_file(path, ["A puppy!", "dog exam zebra"])
    metric = vectors.coverage(0.9)
    metric.update([["puppy"], ["zebra"]], [["dog", "exam"], ["dog", "zebra"]])
    assert metric.compute().value == 50
    assert "encoder:glove.txt" in metric.compute().signature


def contrasts():
    made = []
    for own, word, others in ((TARGETS[0], "dog", ["cat", "car"]), (TARGETS[1], "keys", ["cake", "train"])):
        made += GivenDistractors(words={word: others}).make([own])
    return made


@pytest.fixture(scope="module")
def fresh():
    tokenizer = byte_tokenizer()
    torch.manual_seed(0)
    model = make_model("bart")
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    with torch.no_grad():
        model.model.shared.weight.normal_(std=0.7)

    def encode(dialogues):
        texts = ["\n".join(turn.text for turn in d.turns) for d in dialogues]
        return dict(tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False))

    def labels(replies):
        rows = [[*tokenizer(reply, add_special_tokens=False)["input_ids"], 2] for reply in replies]
        width = max(map(len, rows))
        return torch.tensor([[*row, *[-100] * (width - len(row))] for row in rows])

    return FreshListener(model.eval(), encode, labels, "bart")


def test_a_fresh_listener(fresh):
    """The true context is the one under which the reply is likeliest; beta changes nothing."""
    made = contrasts()
    replies = [*FOCUSED, "", "Yes."]
    dialogues, twice = [*DIALOGUES, *DIALOGUES], [*made, *made]
    told = fresh.tells(dialogues, twice, replies)
    alone = [fresh.tells([d], [c], [r])[0] for d, c, r in zip(dialogues, twice, replies, strict=True)]
    assert told == alone
    for dialogue, contrast, reply, answer in zip(dialogues, twice, replies, told, strict=True):
        labels = fresh.labels([reply] * 3)
        with torch.no_grad():
            logits = fresh.model(**fresh.encode(contrast.dialogues(dialogue)), labels=labels).logits
        likelihood = logits.log_softmax(-1).gather(-1, labels[..., None]).sum((1, 2))
        assert answer == (int(likelihood.argmax()) == 0)
    worlds = worlds_of(DIALOGUES, made, fresh.encode)
    for beta in (0.3, 2.0):
        assert focused_score(fresh.model, worlds, fresh.labels(FOCUSED), beta=beta).tells_true().tolist() == told[:2]
    assert len(set(told)) == 2, "all the same: the test shows little"


def test_listener_accuracy_side_by_side(fresh):
    made = contrasts()
    table = focus_scores(
        {"a": FOCUSED}, DIALOGUES, TARGETS, listener=fresh, contrasts=[made[0], None], speakers={"a": "other"}
    )
    score = table["a"]["listener_accuracy"].compute()
    assert score.n == 1 and "listener:bart" in score.signature and "distractors:given" in score.signature
    assert score.parts["chance"] == pytest.approx(100 / 3)
    with pytest.raises(ConfigError, match="also spoke"):
        focus_scores({"a": FOCUSED}, DIALOGUES, TARGETS, listener=fresh, contrasts=made, speakers={"a": "bart"})
    with pytest.raises(DataError, match="a listener cannot be measured"):
        focus_scores({"a": FOCUSED}, DIALOGUES, TARGETS, listener=fresh, contrasts=[None, None])
    assert stacked_worlds(DIALOGUES, made, byte_tokenizer()).n_worlds == 3


def test_bad_input():
    with pytest.raises(DataError, match="'a' has 1 entries for 2"):
        focus_scores({"a": ["x"]}, DIALOGUES, TARGETS)
    with pytest.raises(DataError, match="called 'gold'"):
        focus_scores({"gold": FOCUSED}, DIALOGUES, TARGETS)
    with pytest.raises(DataError, match="0 contrasts for 2"):
        focus_scores({"a": FOCUSED}, DIALOGUES, TARGETS, listener=SimpleNamespace(name="x"))
