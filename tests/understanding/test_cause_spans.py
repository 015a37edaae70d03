"""Causal spans: exact layouts of both forms, windows, padding, losses by hand, learning, saving, bad settings."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import tiny_causes as bench
import torch
from transformers import AutoModel

import fresh
from empatheia.errors import CheckpointError, ConfigError, DataError, MissingResourceError
from empatheia.metrics.spans import SpanF1
from empatheia.records.dialogue import Span
from empatheia_research.corpora import reccon
from empatheia_research.corpora.reccon_pairs import span_question
from empatheia_research.training.tasks.span_scores import (
    best_null_threshold,
    marked_answers,
    predictions,
    span_scores,
    tuned_value,
)
from empatheia_research.understanding import UNDERSTANDERS
from empatheia_research.understanding.causes.entailment import annotate
from empatheia_research.understanding.causes.entailment_items import items_of_fold
from empatheia_research.understanding.causes.span_answers import whole_words
from empatheia_research.understanding.causes.span_config import CauseSpansConfig
from empatheia_research.understanding.causes.span_items import SpanCollator, joint_rows, question_rows, span_rows
from empatheia_research.understanding.causes.spans import CauseSpans, SpanAnswer, _best_window, _window_answers, extract

FORMS = ({"form": "paper"}, {"form": "paper", "context": False}, {"form": "joint"}, {"form": "joint", "context": False})


def config(**fields):
    return CauseSpansConfig(encoder_config=bench.encoder_config(), **fields)


def batch_of(model, items):
    return SpanCollator(bench.tokenizer(), model.config.form)(list(span_rows(items, bench.tokenizer(), model.config)))


def text_of(row, context):
    """The words between the gold pieces of a row."""
    first, last = row["span_positions"][0]
    return context[row["offsets"][first][0] : row["offsets"][last][1]]


def test_paper_rows_hold_the_published_question_and_context():
    items = bench.labelled()[:1]
    rows = question_rows(items, bench.tokenizer(), config(), with_answers=True)
    assert [(row["turn"], row["span_positions"] == [(0, 0)]) for row in rows] == [
        (0, False),
        (1, True),
        (2, False),
        (2, False),
    ]
    question = span_question("anger", "e f g h", "a b c")
    text = bench.tokenizer().decode(rows[0]["input_ids"])
    assert text == bench.tokenizer().decode(bench.tokenizer()(question, "a b c d e f g h")["input_ids"])
    assert [text_of(row, "a b c d e f g h") for row in rows if row["span_positions"] != [(0, 0)]] == [
        "b c",
        "e f",
        "g h",
    ]
    assert sum(rows[0]["answerable"]) == 8  # every word of the context, no word of the question
    evidence = question_rows(items, bench.tokenizer(), config(answers="evidence"))[2]
    places = [offset for offset, yes in zip(evidence["offsets"], evidence["answerable"], strict=True) if yes]
    assert places == [(8, 9), (10, 11), (12, 13), (14, 15)]


def test_paper_rows_without_context_hold_the_candidate_alone():
    rows = question_rows(bench.labelled()[:1], bench.tokenizer(), config(context=False), with_answers=True)
    assert text_of(rows[2], "e f g h") == "e f"
    tokens = bench.tokenizer().convert_ids_to_tokens(rows[2]["input_ids"])
    assert tokens[-5:] == ["e", "f", "g", "h", "[SEP]"] and "evidence" not in tokens


@pytest.mark.parametrize("overlap", [0, 20])
def test_long_contexts_come_in_windows(overlap):
    words = [*"abcdefgh"] * 30
    long = bench.item(" ".join(words[:200]), "a", labels=(1, 0), spans=(Span(0, 100, 103),))
    rows = question_rows([long], bench.tokenizer(), config(max_pieces=128, overlap=overlap), with_answers=True)
    own = [row for row in rows if row["turn"] == 0]
    assert len(own) > 2 and all(len(row["input_ids"]) <= 128 for row in rows)
    seen = {offset for row in own for offset, yes in zip(row["offsets"], row["answerable"], strict=True) if yes}
    assert len(seen) == 201  # no word of the context is lost
    twice = sum(sum(row["answerable"]) for row in own) - len(seen)
    assert twice == overlap * (len(own) - 1)
    with_answer = [row for row in own if row["span_positions"] != [(0, 0)]]
    context = long.context()
    assert with_answer and all(text_of(row, context) == context[100:103] for row in with_answer)
    model = bench.spans_model(max_pieces=128, overlap=overlap)
    answer = extract(model, bench.tokenizer(), [long])[0][0]
    assert answer.text in context and answer.text.startswith(context[answer.span.start : answer.span.end])
    evidence = bench.spans_model(max_pieces=128, overlap=overlap, answers="evidence")
    for turn, own in extract(evidence, bench.tokenizer(), [long])[0].items():
        assert long.texts[turn][own.span.start : own.span.end] == own.text != "" and own.span.turn == turn


def test_the_best_window_has_the_smallest_null_score_and_the_largest_answer():
    """SQuAD 2's rule over windows: (null, best answer) 5/3, 1/4, 2/- give 4 - 1, wherever they come."""
    item, places = bench.item("a b c", "d"), [(5.0, (3.0, 0, 1)), (1.0, (4.0, 2, 3)), (2.0, None)]
    for order in (places, places[::-1]):
        best = _best_window(order, item, 0, config())
        assert (best.text, best.log_odds, best.span.turn) == ("b", 3.0, 0)
        assert best.span.score == pytest.approx(1 / (1 + math.exp(-3)), abs=1e-4)
    assert _best_window([(0.0, None)], item, 0, config()) is None


