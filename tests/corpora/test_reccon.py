"""RECCON: the annotation's rules on hand-made dialogues, the published counts on the real files."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.records.dialogue import Span
from empatheia_research.corpora import reccon


def utterance(turn, speaker, text, emotion="neutral", evidence=None, spans=None):
    record = {"turn": turn, "speaker": speaker, "utterance": text, "emotion": emotion}
    if evidence is not None:
        record |= {
            "expanded emotion cause evidence": evidence,
            "expanded emotion cause span": spans,
            "type": [],
        }
    return record


DIALOGUE = [
    utterance(1, "A", "The dog ate the cake . The whole cake !", "sad", [1, 1], ["ate the cake", "The whole cake"]),
    utterance(2, "B", "Oh no ."),
    utterance(3, "A", "It was for you .", "sadness", ["b", 1, 3], ["b", "The dog ate the cake", "for you"]),
    utterance(4, "B", "I feel great today .", "happines", ["b"], ["b"]),
]
OTHER = [
    utterance(1, "X", "Rain again .", "anger", [1], ["Rain"]),
    utterance(2, "Y", "I am sad .", "sadness", [1], ["again"]),
    utterance(3, "X", "Why ?"),
]


def load(tmp_path, content, split="train", **settings):
    folder = tmp_path / "reccon"
    folder.mkdir(exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / f"dailydialog_{split}.json").write_text(text, encoding="utf-8")
    return reccon.load(split, root=tmp_path, **settings)


@pytest.fixture
def corpus(tmp_path):
    return load(tmp_path, {"tr_1": [DIALOGUE], "tr_2": [OTHER]})


def test_annotations(corpus):
    first, second, third = corpus.annotations_of()["tr_1"]
    assert (first.target, first.turns, first.emotion) == (0, (0,), "sadness")
    assert [span.of(corpus[0].turns) for span in first.spans] == ["ate the cake", "The whole cake"]
    assert (second.target, second.turns) == (2, (0, 2))
    assert second.spans == (Span(0, 0, 20), Span(2, 7, 14))
    assert (third.target, third.turns, third.spans, third.emotion) == (3, (), (), "happiness")
    assert corpus.latent == {("tr_1", 2), ("tr_1", 3)}
    assert corpus.notes == ("2 stray emotion spellings mended.",)
    assert corpus.turn_labels["tr_1"] == ("sadness", "neutral", "sadness", "happiness")
    assert [turn.role for turn in corpus[1].turns] == ["speaker", "listener", "speaker"]


def test_fold_1_by_hand(corpus):
    items = [(p.id, p.label) for p in reccon.pairs(corpus) if p.dialogue_id == "tr_1"]
    assert items == [
        ("dailydialog_tr_1_utt_1_true_cause_utt_1_span_0", 1),
        ("dailydialog_tr_1_utt_1_true_cause_utt_1_span_1", 1),
        ("dailydialog_tr_1_utt_3_true_cause_utt_1_span_0", 1),
        ("dailydialog_tr_1_utt_3_true_cause_utt_3_span_1", 1),
        ("dailydialog_tr_1_utt_3_impossible_cause_utt_2", 0),
        # only latent: the whole history is negative
        *((f"dailydialog_tr_1_utt_4_impossible_cause_utt_{i}", 0) for i in (1, 2, 3, 4)),
    ]


def test_pair_text_is_the_released_form(corpus):
    pair = reccon.pairs(corpus)[2]
    assert pair.text(with_context=False) == (
        "sadness <SEP> It was for you . <SEP> The dog ate the cake . The whole cake !"
    )
    assert pair.text().endswith(" <SEP> The dog ate the cake . The whole cake ! Oh no . It was for you .")


@pytest.mark.parametrize("fold", [2, 3])
def test_foreign_negatives(corpus, fold):
    items = reccon.pairs(corpus, fold, seed=3, per_target=2)
    assert items == reccon.pairs(corpus, fold, seed=3, per_target=2)
    negatives = [p for p in items if not p.label]
    assert len(negatives) == 2 * len(corpus.annotations)
    by_id = corpus.by_id()
    for pair in negatives:
        assert pair.candidate_dialogue_id != pair.dialogue_id
        turns = by_id[pair.candidate_dialogue_id].turns
        assert pair.context == tuple(t.text for t in turns[: pair.candidate + 1])
        assert pair.candidate_text == turns[pair.candidate].text
    assert len({p.id for p in items}) == len(items)
    positives = {p.id: p.context for p in items if p.label}
    assert len(positives["dailydialog_tr_1_utt_3_true_cause_utt_1_span_0"]) == 2  # target taken out
    assert len(positives["dailydialog_tr_1_utt_3_true_cause_utt_3_span_1"]) == 3


def test_fold_3_prefers_the_targets_emotion(corpus):
    items = [p for p in reccon.pairs(corpus, 3, per_target=1) if not p.label and p.emotion == "sadness"]
    labels = {corpus.turn_labels[p.candidate_dialogue_id][p.candidate] for p in items}
    assert labels == {"sadness"}


def test_unknown_fold(corpus):
    with pytest.raises(ConfigError, match="RECCON fold is 4; accepted: 1, 2, 3"):
        reccon.pairs(corpus, 4)


def test_evidence_after_the_target_gives_no_positive(tmp_path):
    ahead = [utterance(1, "A", "Wait .", "fear", [2], ["Boo"]), utterance(2, "B", "Boo !")]
    corpus = load(tmp_path, {"tr_1": [ahead]})
    assert corpus.annotations[0].turns == (1,)
    assert [p.label for p in reccon.pairs(corpus)] == [0]
    assert "1 evidence entries point after their target" in corpus.notes[0]


def changed(position, **fields):
    return [dict(u, **(fields if i == position else {})) for i, u in enumerate(DIALOGUE)]


@pytest.mark.parametrize(
    ("dialogue", "reason"),
    [
        (changed(1, turn=7), "'tr_1': turn 7, expected 2"),
        (changed(1, emotion="bored"), "unknown RECCON emotion 'bored'"),
        (changed(0, **{"expanded emotion cause span": ["ate the cake"]}), "not two lists of one length"),
        (
            changed(0, **{"expanded emotion cause evidence": [1, 9]}),
            "evidence 9 is neither a turn from 1 to 4 nor 'b'",
        ),
        (
            changed(0, **{"expanded emotion cause span": ["ate the cake", "pie"]}),
            "span 'pie' is not in turn 1",
        ),
        ([{k: v for k, v in u.items() if k != "speaker"} for u in DIALOGUE], "utterance 1 has no 'speaker'"),
        (["text"], "utterance 1 is str, expected an object"),
        ([], "expected a one-element list"),
    ],
)
def test_faults_are_reported(tmp_path, dialogue, reason):
    corpus = load(tmp_path, {"tr_1": [dialogue], "tr_2": [OTHER]})
    assert len(corpus.problems) == 1
    assert "tr_2" in corpus.by_id()
    with pytest.raises(DataError, match=reason):
        load(tmp_path, {"tr_1": [dialogue], "tr_2": [OTHER]}, strict=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"tr_1": [', r"dailydialog_train\.json:1: not JSON"),
        ("[]", "expected an object of dialogue id"),
        ({"tr_1": [[]]}, "none of its 1 dialogues can be used"),
    ],
)
def test_foreign_files(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        load(tmp_path, content)


def test_strict_wants_the_published_counts(tmp_path):
    with pytest.raises(DataError, match=r"are \(1, 3, 2\); published: \(834, 8206, 4562\)"):
        load(tmp_path, {"tr_2": [OTHER]}, strict=True)


def test_missing(no_data):
    with pytest.raises(MissingResourceError, match=r"dailydialog_test\.json.*declare-lab/RECCON"):
        reccon.load("test")


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("split", "latent", "positives", "own", "foreign"),
    [("train", 351, 7_269, 20_646, 18_248), ("valid", 5, 347, 838, 800), ("test", 39, 1_894, 5_330, 4_396)],
)
def test_published_counts(data_folder, split, latent, positives, own, foreign):
    corpus = reccon.load(split, root=data_folder, strict=True)
    assert corpus.problems == ()
    assert len(corpus.latent) == latent
    for fold, negatives in ((1, own), (2, foreign), (3, foreign)):
        items = reccon.pairs(corpus, fold)
        assert Counter(p.label for p in items) == {1: positives, 0: negatives}
        assert len({p.id for p in items}) == len(items)


@pytest.mark.real_data
def test_fold_2_contexts_of_valid_positives(data_folder):
    """Specification section 3.2: 211 positives without the target in the context, 136 with it."""
    positives = [p for p in reccon.pairs(reccon.load("valid", root=data_folder), 2) if p.label]
    assert Counter(len(p.context) == p.target + 1 for p in positives) == {False: 211, True: 136}


@pytest.mark.real_data
def test_released_id(data_folder):
    """An id seen in code that reads the released files: the k counts within the target's list of spans."""
    ids = {p.id for p in reccon.pairs(reccon.load("test", root=data_folder))}
    ids |= {p.id for p in reccon.pairs(reccon.load("train", root=data_folder))}
    ids |= {p.id for p in reccon.pairs(reccon.load("valid", root=data_folder))}
    assert "dailydialog_tr_9778_utt_14_true_cause_utt_12_span_1" in ids
    assert "dailydialog_tr_10099_utt_5_impossible_cause_utt_4" in ids
    assert "dailydialog_tr_1097_utt_1_true_cause_utt_1_span_0" in ids
