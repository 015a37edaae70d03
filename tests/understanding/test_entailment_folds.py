"""RECCON's folds as items, entailment without context, and scores over published pairs of any fold."""

from __future__ import annotations

from collections import Counter

import pytest
import tiny_causes as bench

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.records.dialogue import CauseAnnotation, Span
from empatheia_research.corpora import reccon, sample
from empatheia_research.understanding.causes.entailment import annotate
from empatheia_research.understanding.causes.entailment_config import CauseEntailmentConfig
from empatheia_research.understanding.causes.entailment_items import (
    entailment_rows,
    items_of_fold,
    pair_text,
    split_candidates,
)
from empatheia_research.understanding.causes.entailment_scores import (
    best_scores,
    question_cells,
    scores_at,
)


@pytest.fixture(scope="module")
def corpus():
    return reccon.load("train", root=sample.root())


@pytest.mark.parametrize("fold", [1, 2, 3])
@pytest.mark.parametrize("context", [True, False])
def test_items_hold_exactly_the_published_pairs(corpus, fold, context):
    items = items_of_fold(corpus, fold)
    made = Counter()
    for item in items:
        for turn, label, span in item.questions():
            text = pair_text(item.emotion, item.texts[-1], item.texts[turn], item.context() if context else None)
            made[text, label, span and item.texts[turn][span.start : span.end]] += 1
    published = Counter(
        (p.text(context), p.label, p.candidate_text[p.spans[0].start : p.spans[0].end] if p.label else None)
        for p in reccon.pairs(corpus, fold)
    )
    assert made == published
    config = CauseEntailmentConfig(encoder_config=bench.encoder_config(), form="pair", context=context)
    rows = entailment_rows(items, bench.tokenizer(), config)
    assert Counter(row["labels"][0] for row in rows) == Counter(p.label for p in reccon.pairs(corpus, fold))


def test_foreign_items_end_with_the_target_and_keep_it_out_of_the_context(corpus):
    foreign = [item for item in items_of_fold(corpus, 2) if 0 in (item.labels or ())]
    assert foreign and not any(item.target_in_context for item in foreign)
    for item in foreign:
        assert item.labels[-2:] == (0, -100) and set(item.labels[:-2]) <= {-100}
        assert item.context() == " ".join(item.texts[:-1])


def test_limit_counts_dialogues(corpus):
    first = {dialogue.id for dialogue in corpus.dialogues[:2]}
    for fold in (1, 2):
        assert {item.dialogue_id for item in items_of_fold(corpus, fold, limit=2)} <= first
    with pytest.raises(ConfigError, match="fold is 4"):
        items_of_fold(corpus, 4)


def test_without_context_nothing_tells_where_a_turn_stood():
    gold = bench.item("a", "b c", "d", labels=(1, -100, 0), spans=(Span(0, 0, 1),))
    parts = split_candidates(gold)
    assert [(turn, part.texts, part.labels) for turn, part in parts] == [(0, ("a", "d"), (1, -100)), (2, ("d",), (0,))]
    assert parts[0][1].spans == (Span(0, 0, 1),) and parts[1][1].spans == ()
    near, far = bench.item("b", "e", "a", "d"), bench.item("a", "b", "e", "d")
    pick = (
        {turn: part.texts for turn, part in split_candidates(near)},
        {turn: part.texts for turn, part in split_candidates(far)},
    )
    assert pick[0][2] == pick[1][0] == ("a", "d")


def test_joint_form_without_context_answers_for_every_turn():
    model = bench.entailment_model(context=False, spans=True)
    items = bench.labelled()
    data = entailment_rows(items, bench.tokenizer(), model.config)
    assert len(data) == 3 + 1 + 1 + 4
    notes = annotate(model, bench.tokenizer(), items, threshold=0.0)
    assert [len(note.probabilities) for note in notes] == [3, 1, 2, 4]
    alone = annotate(model, bench.tokenizer(), [bench.item("d", "e f g h")], threshold=0.0)[0]
    assert alone.probabilities == pytest.approx(notes[0].probabilities[1:], abs=2e-4)  # whatever stood between
    assert {span.turn for span in notes[0].spans} == {0, 1, 2}
    single = [annotate(model, bench.tokenizer(), [item], batch_size=1, threshold=0.0)[0] for item in items]
    for a, b in zip(notes, single, strict=True):
        assert a.probabilities == pytest.approx(b.probabilities, abs=2e-4)
    assert model.config.context is False


def test_cells_and_scores():
    gold = [
        bench.item("a", "b", "c", labels=(1, 0, 1), spans=(Span(0, 0, 1), Span(2, 0, 1), Span(2, 0, 1))),
        bench.item("a", "b", labels=(0, -100), spans=()),
    ]
    notes = [
        CauseAnnotation("x", 2, (), probabilities=(0.9, 0.6, 0.2)),
        CauseAnnotation("x", 1, (), probabilities=(0.1, 0.9)),
    ]
    cells = question_cells(gold, notes)
    assert cells == [(0.9, 1), (0.6, 0), (0.2, 1), (0.2, 1), (0.1, 0)]  # two spans in a turn count twice
    scores = scores_at(cells, 0.5)  # by hand: 1 hit, 2 misses, 1 false alarm, 1 right rejection
    assert scores.positive_f1 == pytest.approx(100 * 2 / 5) and scores.negative_f1 == pytest.approx(100 * 2 / 5)
    assert best_scores(cells).macro_f1 > scores.macro_f1
    with pytest.raises(DataError, match="1 predictions for 2 items"):
        question_cells(gold, notes[:1])


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("split", "positives", "negatives", "foreign"),
    [("train", 7269, 20646, 18248), ("valid", 347, 838, 800), ("test", 1894, 5330, 4396)],
)
def test_published_counts(split, positives, negatives, foreign):
    """Specification check 19: fold 1 has 7,269 + 20,646 = 27,915 training pairs; folds 2 and 3 see reccon_pairs."""
    try:
        corpus = reccon.load(split)
    except MissingResourceError as error:
        pytest.skip(str(error))
    for fold, expected in ((1, negatives), (2, foreign), (3, foreign)):
        items = items_of_fold(corpus, fold)
        assert Counter(label for item in items for _, label, _ in item.questions()) == {1: positives, 0: expected}
        for item in items:
            for turn, label, span in item.questions():
                assert (span is not None) == bool(label)
                assert span is None or item.texts[turn][span.start : span.end].strip()
    if split == "train":
        assert positives + negatives == 27_915