@pytest.mark.parametrize(("null", "is_given"), [(7.0, True), (7.1, False)])
def test_an_answer_is_given_when_it_is_no_worse_than_none(null, is_given):
    """As in the published script: empty only if null - best > 0."""
    row = question_rows([bench.item("a b", labels=(1,), spans=(Span(0, 0, 1),))], bench.tokenizer(), config())[0]
    start, end = (np.full(len(row["input_ids"]), -5.0) for _ in range(2))
    place = row["answerable"].index(1)
    start[0], end[0], start[place], end[place] = null, 0.0, 4.0, 3.0
    start[1], end[1] = 50.0, 50.0  # a word of the question cannot be an answer
    found = _best_window([_window_answers(row, start, end, config())], bench.item("a b"), 0, config())
    assert (found.text, found.log_odds >= 0) == ("a", is_given)


def test_a_piece_with_the_blank_before_it_belongs_to_its_turn():
    """Some tokenizers count the blank in front of a word as part of its piece."""

    class Blanks:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def __call__(self, *args, **kwargs):
            made = self.inner(*args, **kwargs)
            if "offset_mapping" in made:
                made["offset_mapping"] = [
                    [(max(0, s - 1), e) if s < e else (s, e) for s, e in row] for row in made["offset_mapping"]
                ]
            return made

    items = bench.labelled()[:1]
    rows = question_rows(items, Blanks(bench.tokenizer()), config(answers="evidence"))
    assert [sum(row["answerable"]) for row in rows] == [3, 1, 4]
    model = bench.spans_model(answers="evidence")
    for turn, found in extract(model, Blanks(bench.tokenizer()), items)[0].items():
        assert items[0].texts[turn][found.span.start : found.span.end] == found.text != ""


def test_an_answer_cut_by_a_window_is_no_answer_there():
    long = bench.item(" ".join([*"abcdefgh"] * 25), labels=(1,), spans=(Span(0, 0, 398),))
    rows = question_rows([long], bench.tokenizer(), config(max_pieces=128), with_answers=True)
    assert [row["span_positions"] for row in rows] == [[(0, 0)]] * len(rows)


