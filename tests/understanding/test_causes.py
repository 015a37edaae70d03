"""Causes of one's own conversation: turns and spans, emotions from anywhere, odd conversations, broken folders."""

from __future__ import annotations

import json

import pytest
import tiny_causes as bench
import torch

from empatheia.analysis.component import COMPONENTS
from empatheia.errors import CheckpointError, ConfigError, DataError, MissingResourceError
from empatheia.records.analysis import Analysis, TurnAnalysis, TurnLabels
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.taxonomy import EMOTIONS
from empatheia_research.understanding.causes.turns import CausesOfTurns, reccon_word, reccon_word_of

MIXED = [
    Dialogue.of("a b c .", "d ?", "e f g h , a b", "b", id="four", emotion="furious"),
    Dialogue.of("a", id="one"),
    Dialogue("listener", (Turn("listener", "a b"), Turn("listener", "c"))),
    Dialogue("empty text", (Turn("speaker", ""), Turn("listener", "c"), Turn("speaker", "a"))),
    Dialogue("none", ()),
]


def with_tokenizer(model):
    return model, bench.tokenizer()


def components():
    joint = {"form": "joint", "null_threshold": -9.0}
    return {
        "entailment": CausesOfTurns(with_tokenizer(bench.entailment_model(threshold=0.1))),
        "piece head": CausesOfTurns(with_tokenizer(bench.entailment_model(threshold=0.1, spans=True))),
        "joint": CausesOfTurns(spans=with_tokenizer(bench.spans_model(**joint))),
        "paper": CausesOfTurns(spans=with_tokenizer(bench.spans_model(answers="evidence", null_threshold=-9.0))),
        "both": CausesOfTurns(
            with_tokenizer(bench.entailment_model(threshold=0.1)), with_tokenizer(bench.spans_model(**joint))
        ),
        "without context": CausesOfTurns(
            with_tokenizer(bench.entailment_model(threshold=0.1, context=False)),
            with_tokenizer(bench.spans_model(context=False, **joint)),
        ),
    }


@pytest.mark.parametrize("kind", components())
def test_every_speaker_turn_is_explained(kind):
    component = components()[kind]
    found = component.annotate(MIXED)
    assert [[note.target for note in row] for row in found] == [[0, 2], [0], [], [0, 2], []]
    for dialogue, row in zip(MIXED, found, strict=True):
        for note in row:
            assert note.dialogue_id == dialogue.id and note.emotion == "neutral"
            assert len(note.probabilities) == note.target + 1
            assert all(0 <= p <= 1 for p in note.probabilities)
            assert all(turn <= note.target for turn in note.turns)
            for span in note.spans:
                assert span.turn in note.turns and 0 <= span.score <= 1
                assert span.of(dialogue.turns).strip() == span.of(dialogue.turns) != ""
    assert any(note.turns for row in found for note in row)
    assert bool([s for row in found for n in row for s in n.spans]) == (kind != "entailment")


@pytest.mark.parametrize("kind", components())
def test_an_answer_does_not_depend_on_its_neighbours(kind):
    component = components()[kind]
    whole = component.annotate(MIXED)
    alone = [component.annotate([dialogue], batch_size=1)[0] for dialogue in MIXED]
    for a, b in zip(whole, alone, strict=True):
        for x, y in zip(a, b, strict=True):
            assert x.turns == y.turns and x.probabilities == pytest.approx(y.probabilities, abs=2e-4)
            assert [(s.turn, s.start, s.end) for s in x.spans] == [(s.turn, s.start, s.end) for s in y.spans]


@pytest.mark.parametrize("kind", components())
def test_later_turns_and_gold_labels_change_nothing(kind):
    component = components()[kind]
    first = component.annotate(MIXED[:1])[0][0]
    changed = Dialogue.of("a b c .", "f f", "g", "h", id="four", emotion="joyful")
    assert component.annotate([changed])[0][0] == first


