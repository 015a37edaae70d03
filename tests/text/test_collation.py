"""Examples to pieces and tensors: the label check of Gao et al., truncation, features, scores to spans."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from empatheia.errors import ConfigError
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span
from empatheia.text.words import count_words
from empatheia_research.text.collation import (
    FEATURES,
    Collator,
    Layout,
    cause_labels,
    encode_examples,
    merge_spans,
    raw_cause_labels,
    word_scores,
)
from empatheia_research.text.tokenizer import DialogueTokenizer

TOKENIZER = DialogueTokenizer.train_words(["a b c d e", "yes no ."])
CLS, SEP, EOS = TOKENIZER.cls_id, TOKENIZER.sep_id, TOKENIZER.eos_id
A, B, C, D, E = TOKENIZER.encode("a b c d e").ids
DIALOGUE = Dialogue.of("a b", "c", "d e", "yes no .", id="x", emotion="sad")
EXAMPLE = DIALOGUE.examples()[1]


def note(turns, spans=(), target=2):
    return CauseAnnotation("x", target, tuple(turns), tuple(spans))


def encode(layout=Layout(), example=EXAMPLE, tokenizer=TOKENIZER, **more):  # noqa: B008
    return encode_examples([example], tokenizer, layout, emotion_index={"sad": 7}, **more)[0]


def test_labels_of_the_specification():
    # Gao et al., section 9, check 1
    item = encode()
    assert item.input_ids == [CLS, A, B, SEP, C, SEP, D, E, SEP]
    assert raw_cause_labels(item, [0], "paper") == [1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert raw_cause_labels(item, [0], "repo") == [0, 1, 1, 1, 0, 0, 1, 1, 1]


def test_an_example_in_pieces():
    item = encode()
    assert item.turn_ids == [-1, 0, 0, 0, 1, 1, 2, 2, 2]
    assert item.role_ids == [0, 1, 1, 1, 2, 2, 1, 1, 1]
    assert item.word_ids == [-1, 0, 1, -1, 0, -1, 0, 1, -1]
    assert (item.starts[1:4], item.ends[1:4]) == ([0, 2, 3], [1, 3, 3])
    assert item.labels == [*TOKENIZER.encode("yes no .").ids, EOS]
    assert (item.n_target_words, item.emotion_label) == (4, 7)
    assert (item.dialogue_id, item.turn_index, item.cause_labels) == ("x", 3, None)


@pytest.mark.parametrize("supervise", [False, True])
def test_position_0_is_supervised_on_demand(supervise):
    labels = cause_labels(encode(), note([0]), Layout(supervise_cls=supervise))
    assert labels == [1 if supervise else -100, 1, 1, 1, 0, 0, 0, 0, 0]


def test_causes_by_prefix_and_by_dialogue():
    first, second = DIALOGUE.examples()
    by_prefix = {("x", 0): note([0], target=0), ("x", 2): note([2])}
    items = encode_examples([first, second], TOKENIZER, Layout(), causes=by_prefix)
    assert items[0].cause_labels == [-100, 1, 1, 1]
    assert items[1].cause_labels == [-100, 0, 0, 0, 0, 0, 1, 1, 1]
    items = encode_examples([first, second], TOKENIZER, Layout(), causes={"x": note([2])}, cause_key="dialogue")
    assert items[0].cause_labels == [-100, 0, 0, 0]  # turn 2 lies behind this prefix
    assert encode(causes={}).cause_labels is None


def test_spans_label_the_pieces_they_overlap():
    item = encode(causes={("x", 2): note([0, 2], [Span(0, 2, 3)])}, level="span")
    #                            CLS  a  b  SEP   c  SEP   d     e     SEP
    assert item.cause_labels == [-100, 0, 1, -100, 0, -100, -100, -100, -100]


def test_without_truncation_all_is_kept():
    item = encode(Layout(max_source=9))
    assert (len(item.input_ids), item.n_dropped_turns, item.was_cut) == (9, 0, False)


@pytest.mark.parametrize(
    ("layout", "ids", "n_dropped", "was_cut"),
    [
        (Layout(8), [CLS, C, SEP, D, E, SEP], 1, False),
        (Layout(4), [CLS, D, E, SEP], 2, False),
        (Layout(3), [CLS, E, SEP], 2, True),
        (Layout(2), [CLS, SEP], 2, True),
        (Layout(8, truncate="newest"), [CLS, A, B, SEP, C, SEP, D, E], 0, True),
        (Layout(6, truncate="newest"), [CLS, A, B, SEP, C, SEP], 1, False),
        (Layout(3, truncate="newest"), [CLS, A, B], 2, True),
        (Layout(9, truncate="newest"), [CLS, A, B, SEP, C, SEP, D, E, SEP], 0, False),
    ],
)
def test_long_contexts_lose_their_oldest_or_newest_part(layout, ids, n_dropped, was_cut):
    item = encode(layout)
    assert (item.input_ids, item.n_dropped_turns, item.was_cut) == (ids, n_dropped, was_cut)


@given(
    st.lists(st.lists(st.sampled_from("abcde"), max_size=5).map(" ".join), min_size=1, max_size=6),
    st.integers(2, 20),
    st.sampled_from(["oldest", "newest"]),
)
def test_no_layout_exceeds_its_room_or_loses_its_start(texts, room, truncate):
    example = Dialogue.of(*texts, "yes").examples(respond_as=("speaker", "listener"))[-1]
    item = encode(Layout(room, truncate=truncate), example)
    lists = (item.turn_ids, item.role_ids, item.starts, item.ends, item.word_ids)
    assert len(item.input_ids) <= room
    assert {len(entry) for entry in lists} == {len(item.input_ids)}
    assert item.input_ids[0] == CLS
    if truncate == "oldest":
        assert item.turn_ids[-1] == len(texts) - 1
        assert item.input_ids[-1] == SEP
    for turn, start, end, word in zip(item.turn_ids, item.starts, item.ends, item.word_ids, strict=True):
        assert word < 0 or texts[turn][start:end].isalpha()


def test_impossible_layouts_are_told():
    with pytest.raises(ConfigError, match="max_source is 1; accepted: at least 2"):
        Layout(1)
    with pytest.raises(ConfigError, match="variant is 'code'; accepted: paper, repo"):
        Layout(variant="code")
    with pytest.raises(ConfigError, match="truncate is 'left'; accepted: oldest, newest"):
        Layout(truncate="left")


@pytest.mark.parametrize("n_kept", [0, 1, 2, 3, 99])
def test_words_of_a_cut_reply_are_counted_as_far_as_they_are_kept(n_kept):
    item = encode(max_target=n_kept)
    assert len(item.labels) == item.n_target_words == min(n_kept, 3) + 1
    assert item.labels[-1] == EOS


def test_reply_words_are_family_words_whatever_the_pieces():
    reply = "I don't know, it's awful."
    example = Dialogue.of("a", reply).examples()[0]
    bpe = DialogueTokenizer.train_bpe([reply], size=262)
    item = encode(example=example, tokenizer=bpe)
    assert item.n_target_words == count_words(reply) + 1 == 10
    assert len(item.labels) > 10


def test_a_batch_has_the_declared_features_only():
    short = encode(example=DIALOGUE.examples()[0])
    long = encode(causes={("x", 2): note([0])})
    batch = Collator(FEATURES, TOKENIZER.pad_id)([short, long])
    assert tuple(batch) == FEATURES
    assert batch["input_ids"].tolist()[0] == [CLS, A, B, SEP, *[TOKENIZER.pad_id] * 5]
    assert batch["attention_mask"].dtype == torch.bool
    assert batch["attention_mask"].sum(1).tolist() == [4, 9]
    assert batch["role_ids"][0].tolist() == [0, 1, 1, 1, 0, 0, 0, 0, 0]
    assert batch["turn_ids"][0].tolist() == [-1, 0, 0, 0, -1, -1, -1, -1, -1]
    assert batch["cause_labels"].tolist() == [[-100] * 9, [-100, 1, 1, 1, 0, 0, 0, 0, 0]]
    assert batch["labels"].tolist()[0] == [*short.labels, *[-100] * (4 - len(short.labels))]
    assert batch["emotion_labels"].tolist() == [7, 7]
    assert all(batch[name].dtype == torch.int64 for name in FEATURES if name != "attention_mask")
    assert list(Collator(("labels",), 0)([short])) == ["labels"]


def test_examples_without_a_reply_make_a_batch():
    example = type(EXAMPLE)(EXAMPLE.context, None)
    item = encode_examples([example], TOKENIZER, Layout())[0]
    assert (item.labels, item.n_target_words, item.emotion_label) == (None, 0, -100)
    assert Collator(("labels",), 0)([item])["labels"].tolist() == [[-100]]


def test_an_unknown_feature_is_told_with_the_nearest():
    with pytest.raises(ConfigError, match=r"no feature 'cause_label'. Did you mean 'cause_labels'\?"):
        Collator(("cause_label",), 0)


def test_a_word_scores_as_its_best_piece():
    item = encode()
    spans = word_scores(item, [9.0, 0.1, 0.8, 9.0, 0.2, 9.0, 0.3, 0.4, 9.0])
    assert [(s.turn, s.start, s.end, s.score) for s in spans] == [
        (0, 0, 1, 0.1), (0, 2, 3, 0.8), (1, 0, 1, 0.2), (2, 0, 1, 0.3), (2, 2, 3, 0.4),
    ]  # fmt: skip


def test_pieces_with_offsets_of_their_own_become_one_word():
    item = encode()
    item.word_ids[1:3], item.starts[1:3], item.ends[1:3] = [0, 0], [0, 2], [2, 7]  # "un" + "happy"
    assert word_scores(item, [0, 0.2, 0.9, 0, 0, 0, 0, 0, 0])[0] == Span(0, 0, 7, 0.9)
    assert word_scores(item, [0, 0.9, 0.2, 0, 0, 0, 0, 0, 0])[0] == Span(0, 0, 7, 0.9), "its best, not its last"


def test_byte_pairs_become_words():
    text = "unhappiness everywhere"
    bpe = DialogueTokenizer.train_bpe(["a"], size=262)
    item = encode(example=Dialogue.of(text, "a").examples()[0], tokenizer=bpe)
    spans = word_scores(item, [i / 100 for i in range(len(item.input_ids))])
    assert [text[s.start : s.end] for s in spans] == ["unhappiness", "everywhere"]


def scored(*scores, turn=0):
    return [Span(turn, 2 * i, 2 * i + 1, score) for i, score in enumerate(scores)]


def test_neighbouring_cause_words_become_one_highlight():
    merged = merge_spans(scored(0.9, 0.1, 0.7, 0.1, 0.1, 0.6), 0.5)
    assert [(s.start, s.end) for s in merged] == [(10, 11), (0, 5)]  # best mean first
    assert merged[1].score == pytest.approx((0.9 + 0.1 + 0.7) / 3)


def test_highlights_break_at_gaps_and_turns():
    assert len(merge_spans(scored(0.9, 0.1, 0.7), 0.5, gap=0)) == 2
    assert len(merge_spans([*scored(0.9), *scored(0.9, turn=1)], 0.5)) == 2
    assert merge_spans(scored(0.1, 0.2), 0.5) == merge_spans([], 0.5) == []


@given(st.lists(st.floats(0, 1), max_size=20), st.floats(0, 1), st.integers(0, 3))
def test_highlights_cover_exactly_what_reaches_the_threshold(scores, threshold, gap):
    words = scored(*scores)
    merged = merge_spans(words, threshold, gap)
    for word in words:
        inside = [s for s in merged if s.start <= word.start and word.end <= s.end]
        assert len(inside) <= 1
        assert inside or word.score < threshold
    for s in merged:
        assert {s.start, s.end - 1} <= {word.start for word in words if word.score >= threshold}