def test_joint_rows_know_the_places_of_gold_spans():
    rows = joint_rows(bench.labelled(), bench.tokenizer(), config(form="joint"))
    tokens = [bench.tokenizer().convert_ids_to_tokens(row["input_ids"]) for row in rows]
    assert " ".join(tokens[0]) == "[CLS] anger [SEP] a b c [SEP] d [SEP] e f g h [SEP]"
    assert rows[0]["span_positions"] == [(4, 5), (9, 10), (11, 12)]
    assert [row["span_positions"] for row in rows[1:]] == [[(3, 3)], [], [(8, 8)]]


def test_joint_rows_without_context_pair_each_candidate_with_the_target():
    rows = joint_rows(bench.labelled()[:1], bench.tokenizer(), config(form="joint", context=False))
    decoded = [" ".join(bench.tokenizer().convert_ids_to_tokens(row["input_ids"])) for row in rows]
    assert decoded == [
        "[CLS] anger [SEP] a b c [SEP] e f g h [SEP]",
        "[CLS] anger [SEP] d [SEP] e f g h [SEP]",
        "[CLS] anger [SEP] e f g h [SEP]",
    ]
    assert [row["labels"] for row in rows] == [[1, -100], [0, -100], [1]]
    assert [row["turn"] for row in rows] == [0, 1, 2]


@pytest.mark.parametrize("kind", bench.ENCODERS)
@pytest.mark.parametrize("fields", [FORMS[0], FORMS[2]])
def test_batch_equals_singles_and_padding_content_does_not_matter(kind, fields):
    model = bench.spans_model(kind, **fields)
    data = span_rows(bench.labelled(), bench.tokenizer(), model.config)
    collate = SpanCollator(bench.tokenizer(), model.config.form)
    batch = collate(list(data))
    assert set(batch) <= set(model.features)
    with torch.no_grad():
        whole = model(**batch)
        noise = {key: value.clone() for key, value in batch.items()}
        noise["input_ids"][~batch["attention_mask"]] = 9
        for key in {"turn_ids", "token_type_ids"} & set(noise):
            noise[key][~batch["attention_mask"]] = 1
        noisy = model(**noise)
        torch.testing.assert_close(noisy.start_logits, whole.start_logits, rtol=0, atol=0)
        torch.testing.assert_close(noisy.loss, whole.loss, rtol=0, atol=0)
        for i, row in enumerate(data):
            single, n = model(**collate([row])), len(row["input_ids"])
            torch.testing.assert_close(single.end_logits[0], whole.end_logits[i, :n], rtol=0, atol=1e-4)
            assert (whole.end_logits[i, n:] == -1e4).all()


@pytest.mark.parametrize("fields", FORMS)
def test_answers_do_not_depend_on_the_batch_or_on_gold_labels(fields):
    model = bench.spans_model(**fields)
    items = bench.labelled()
    whole = extract(model, bench.tokenizer(), items)
    for single in (
        extract(model, bench.tokenizer(), items, batch_tokens=1),
        [extract(model, bench.tokenizer(), [item], batch_size=1)[0] for item in items],
    ):
        for a, b in zip(whole, single, strict=True):
            assert [(x.turn, x.span.start, x.span.end, x.text) for x in a.values()] == [
                (x.turn, x.span.start, x.span.end, x.text) for x in b.values()
            ]
            assert [x.log_odds for x in a.values()] == pytest.approx([x.log_odds for x in b.values()], abs=1e-4)
    blind = [bench.item(*i.texts, emotion=i.emotion, id=i.dialogue_id) for i in items]
    for known, unknown in zip(whole, extract(model, bench.tokenizer(), blind), strict=True):
        for turn, answer in known.items():
            assert unknown[turn].text == answer.text
            assert unknown[turn].log_odds == pytest.approx(answer.log_odds, abs=1e-4)
    assert [sorted(found) for found in whole] == [[0, 1, 2], [0], [0], [0, 1, 2, 3]]