def test_five_hundred_turns():
    texts = [" ".join("abcdefgh"[i % 8] for _ in range(3)) for i in range(500)]
    pair = (
        with_tokenizer(bench.entailment_model(max_pieces=64)),
        with_tokenizer(bench.spans_model(form="joint", max_pieces=64)),
    )
    seen = []
    (row,) = CausesOfTurns(*pair, threshold=0.0).annotate([Dialogue.of(*texts, id="long")], progress=seen.append)
    assert [note.target for note in row] == list(range(0, 500, 2)) and seen == [1]
    last = row[-1]
    assert len(last.probabilities) == 499 and last.probabilities[0] == 0.0 and last.probabilities[-1] > 0
    assert all(span.turn > 400 for span in last.spans) and last.spans
    # nothing is lost in silence: the record says from where on turns were read
    assert last.first_read > 400 and not any(last.probabilities[: last.first_read])
    assert all(last.probabilities[last.first_read :]) and row[0].first_read == 0
    alone = CausesOfTurns(spans=pair[1], threshold=0.0).annotate([Dialogue.of(*texts)])[0][-1]
    assert alone.first_read == last.first_read
    turns = tuple(TurnAnalysis(note.target, evidence=note) for note in row)
    record = Analysis(Dialogue.of(*texts), turns, by={"causes": "tiny"}, parts=("causes",)).to_dict()["causes"]
    assert "first_read" not in record[0] and record[-1]["first_read"] == last.first_read


def test_the_pair_form_reads_every_turn_of_a_long_conversation():
    texts = ["abcdefgh"[i % 8] for i in range(40)]
    model = with_tokenizer(bench.entailment_model(form="pair", max_pieces=32))
    (row,) = CausesOfTurns(model).annotate([Dialogue.of(*texts)])
    assert all(row[-1].probabilities) and len(row[-1].probabilities) == 39 and row[-1].first_read == 0


def test_emotions_come_from_a_component_a_word_or_the_conversation():
    model = with_tokenizer(bench.entailment_model())

    def words(**options):
        return [[n.emotion for n in row] for row in CausesOfTurns(model, **options).annotate(MIXED)]

    assert words() == [["neutral", "neutral"], ["neutral"], [], ["neutral", "neutral"], []]
    assert words(emotion="lonely")[0] == ["sadness", "sadness"]
    assert words(emotion="conversation") == [["anger", "anger"], ["neutral"], [], ["neutral", "neutral"], []]

    class Perceives:
        part = "emotion"

        def annotate(self, dialogues, *, batch_size=32, progress=None):
            def labels(i):
                chances = dict.fromkeys(EMOTIONS, 0.0) | {("sad", "furious", "joyful")[i % 3]: 1.0}
                return TurnLabels(i, chances)

            return [tuple(labels(i) for i, t in enumerate(d.turns) if t.role == "speaker") for d in dialogues]

    assert words(emotion=Perceives()) == [["sadness", "happiness"], ["sadness"], [], ["sadness", "happiness"], []]
    sources = {None: "unknown", "lonely": "given", "conversation": "conversation", Perceives(): "component"}
    for emotion, source in sources.items():  # the record says whether a label was read
        note = CausesOfTurns(model, emotion=emotion).annotate(MIXED)[0][0]
        assert note.annotator.endswith(f"+emotion:{source}")
    named = Perceives()
    named.name = "rashkin"
    assert CausesOfTurns(model, emotion=named).annotate(MIXED)[0][0].annotator.endswith("+emotion:rashkin")
    read = CausesOfTurns(model, emotion="lonely").annotate(MIXED)[0][1].probabilities
    assert read != CausesOfTurns(model, emotion="furious").annotate(MIXED)[0][1].probabilities


