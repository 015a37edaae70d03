"""From word scores to the few words that matter."""

import re

from hypothesis import given
from hypothesis import strategies as st

from empatheia.dialogue import Span, Turn
from empatheia.understanding.words.phrases import PHRASES, WORDS_IN_PHRASE, cause_phrases, clauses, speaker_words


def scored(text, scores, turn=0, strict=True):
    places = [match.span() for match in re.finditer(r"[\w']+|[^\w\s]", text)]
    return [Span(turn, a, b, s) for (a, b), s in zip(places, scores, strict=strict)]


def phrases(text, scores, threshold=0.5):
    turns = (Turn("speaker", text),)
    return [span.of(turns) for span in cause_phrases(turns, scored(text, scores), threshold)]


def test_neighbours_make_a_phrase_and_function_words_at_its_ends_go():
    assert phrases("I lost my grandmother last week", [0.9, 0.9, 0.9, 0.9, 0.1, 0.1]) == ["lost my grandmother"]


def test_one_weaker_word_between_two_is_bridged_and_two_are_not():
    assert phrases("lost every single game", [0.9, 0.2, 0.8, 0.8]) == ["lost every single game"]
    assert phrases("lost every single game", [0.9, 0.2, 0.2, 0.8]) == ["lost", "game"]


def test_of_a_long_phrase_the_best_five_words_stay():
    text = "broke windows doors tables chairs lamps plates"
    assert phrases(text, [0.6, 0.9, 0.9, 0.9, 0.9, 0.9, 0.6]) == ["windows doors tables chairs lamps"]


def test_clauses_are_parted_by_punctuation_and_joining_words():
    def parts(text):
        turns = (Turn("speaker", text),)
        words = [word for word in scored(text, [0.5] * 99, strict=False) if word.of(turns).isalnum()]
        return [" ".join(word.of(turns) for word in part) for part in clauses(turns, words)]

    assert parts("My dog died. I am lost") == ["My dog died", "I am lost"]
    assert parts("he left because she lied") == ["he left", "because she lied"]
    assert parts("Mum and dad left") == ["Mum and dad left"]  # one word is no clause
    assert parts("We won, finally") == ["We won finally"]
    assert parts("Fired") == ["Fired"] and parts("") == []


def test_a_turn_of_several_clauses_is_never_marked_whole():
    assert phrases("he left because she lied", [0.9, 0.9, 0.9, 0.8, 0.8]) == ["left"]
    assert phrases("dog died . feeling numb", [0.6, 0.7, 0.1, 0.9, 0.8]) == ["feeling numb"]
    assert phrases("we moved and lost our keys", [0.6, 0.7, 0.9, 0.9, 0.9, 0.9]) == ["lost our keys"]
    assert phrases("dog died", [0.9, 0.9]) == ["dog died"], "one clause may be marked whole"


def test_a_negation_stays_in_front():
    assert phrases("she didn't call", [0.1, 0.9, 0.9]) == ["didn't call"]
    assert phrases("not one letter", [0.9, 0.9, 0.9]) == ["not one letter"]


def test_punctuation_parts_nothing_but_ends_a_phrase():
    assert phrases("fired . laughed", [0.9, 0.9, 0.8]) == ["fired", "laughed"]


def test_where_nothing_reaches_the_threshold_the_best_content_word_stands():
    assert phrases("it was the dog", [0.4, 0.3, 0.2, 0.1]) == ["dog"]
    assert phrases("it was the", [0.4, 0.3, 0.2]) == []


def test_a_win_is_no_rest_of_will_not():
    assert phrases("we won", [0.9, 0.9]) == ["won"]


def test_listeners_words_are_no_causes():
    turns = (Turn("speaker", "My cat died"), Turn("listener", "Your cat died"), Turn("speaker", "Yes"))
    words = scored("My cat died", [0.1, 0.9, 0.9], 0) + scored("Your cat died", [0.9, 0.9, 0.9], 1)
    own = speaker_words(turns, words)
    assert {span.turn for span in own} == {0}
    assert [span.of(turns) for span in cause_phrases(turns, own, 0.5)] == ["cat died"]


@given(
    st.lists(st.tuples(st.sampled_from(["the", "dog", "lost", "we", "never", "blue", ".", "keys"]), st.floats(0, 1)))
)
def test_never_more_than_a_few_words(pairs):
    text = " ".join(word for word, _ in pairs)
    turns = (Turn("speaker", text),)
    words, at = [], 0
    for word, score in pairs:
        words.append(Span(0, at, at + len(word), score))
        at += len(word) + 1
    found = cause_phrases(turns, words, 0.5)
    assert len(found) <= PHRASES
    for span in found:
        said = span.of(turns).split()
        assert 1 <= len(said) <= WORDS_IN_PHRASE and 0 <= span.score <= 1 and said[-1] not in ("the", "we", ".")
    assert list(found) == sorted(found, key=lambda span: -span.score)


@given(
    st.lists(st.tuples(st.sampled_from(["dog died", "we won", "she lied"]), st.floats(0.5, 1)), min_size=2, max_size=5)
)
def test_some_clause_is_always_left_unmarked(parts):
    text = ". ".join(said for said, _ in parts)
    turns = (Turn("speaker", text),)
    scores = [score for _, score in parts for _ in range(2)]
    words = [word for word in scored(text, [0.0] * 99, strict=False) if word.of(turns).isalnum()]
    words = [Span(0, word.start, word.end, score) for word, score in zip(words, scores, strict=True)]
    found = cause_phrases(turns, words, 0.5)
    marked = sum(len(span.of(turns).split()) for span in found)
    assert 1 <= marked < len(words)