@pytest.mark.parametrize("fields", [*FORMS, {"form": "joint", "decoding": "overlap"}, {"answers": "evidence"}])
def test_answers_lie_in_their_turns(fields):
    model = bench.spans_model(**fields)
    anywhere = model.config.form == "paper" and model.config.context and model.config.answers == "context"
    for item, found in zip(bench.labelled(), extract(model, bench.tokenizer(), bench.labelled()), strict=True):
        for turn, answer in found.items():
            text = item.texts[answer.span.turn]
            assert 0 <= answer.span.start < answer.span.end <= len(text)
            assert 0 <= answer.span.score <= 1
            if not anywhere:
                assert answer.span.turn == turn == answer.turn
                assert text[answer.span.start : answer.span.end] == answer.text
            else:
                assert answer.text in item.context()


def test_paper_loss_is_the_mean_of_start_and_end_cross_entropy():
    model = bench.spans_model(form="paper")
    batch = batch_of(model, bench.labelled()[:1])
    output = model(**batch)
    gold = batch["span_positions"][:, 0]
    by_hand = [
        -(output.start_logits[i].log_softmax(-1)[s] + output.end_logits[i].log_softmax(-1)[e]) / 2
        for i, (s, e) in enumerate(gold.tolist())
    ]
    torch.testing.assert_close(output.losses["span"], torch.stack(by_hand).mean())
    assert int(output.counts["span"]) == 4 and set(output.losses) == {"span"}


def test_joint_loss_lets_pieces_compete_within_their_turn():
    model = bench.spans_model(form="joint", positive_weight=2.0)
    batch = batch_of(model, bench.labelled())
    output = model(**batch)
    row = bench.labelled()[0]
    turns = {0: range(3, 6), 2: range(9, 13)}
    by_hand = []
    for (first, last), turn in zip([(4, 5), (9, 10), (11, 12)], (0, 2, 2), strict=True):
        for logits, place in ((output.start_logits[0], first), (output.end_logits[0], last)):
            inside = torch.stack([logits[i] for i in turns[turn]])
            by_hand.append(inside.logsumexp(0) - logits[place])
    alone = model(**batch_of(model, [row]))
    torch.testing.assert_close(alone.losses["span"], torch.stack(by_hand).mean())
    assert {name: int(n) for name, n in output.counts.items()} == {"entailment": 9, "span": 5}
    assert {k: int(v) for k, v in model.count_items(batch, model.config).items()} == {"entailment": 9, "span": 5}
    assert (output.start_logits[0, [0, 1, 2, 6, 8]] == -1e4).all()  # no answer in CLS, emotion or separators
    none = model(**batch_of(model, bench.labelled()[2:3]))
    assert none.losses["span"].item() == 0 and int(none.counts["span"]) == 0


@pytest.mark.parametrize("fields", [FORMS[0], FORMS[2]])
def test_every_parameter_learns(fields):
    model = bench.spans_model(**fields)
    model(**batch_of(model, bench.labelled())).loss.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []


@pytest.mark.parametrize("fields", [{"form": "paper"}, {"form": "joint", "dropout": 0.0}])
def test_learns_eight_items(fields):
    """The cause is the turn with an 'a', the span the 'a' and the word after it."""
    turns = ["a b c", "c d", "e a f", "f", "b b", "g a h", "d c", "e e"]
    data = []
    for i in range(8):
        texts = tuple(turns[(i + j) % 8] for j in range(1 + i % 4))
        labels = tuple(int("a" in text) for text in texts)
        spans = tuple(Span(j, t.index("a"), t.index("a") + 3) for j, t in enumerate(texts) if "a" in t)
        data.append(bench.item(*texts, labels=labels, spans=spans, id=str(i)))
    model = bench.spans_model(encoder_dropout=0.0, **fields)
    batch = batch_of(model, data)
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    first = None
    for _ in range(250):
        loss = model(**batch).loss
        first = loss.item() if first is None else first
        if loss.item() < 0.02:
            break
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.1 * first
    scores = span_scores(data, extract(model, bench.tokenizer(), data), 0.0)
    assert (scores["em_pos"], scores["f1_neg"], scores["f1"]) == (100, 100, 100)


