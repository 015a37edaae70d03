"""Turns, the 5-second rule and cleaning: the checks of the specification (xie2021, section 13)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from empatheia.errors import CheckpointError, ConfigError
from empatheia_people.curation.cleaning import STEPS, Cleaner, CleaningCounts
from empatheia_people.curation.dialogues import dialogues_of
from empatheia_people.curation.opus import read_opus
from empatheia_people.curation.pair_features import BITS, SLOTS, pair_features, strip_marks, words_of
from empatheia_people.curation.records import Script, ScriptDialogue, ScriptTurn, Sentence
from empatheia_people.curation.segmenter import RULES, TurnSegmenter, join_turns, load_segmenter, new_turns, turns_of


def script(*times: tuple[int | None, int | None], kind: str = "subtitle") -> tuple[Script, list[ScriptTurn]]:
    turns = [ScriptTurn(f"turn {i}", start, end) for i, (start, end) in enumerate(times)]
    return Script("m", "1", kind, ()), turns  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("end", "start", "n_dialogues"),
    [
        (4_100, 9_100, 1),  # exactly 5 s
        (4_100, 9_101, 2),
        (4_100, 9_099, 1),
        (9_000, 8_000, 1),
        (None, 60_000, 1),
        (1_000, None, 1),
    ],
)
def test_five_second_rule(end, start, n_dialogues):
    made = list(dialogues_of(*script((0, end), (start, 99_000))))
    assert len(made) == n_dialogues
    assert [one.key for one in made] == [f"m/1/{i:05}" for i in range(n_dialogues)]


def test_dialogues_end_with_the_file():
    assert list(dialogues_of(*script())) == []
    assert len(list(dialogues_of(*script((0, 1), (2, 3))))) == 1


def test_options_of_the_rule():
    said = script((0, 100_000), (20_000, 21_000), (22_000, 23_000))
    assert len(list(dialogues_of(*said))) == 1
    assert len(list(dialogues_of(*said, backwards_ms=60_000))) == 2
    assert [len(one.turns) for one in dialogues_of(*said, max_turns=2)] == [2, 1]
    assert len(list(dialogues_of(*script((0, 0), (600_000, 600_000), kind="chat")))) == 1
    assert len(list(dialogues_of(*script((0, 0), (3_600_001, 0), kind="chat")))) == 2


def test_dialogues_that_the_source_names_are_kept():
    film, _ = script(kind="chat")
    turns = [ScriptTurn(str(i), i * 10_000_000, i * 10_000_000, dialogue=i // 2) for i in range(4)]
    assert [len(one.turns) for one in dialogues_of(film, turns)] == [2, 2]


def test_the_example_file(example):
    film = read_opus(example.encode(), "133093", "900001")
    turns = join_turns(film.sentences, [True, True, True])
    assert [turn.text for turn in turns] == ["You 're late .", "Traffic .", "And so it begins ..."]
    assert [(turn.start, turn.end) for turn in turns] == [(2_000, None), (None, 4_100), (9_101, 12_000)]
    first, second = dialogues_of(film, turns)
    assert [turn.text for turn in first.turns] == ["You 're late .", "Traffic ."] and len(second.turns) == 1
    joined = join_turns(film.sentences, [True, True, False])
    assert len(list(dialogues_of(film, joined))) == 1, "the rule never looks inside of a turn"


def test_decisions_make_turns():
    said = [Sentence(f"s{i}", i, i) for i in range(5)]
    turns = join_turns(said, [True, True, False, False, True])
    assert [turn.n_sentences for turn in turns] == [1, 3, 1]
    assert turns[1].text == "s1 s2 s3" and (turns[1].start, turns[1].end) == (1, 3)


def test_a_turn_has_no_start_if_its_first_sentence_has_none():
    (turn,) = join_turns([Sentence("a", None, None), Sentence("b", 5, 6)], [True, False])
    assert (turn.start, turn.end) == (None, 6)


# -- the segmenter -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bundled() -> TurnSegmenter:
    return TurnSegmenter.load()


SAID = [
    Sentence("Where were you last night?", 1_000, 2_000, 1, 1),
    Sentence("I was at home.", 2_100, 3_000, 2, 2),
    Sentence("and then, you know,", 3_050, 4_000, 3, 3),
    Sentence("i went to bed.", 4_010, 5_000, 4, 4),
]


def test_the_bundled_segmenter_knows_questions_and_sentences_that_go_on(bundled):
    same = bundled.same_turn_probability(SAID)
    assert same.shape == (3,) and ((same > 0) & (same < 1)).all()
    assert same[0] < 0.3 < same[2], "an answer is another's, what is not closed goes on"
    assert bundled.facts is not None
    row = bundled.facts["held_out"]["cues"]
    others = [one["high"] for name, one in row.items() if name not in ("svm", "neural")]
    assert row["svm"]["accuracy"] >= 0.7669 and row["svm"]["low"] > max(others)


def test_decisions_are_independent_of_the_pairs_beyond_the_context(bundled):
    more = [*SAID, *SAID]
    assert np.allclose(bundled.same_turn_probability(more)[:2], bundled.same_turn_probability(SAID)[:2], atol=0.1)
    assert len(bundled.same_turn_probability(SAID[:1])) == 0 and len(new_turns([], bundled)) == 0


def test_dash_and_name_are_believed_and_are_no_features(bundled):
    dashed = [Sentence("and then I", 0, 1_000, 1, 1), Sentence("- went home.", None, 2_000, 1, 1)]
    plain = [dashed[0], dashed[1]._replace(text="went home.")]
    assert (pair_features(dashed) == pair_features(plain)).all()
    assert list(new_turns(dashed, RULES["always_same"])) == [True, True]
    assert list(new_turns(plain, RULES["always_same"])) == [True, False]
    assert list(new_turns(dashed, RULES["always_same"], use_marks=False)) == [True, False]
    named = [one._replace(speaker=who) for one, who in zip(SAID, "aabb", strict=True)]
    assert list(new_turns(named, RULES["always_new"])) == [True, False, True, False]


def test_a_long_pause_begins_a_turn_if_asked():
    said = [Sentence("a", 0, 1_000), Sentence("b", 7_000, 8_000)]
    assert list(new_turns(said, RULES["always_same"], longest_pause_ms=5_000)) == [True, True]
    assert list(new_turns(said, RULES["always_same"])) == [True, False]


def test_tokenised_and_plain_text_give_the_same_words():
    assert words_of("You 're late .") == words_of("You're late.")
    assert strip_marks("- JOHN : Get out !") == ("Get out !", True, "JOHN")


@given(
    st.lists(st.text(max_size=30), min_size=2, max_size=6),
    st.lists(st.integers(-(10**7), 10**7), min_size=12, max_size=12),
)
def test_features_of_anything(texts, times):
    said = [Sentence(text, times[2 * i], times[2 * i + 1], i, i) for i, text in enumerate(texts)]
    features = pair_features(said)
    assert features.shape == (len(texts) - 1, len(SLOTS)) and features.min() >= 0 and features.max() < 1 << BITS


def test_speakers_that_are_known_make_the_turns():
    said = tuple(
        Sentence(text, speaker=who) for text, who in (("a", "x"), ("b", "x"), ("c", "y"), ("d", ""), ("e", ""))
    )
    turns = turns_of(Script("m", "1", "chat", said), RULES["always_same"])
    assert [turn.text for turn in turns] == ["a b", "c", "d", "e"]


def test_a_segmenter_goes_round(bundled, tmp_path):
    bundled.save(tmp_path / "own")
    again = load_segmenter(tmp_path / "own")
    assert (again.same_turn_probability(SAID) == bundled.same_turn_probability(SAID)).all()
    (tmp_path / "own" / "weights.safetensors").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="truncated or damaged"):
        load_segmenter(tmp_path / "own")
    (tmp_path / "own" / "segmenter.json").write_text('{"slots": []}')
    with pytest.raises(CheckpointError, match=r"truncated|other features"):
        load_segmenter(tmp_path / "own")
    with pytest.raises(CheckpointError, match="no turn segmenter in"):
        load_segmenter(tmp_path)
    with pytest.raises(ConfigError, match="accepted: bundled, always_new"):
        load_segmenter("bundeled")


# -- cleaning ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Cheers .", "Cheers ."),
        ("Yes", None),
        ("a " * 99 + "a", "a " * 99 + "a"),
        ("a " * 100 + "a", None),
        ("JOHN : Get out !", "Get out !"),
        ("( door slams )", None),
        ("[ sighs ] Well , I see .", "Well , I see ."),
        ("♪ la la la ♪", None),
        ("# la la la #", None),
        ("Subtitles by somebody", None),
        ("Visit www.example.com today", None),
        ("- - Hello there", "Hello there"),
        ("12 34 .", None),
        ("No .", "No ."),
        ("no !", "no !"),
        ("It\u2019s \u201cfine\u201d , e\u0301 .", 'It\'s "fine" , é .'),
        ("Привет , как дела ?", None),
        ("", None),
        ("a\x00b \u202ec d", "a b c d"),
    ],
)
def test_cleaning_of_an_utterance(text, cleaned):
    assert Cleaner().utterance(text) == cleaned


def dialogue(*texts: str) -> ScriptDialogue:
    return ScriptDialogue("m", "1", "00003", tuple(ScriptTurn(text, None, None) for text in texts))


def cleaned(*texts: str, **settings) -> list[list[str]]:
    return [[turn.text for turn in one.turns] for one in Cleaner(**settings).dialogue(dialogue(*texts))]


def test_cleaning_of_a_dialogue():
    assert cleaned("A a", "A a", "B b") == [["A a", "B b"]]
    assert cleaned("No .", "no !") == [["No .", "no !"]]
    assert cleaned("A a", "B b", "(x)", "C c", "D d") == [["A a", "B b"], ["C c", "D d"]]
    assert cleaned("A a", "B b", "(x)", "C c", "D d", splits=False) == [["A a", "B b", "C c", "D d"]]
    assert cleaned("A a", "(x)", "C c") == [] and cleaned("A a") == []
    assert cleaned("(x)", "A a", "B b", "(y)") == [["A a", "B b"]]


def test_parts_have_their_own_keys_and_steps_their_counts():
    counts = CleaningCounts()
    parts = Cleaner().dialogue(dialogue("A a", "B b", "(x)", "C c", "D d", "D d", "Yes", "E e"), counts)
    assert [one.key for one in parts] == ["m/1/00003-0", "m/1/00003-1"]
    assert counts.dropped["brackets"] == counts.dropped["short"] == counts.dropped["repetitions"] == 1
    assert counts.dropped["few_turns"] == 1 and counts.n_split == 1
    assert ("short", "Yes", 1) in counts.top_lines()


def test_every_step_can_be_switched_off():
    assert Cleaner.without(["short"]).utterance("Yes") == "Yes"
    assert Cleaner.without(["brackets"]).utterance("( door slams )") == "( door slams )"
    assert Cleaner.without(STEPS).utterance("♪ x") == "♪ x"
    with pytest.raises(ConfigError, match="Did you mean 'short'"):
        Cleaner.without(["shorts"])


@given(st.lists(st.text(max_size=40), max_size=8))
def test_cleaning_twice_is_cleaning_once(texts):
    once = Cleaner().dialogue(dialogue(*texts))
    again = [part for one in once for part in Cleaner().dialogue(one)]
    assert [[turn.text for turn in one.turns] for one in again] == [[turn.text for turn in one.turns] for one in once]