def test_words_of_reccon():
    assert {reccon_word(e) for e in EMOTIONS} == {"happiness", "surprise", "anger", "sadness", "disgust", "fear"}
    assert reccon_word("fear") == "fear"
    assert reccon_word_of({"sad": 0.3, "lonely": 0.25, "joyful": 0.45}) == "sadness"
    assert reccon_word_of({"questioning": 1.0}) == reccon_word_of({}) == "neutral"
    with pytest.raises(DataError, match=r"unknown emotion 'lonley'\. Did you mean 'lonely'"):
        CausesOfTurns(with_tokenizer(bench.entailment_model()), emotion="lonley")


def test_the_threshold_of_the_caller_decides():
    for kind in ("entailment", "joint", "both"):
        base = components()[kind]
        for threshold, expected in ((0.0, {0, 1, 2}), (1.1, set())):
            made = CausesOfTurns(base.entailment, base.spans, threshold=threshold).annotate(MIXED[:1])[0][1]
            assert set(made.turns) == expected


def test_listener_turns_too_when_asked():
    component = CausesOfTurns(with_tokenizer(bench.entailment_model()), targets=("speaker", "listener"))
    assert [[n.target for n in row] for row in component.annotate(MIXED)] == [[0, 1, 2, 3], [0], [0, 1], [0, 1, 2], []]


def save(folder, model, name=None):
    model.save_pretrained(folder)
    bench.tokenizer().save_pretrained(folder)
    if name:
        (folder / "empatheia.json").write_text(json.dumps({"name": name}))
    return folder


def test_loading_gives_the_same_answers(tmp_path):
    torch.manual_seed(0)
    turns = save(tmp_path / "turns", bench.entailment_model(), "reccon/entailment")
    words = save(tmp_path / "words", bench.spans_model(form="joint"), "reccon/span")
    made = COMPONENTS.get("causes").load(turns, words)
    assert (made.part, made.name) == ("causes", "reccon/entailment+reccon/span")
    own = CausesOfTurns(with_tokenizer(bench.entailment_model()), with_tokenizer(bench.spans_model(form="joint")))
    assert made.annotate(MIXED) == own.annotate(MIXED)
    note = made.annotate(MIXED)[0][0]
    assert note.annotator.startswith("cause_entailment/joint-") and "+cause_spans/joint-" in note.annotator
    alone = COMPONENTS.get("causes").load(words)
    assert alone.entailment is None and alone.annotate(MIXED)[0][0].annotator.startswith("cause_spans/joint-")
    paper = COMPONENTS.get("causes").load(save(tmp_path / "paper", bench.spans_model()))
    assert paper.spans[0].config.answers == "evidence"
    turns = (TurnAnalysis(note.target, evidence=note),)
    record = Analysis(MIXED[0], turns, by={"causes": made.name}, parts=("causes",)).to_dict()
    assert json.loads(json.dumps(record))["causes"][0]["target"] == 0


def test_broken_folders(tmp_path):
    turns = save(tmp_path / "turns", bench.entailment_model())
    load = COMPONENTS.get("causes").load
    with pytest.raises(CheckpointError, match="are both cause_entailment models"):
        load(turns, turns)
    with pytest.raises(MissingResourceError, match="no model folder"):
        load(str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"no readable config\.json"):
        load(tmp_path / "empty")
    with pytest.raises(CheckpointError, match="model_type is 'bert'; accepted: cause_entailment, cause_spans"):
        load(bench.encoder_folder(tmp_path / "plain"))
    words = save(tmp_path / "words", bench.spans_model(form="joint"))
    (words / "empatheia.json").write_text("{broken")
    assert load(words).name == "words"
    (words / "tokenizer.json").unlink()
    (words / "tokenizer_config.json").unlink()
    with pytest.raises(CheckpointError, match="no tokenizer in"):
        load(words)
    (turns / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="cannot read a model"):
        load(turns)
    with pytest.raises(ConfigError, match="give an entailment model, a span model, or both"):
        CausesOfTurns()
    with pytest.raises(ConfigError, match="accepted: an emotion, `conversation`, a component"):
        CausesOfTurns(with_tokenizer(bench.entailment_model()), emotion=3)
