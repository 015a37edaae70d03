"""From word scores to the few words that matter."""

import re

from hypothesis import given
from hypothesis import strategies as st

from empatheia.dialogue import Span, Turn
from empatheia.understanding.words.phrases import PHRASES, WORDS_IN_PHRASE, cause_phrases, speaker_words


def scored(text, scores, turn=0):
    places = [match.span() for match in re.finditer(r"[\w']+|[^\w\s]", text)]
    return [Span(turn, a, b, s) for (a, b), s in zip(places, scores, strict=True)]


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


def test_a_negation_stays_in_front():
    assert phrases("she didn't call", [0.1, 0.9, 0.9]) == ["didn't call"]
    assert phrases("not one letter", [0.9, 0.9, 0.9]) == ["not one letter"]


def test_punctuation_parts_nothing_but_ends_a_phrase():
    assert phrases("fired . laughed", [0.9, 0.9, 0.8]) == ["fired", "laughed"]


def test_where_nothing_reaches_the_threshold_the_best_content_word_stands():
    assert phrases("it was the dog", [0.4, 0.3, 0.2, 0.1]) == ["dog"]
    assert phrases("it was the", [0.4, 0.3, 0.2]) == []


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
