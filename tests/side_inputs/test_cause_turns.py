"""Causal turns as a sequence; numbers in the docstrings are the checks of IMAGINE's specification, section 10."""

import logging

import pytest

from empatheia.errors import ConfigError, MissingResourceError
from empatheia.records.dialogue import CauseAnnotation, Example, Turn
from empatheia_research.corpora.annotations import write_annotations
from empatheia_research.side_inputs import make_side_inputs
from empatheia_research.side_inputs.cause_turns import CauseTurns
from empatheia_research.text.collation import Layout, encode_examples
from empatheia_research.text.tokenizer import DialogueTokenizer

TOKENIZER = DialogueTokenizer.train_words(["a b c d e"])
A, B, C = (TOKENIZER.encode(word).ids[0] for word in "abc")
CLS = TOKENIZER.cls_id
EXAMPLE = Example((Turn("speaker", "a"), Turn("listener", "b"), Turn("speaker", "c")), None, "d", 3)


def read(labelled=None, layout=None, example=EXAMPLE, **settings):
    causes = None if labelled is None else {("d", 2): CauseAnnotation("d", 2, labelled)}
    items = encode_examples([example], TOKENIZER, layout or Layout(separators=False), causes=causes)
    side = CauseTurns(TOKENIZER, **settings)
    side.add([example], items)
    return side, items[0]


@pytest.mark.parametrize(
    ("flagged", "pieces", "roles"),
    [((0, 2), (CLS, A, C), (0, 1, 1)), ((1,), (CLS, B), (0, 2)), ((2,), (CLS, C), (0, 1))],
)
def test_flagged_turns(flagged, pieces, roles):
    """Check 20."""
    side, item = read(flagged)
    assert item.extra["causes"] == (pieces, roles) and item.extra["cause_turns"] == flagged
    assert "doubts" not in item.extra and side.counts["without a cause"] == 0


def test_no_cause(caplog):
    """Check 21: the whole context by default, counted in the log."""
    assert read(())[1].extra["causes"][0] == (CLS, A, B, C)
    assert read((), no_cause="last_speaker")[1].extra["causes"][0] == (CLS, C)
    assert read((), no_cause="all_speaker")[1].extra["causes"][0] == (CLS, A, C)
    causes = {("d", 2): CauseAnnotation("d", 2, ())}
    items = encode_examples([EXAMPLE] * 2, TOKENIZER, Layout(separators=False), causes=causes)
    with caplog.at_level(logging.INFO, "empatheia_research"):
        CauseTurns(TOKENIZER).add([EXAMPLE] * 2, items)
    assert "causes: 2 contexts, 2 without a cause (whole stands in)" in caplog.text


def test_the_ablation_reads_everything_and_asks_nobody():
    side, item = read((2,), use="whole", detector="nowhere")
    assert item.extra["causes"][0] == (CLS, A, B, C) and item.extra["cause_turns"] == (0, 1, 2)
    assert side.counts["without a cause"] == 0 and "doubts" not in item.extra


def test_without_a_detector_an_answer_says_so():
    _, item = read()
    assert item.extra["causes"][0] == (CLS, A, B, C)
    assert "the whole conversation stands in" in item.extra["doubts"][0]
    _, single = read(example=Example(EXAMPLE.context[:1], None))
    assert "doubts" not in single.extra  # one turn is its own cause


def test_a_detector_is_asked_where_there_is_no_label(monkeypatch):
    class Component:
        def annotate(self, dialogues):
            assert all(dialogue.emotion is None for dialogue in dialogues)
            return [(CauseAnnotation("", 0, (0,)), CauseAnnotation("", 2, (1,))) for _ in dialogues]

    monkeypatch.setattr(CauseTurns, "_opened", lambda self: Component())
    assert read()[1].extra["causes"][0] == (CLS, B)
    assert read((0,))[1].extra["causes"][0] == (CLS, A)


def test_long_and_lost_causes():
    assert read((0, 1, 2), max_pieces=3)[1].extra["causes"][0] == (CLS, B, C)  # CLS and the last ones
    assert read((0,), layout=Layout(max_source=3, separators=False))[1].extra["causes"][0] == (CLS, B, C)


def test_collated_and_saved():
    side, item = read((1,))
    other = read((0, 2))[1]
    batch = side.collate([item, other], TOKENIZER.pad_id, 4)
    assert batch["cause_ids"].tolist() == [[CLS, B, TOKENIZER.pad_id], [CLS, A, C]]
    assert batch["cause_mask"].tolist() == [[True, True, False], [True] * 3]
    assert batch["cause_role_ids"].tolist() == [[0, 2, 0], [0, 1, 1]]
    again = CauseTurns(TOKENIZER, **side.settings())
    assert again.settings() == side.settings()


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="use is 'some'; accepted: found, whole"):
        CauseTurns(TOKENIZER, use="some")
    with pytest.raises(MissingResourceError, match="empatheia models train causes"):
        CauseTurns(TOKENIZER, detector="no-such-model-here")
    with pytest.raises(ConfigError, match="not read by this system"):
        make_side_inputs(("cause_turns",), {"knowledge": {}}, TOKENIZER)


def detections(folder, by="causes/x+emotion:mine"):
    path = folder / "detected.jsonl"
    write_annotations(path, [CauseAnnotation("d", 0, (0,), annotator=by), CauseAnnotation("d", 2, (1,), annotator=by)])
    return str(path)


def test_what_a_detector_said_before_stands_in_for_it(tmp_path):
    path = detections(tmp_path)
    side, item = read(detector="nowhere", emotion="nowhere", detections=path)
    assert item.extra["causes"][0] == (CLS, B) and "doubts" not in item.extra
    assert read((0,), detections=path)[1].extra["causes"][0] == (CLS, A)  # a label is a label
    again = CauseTurns(TOKENIZER, **side.settings())
    assert again.settings() == side.settings()
    other = Example(EXAMPLE.context, None, "another", 3)
    _, unread = read(example=other, detector="nowhere", detections=path)
    assert unread.extra["causes"][0] == (CLS, A, B, C) and "cannot be used" in unread.extra["doubts"][0]


@pytest.mark.parametrize("by", ["", "joint-1", "joint-1+emotion:conversation", "joint-1+emotion:given"])
def test_detections_made_with_gold_emotions_are_refused(tmp_path, by):
    with pytest.raises(ConfigError, match="was made with given emotions"):
        CauseTurns(TOKENIZER, detections=detections(tmp_path, by))


def test_detections_that_are_not_here(tmp_path):
    lost = str(tmp_path / "lost.jsonl")
    with pytest.raises(MissingResourceError, match="no cause annotations at"):
        CauseTurns(TOKENIZER, detections=lost)
    with pytest.raises(MissingResourceError, match="The detector is made with"):
        CauseTurns(TOKENIZER, detector="nowhere")
    _, item = read(detections=lost, must_exist=False)
    assert "the whole conversation stands in" in item.extra["doubts"][0]
