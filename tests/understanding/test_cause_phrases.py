"""From word scores to the few words that matter."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from empatheia.perceive.phrases import PHRASES, WORDS_IN_PHRASE, cause_phrases, clauses, speaker_words
from empatheia.records.dialogue import Span, Turn


def scored(text, scores, turn=0, strict=True):
    places = [match.span() for match in re.finditer(r"[\w']+|[^\w\s]", text)]
    return [Span(turn, a, b, s) for (a, b), s in zip(places, scores, strict=strict)]


def phrases(text, scores, threshold=0.5):
    turns = (Turn("speaker", text),)
    return [span.of(turns) for span in cause_phrases(turns, scored(text, scores), threshold)]


def test_neighbours_make_a_phrase_and_words_that_lead_nowhere_go_from_its_ends():
    assert phrases("I lost my grandmother last week", [0.9, 0.9, 0.9, 0.9, 0.1, 0.1]) == ["I lost my grandmother"]
    assert phrases("and lost all of my", [0.9, 0.9, 0.9, 0.9, 0.9]) == ["lost all"]


def test_a_weaker_word_is_bridged_where_that_costs_less_than_a_new_phrase():
    # one phrase: 0.4 - 0.2 + 0.3 + 0.3 less 0.25; two: 0.4 + 0.6 less 0.5
    assert phrases("lost every single game", [0.9, 0.3, 0.8, 0.8]) == ["lost every single game"]
    assert phrases("lost every single game", [0.9, 0.2, 0.2, 0.8]) == ["lost", "game"]
    assert phrases("lost every single game", [0.9, 0.2, 0.2, 0.7]) == ["lost"], "0.2 above is not worth a phrase"


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
    assert phrases("he left because she lied", [0.9, 0.9, 0.9, 0.8, 0.8]) == ["he left"]
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
    assert phrases("we won", [0.9, 0.9]) == ["we won"]
    assert phrases("we were", [0.9, 0.9]) == []


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


def brute_force(scores, threshold):
    """Every choice of at most three runs of at most five words with a word between them, by what it is worth."""
    n = len(scores)
    runs = [(a, b) for a in range(n) for b in range(a + 1, min(a + WORDS_IN_PHRASE, n) + 1)]
    best = 0.0
    for k in range(1, PHRASES + 1):
        for chosen in itertools.combinations(runs, k):
            if all(one[1] < other[0] for one, other in itertools.pairwise(chosen)):
                worth = sum(sum(scores[a:b]) - threshold * (b - a) - threshold / 2 for a, b in chosen)
                best = max(best, worth)
    return best


@given(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 0.6, 0.9]), min_size=1, max_size=9))
def test_no_other_choice_is_worth_more(scores):
    text = " ".join(f"word{i}" for i in range(len(scores)))
    turns = (Turn("speaker", text),)
    words = scored(text, scores)
    found = cause_phrases(turns, words, 0.3)
    marked = [sum(w.score - 0.3 for w in words if s.start <= w.start < s.end) - 0.15 for s in found]
    best = brute_force(scores, 0.3)
    assert abs(sum(marked) - best) < 1e-6 or (best == 0 and len(found) == 1)