@pytest.mark.parametrize("fields", [FORMS[0], FORMS[2]])
def test_saved_model_is_bit_equal_in_a_new_process(fields, tmp_path):
    model = bench.spans_model(**fields, null_threshold=0.25)
    model.save_pretrained(tmp_path)
    batch = batch_of(model, bench.labelled())
    torch.save(batch, tmp_path / "batch.pt")
    code = f"""
import json, torch
from empatheia_research.understanding.causes.spans import CauseSpans
model = CauseSpans.from_pretrained({str(tmp_path)!r}).eval()
with torch.no_grad():
    output = model(**torch.load({str(tmp_path / "batch.pt")!r}))
print(json.dumps([output.start_logits.tolist(), model.fingerprint(), model.config.null_threshold]))
"""
    run = fresh.run(["-c", code], check=True)
    starts, fingerprint, threshold = json.loads(run.stdout.strip().splitlines()[-1])
    with torch.no_grad():
        assert starts == model(**batch).start_logits.tolist()
    assert (fingerprint, threshold) == (model.fingerprint(), 0.25)
    assert isinstance(AutoModel.from_pretrained(tmp_path), CauseSpans)


def test_a_joint_model_starts_from_a_trained_annotator(tmp_path):
    annotator = bench.entailment_model(spans=True)
    annotator.save_pretrained(tmp_path)
    bench.tokenizer().save_pretrained(tmp_path)
    model, _ = CauseSpans.from_encoder(str(tmp_path), form="joint", head_width=16)
    model.eval()
    batch = batch_of(model, bench.labelled())
    with torch.no_grad():
        names = ("input_ids", "attention_mask", "token_type_ids", "turn_ids", "labels")
        expected = annotator(**{k: batch[k] for k in names}).turn_logits
        torch.testing.assert_close(model(**batch).turn_logits, expected, rtol=0, atol=0)
    assert "span_head.0.weight" not in model.state_dict()
    with pytest.raises(ConfigError, match=r"annotator of form=joint, head_width=16.* span model has form=paper"):
        CauseSpans.from_encoder(str(tmp_path), form="paper")
    broken = bench.entailment_model()
    del broken.turn_head[0].bias
    with pytest.raises(CheckpointError, match=r"lacks 1 weights, first 'turn_head\.0\.bias'"):
        CauseSpans.on_encoder(broken, form="joint", head_width=16)


def test_an_annotators_marks_are_answers():
    """Span scores without a span model: the marked pieces of each turn, at the turn's log-odds."""
    model, items = bench.entailment_model(spans=True), bench.labelled()
    notes = annotate(model, bench.tokenizer(), items, threshold=0.0)
    for item, note, found in zip(items, notes, marked_answers(items, notes), strict=True):
        assert list(found) == list(range(len(item.texts)))
        for turn, one in found.items():
            assert item.texts[turn][one.span.start : one.span.end] == one.text != ""
            assert 1 / (1 + math.exp(-one.log_odds)) == pytest.approx(note.probabilities[turn], abs=1e-6)
    sure = replace(notes[1], probabilities=(1.0,), spans=(Span(0, 0, 1, 1.0),))
    assert marked_answers(items[1:2], [sure])[0][0].log_odds == 10
    scores = span_scores(items, marked_answers(items, notes), 0.0)
    assert (scores["n_positive"], scores["n_negative"]) == (5, 5)


def answer(turn, text, log_odds, start=0):
    return SpanAnswer(turn, Span(turn, start, start + len(text), 0.5), text, log_odds)


def test_scores_of_known_answers():
    """Specification check 20 (10 negatives, 8 empty; 5 positives, 2 empty: F1_neg .8) through items and answers."""
    items, answers = [], []
    for i in range(15):
        positive = i < 5
        spans = (Span(0, 0, 3),) if positive else ()
        items.append(bench.item("a b c", labels=(int(positive),), spans=spans, id=str(i)))
        empty = i < 2 if positive else i < 13
        answers.append({0: answer(0, "a b", -1.0 if empty else 1.0)})
    scores = span_scores(items, answers, 0.0)
    assert scores["f1_neg"] == pytest.approx(80)
    assert (scores["em_pos"], scores["f1_pos"]) == (pytest.approx(60), pytest.approx(60))
    assert scores["f1"] == pytest.approx(100 * (3 + 8) / 15)
    assert scores["scores"]["span_f1_neg"]["interval"][0] < 80 < scores["scores"]["span_f1_neg"]["interval"][1]
    assert "report:f1_neg" in scores["scores"]["span_f1_neg"]["signature"]


def test_part_of_the_truth_is_not_empty():
    """Specification trap 24: a prediction inside the truth earns its overlap, an unasked turn counts as empty."""
    items = [bench.item("a b c d", "e", labels=(1, 0), spans=(Span(0, 0, 7),))]
    texts, golds = predictions(items, [{0: answer(0, "b", 2.0)}], 0.0)
    assert (texts, golds) == (["b", ""], ["a b c d", None])
    scores = span_scores(items, [{0: answer(0, "b", 2.0)}], 0.0)
    assert (scores["positive_empty"], scores["negative_empty"]) == (0, 1)
    assert scores["f1_pos"] == pytest.approx(100 * 2 / 4)  # "a" is an article: three gold words, one shared


@pytest.mark.parametrize("tune", ["balanced", "f1"])
def test_the_tuned_value_is_the_metrics_own(tune):
    items, answers = [], []
    for i, (gold, text, odds) in enumerate(
        [
            ("a b", "b", 1.0),
            ("the", "", 2.0),
            ("b c d", "c d", -1.0),
            (None, "b", 0.5),
            (None, "b", -2.0),
            (None, "", 3),
        ]
    ):
        spans = () if gold is None else (Span(0, 0, len(gold)),)
        items.append(bench.item(gold or "b", labels=(int(gold is not None),), spans=spans, id=str(i)))
        answers.append({0: answer(0, text, odds)} if i != 4 else {})
    for threshold in (-math.inf, -1.0, 0.0, 0.7, 2.0, 9.0):
        metric = SpanF1("f1")
        metric.update(*predictions(items, answers, threshold))
        parts = metric.compute().parts
        expected = parts["f1"] if tune == "f1" else (parts["f1_pos"] + parts["f1_neg"]) / 2
        assert tuned_value(items, answers, threshold, tune) == pytest.approx(expected)


def test_null_threshold_separates():
    items = [bench.item("b c", labels=(i % 2,), spans=(Span(0, 0, 3),) * (i % 2), id=str(i)) for i in range(20)]
    answers = [{0: answer(0, "b c", 5.0 + i % 2 + i / 100)} for i in range(20)]
    for tune in ("balanced", "f1"):
        threshold = best_null_threshold(items, answers, tune)
        assert 5.18 < threshold <= 6.01
        assert span_scores(items, answers, threshold)["f1"] == 100
    assert best_null_threshold([], [], "f1") == 0.0
    assert math.isfinite(best_null_threshold(items[::2], answers[::2]))  # negatives only


def test_tuning_for_f1_alone_rewards_silence():
    """Three of four questions have no answer; wrong answers cost F1 more than right ones gain."""
    items, answers = [], []
    for i in range(40):
        positive = i % 4 == 0
        items.append(bench.item("b c", labels=(int(positive),), spans=(Span(0, 0, 3),) * positive, id=str(i)))
        answers.append({0: answer(0, "b c", (1.0 if i % 3 else -1.0) + i / 1000)})
    silent = span_scores(items, answers, best_null_threshold(items, answers, "f1"))
    balanced = span_scores(items, answers, best_null_threshold(items, answers, "balanced"))
    assert silent["f1"] >= balanced["f1"] and silent["f1_pos"] < balanced["f1_pos"]


def test_bad_settings_are_refused():
    for fields, message in (
        ({"form": "pair"}, "form is 'pair'; accepted: paper, joint"),
        ({"answers": "turn"}, "answers is 'turn'"),
        ({"decoding": "overlap"}, "decoding is 'overlap'; accepted: argmax"),
        ({"overlap": 64}, "overlap is 64; accepted: 0 to 63"),
    ):
        with pytest.raises(ConfigError, match=message):
            config(**fields)
    with pytest.raises(ConfigError, match="max_pieces is 40"):
        question_rows(bench.labelled(), bench.tokenizer(), config(max_pieces=40))
    with pytest.raises(DataError, match="needs turn_ids"):
        bench.spans_model(form="joint")(torch.ones(1, 3, dtype=torch.long), torch.ones(1, 3))


def test_nothing_to_ask():
    for fields in FORMS:
        model = bench.spans_model(**fields)
        assert extract(model, bench.tokenizer(), []) == []
        silent = bench.item("", labels=None)
        assert extract(model, bench.tokenizer(), [silent]) == [{}]
        unasked = bench.item("a", "b", labels=(-100, -100), spans=())
        assert extract(model, bench.tokenizer(), [unasked, bench.item("a")])[0] == {}


def test_questions_come_in_stretches_that_do_not_change_the_answer(monkeypatch):
    model, items, seen = bench.spans_model(), bench.labelled(), []
    whole = extract(model, bench.tokenizer(), items)
    monkeypatch.setattr("empatheia_research.understanding.causes.spans.QUESTIONS_AT_ONCE", 3)
    parts = extract(model, bench.tokenizer(), items, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (3, 4), (4, 4)]
    for a, b in zip(whole, parts, strict=True):
        assert [(x.turn, x.text) for x in a.values()] == [(x.turn, x.text) for x in b.values()]


def test_typed_special_pieces_and_halves_of_characters_are_text():
    odd = bench.item("a [SEP] b", "c " + chr(0xD83D) + " d")
    for fields in FORMS:
        found = extract(bench.spans_model(**fields), bench.tokenizer(), [odd])[0]
        assert {turn: one.text in odd.context() for turn, one in found.items()} == {0: True, 1: True}
    row = question_rows([bench.item("a [SEP] b")], bench.tokenizer(), config())[0]
    assert row["input_ids"].count(3) == 2 and sum(row["answerable"]) == 5


def test_registry_names_the_model():
    assert UNDERSTANDERS.get("cause_spans") is CauseSpans


def test_published_lengths():
    assert (config().max_pieces, config().max_question, config().max_answer) == (512, 512, 200)
    alone = config(context=False)
    assert (alone.max_pieces, alone.max_question, alone.max_answer) == (400, 400, 160)
    assert (config().n_best, config().null_threshold, config().overlap) == (20, 0.0, 0)


@pytest.mark.real_data
def test_gold_answers_survive_the_pieces():
    """Specification check 19: all 347 valid positives are found again, in every fold, from pieces and offsets."""
    try:
        corpus = reccon.load("valid")
    except MissingResourceError as error:
        pytest.skip(str(error))
    for fold in (1, 2, 3):
        items = items_of_fold(corpus, fold)
        rows = question_rows(items, bench.tokenizer(), config(max_pieces=599), with_answers=True)
        found = [row for row in rows if row["span_positions"] != [(0, 0)]]
        assert len(found) == 347
        inside = 0
        for row in found:
            item = items[row["item"]]
            first, last = row["span_positions"][0]
            context = item.context()
            text = context[slice(*whole_words(context, row["offsets"][first][0], row["offsets"][last][1]))]
            inside += any(item.texts[row["turn"]][s.start : s.end].strip() in text for s in item.spans or ())
        assert inside == 347
