"""Stems and words are NLTK's: published numbers of the field are made with it."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nltk.stem.snowball import EnglishStemmer
from nltk.tokenize.destructive import NLTKWordTokenizer

from empatheia.text.stems import stem
from empatheia.text.words import tokenize_words

NLTK_STEM = EnglishStemmer().stem
WORDS = """
    skies dying gently innings outings herrings succeeded proceeding generously communities arsenal generation
    realizations relational operator operative sensitivity usefulness possibilities apology geology lovingly agreed
    agreedly hopping hoped falling tiring fixed sized troubled relating at bed bled sky say toying enjoyment yes beauty
    dog's dogs' boys's its' 'em rate fate rode see tee able ability apple controll hill ill national formalize electric
    hopeful goodness creative relative replacement adjustment dependent adoption inhibition region rational axe awe ye
    happily quickly singly fluently bly ably gases gaps kiwis ties cries this us bus bias news universal organization
"""
ENDINGS = " s 's ed ing ly li e y ation ator iviti iveness al ement ion l"
SPELT = st.text("aeiouybdlstrnvz'", max_size=8)


@given(
    st.one_of(st.sampled_from(WORDS.split()), SPELT),
    st.sampled_from(ENDINGS.split(" ")),
    st.sampled_from(ENDINGS.split(" ")),
)
@example("gener", "", "")
@example("arsen", "ed", "")
@example("realiz", "ation", "s")
@example("‘y", "yed", "")
def test_stems_equal_nltk(start, middle, end):
    word = start + middle + end
    assert stem(word) == NLTK_STEM(word)


def test_the_sample_of_stems_equals_nltk():
    assert [stem(word) for word in WORDS.split()] == [NLTK_STEM(word) for word in WORDS.split()]


MARKS = """'"`.,:;?!-–—()[]{}<>*#$%&“”‘’«»„@/ax3td"""


@given(st.text(MARKS, min_size=1, max_size=10))
@example("cannot-be")
@example("it's'")
@example("wanna-be")
@example("more'n")
@example(",,a")
@example("d'ye?")
@example('x("so")*')
def test_marks_in_any_order_are_cut_as_nltk_cuts_them(chunk):
    """Before another word, where nothing ends a sentence; two single quotes first are another matter, as said there."""
    if chunk.rstrip("\"')]").endswith((".", "!", "?")):
        return
    expected = NLTKWordTokenizer().tokenize(f"x {chunk} x")
    assert [word.text for word in tokenize_words(f"x {chunk} x", "recec")] == expected


@pytest.mark.real_data
@pytest.mark.slow
@pytest.mark.skipif("EMPATHEIA_DATA" not in os.environ, reason="EMPATHEIA_DATA is not set")
def test_all_words_of_the_conversations_are_those_of_nltk():
    """What stands between two blanks in all of EmpatheticDialogues, at the end of a text."""
    tokenize = NLTKWordTokenizer().tokenize
    paths = sorted(Path(os.environ["EMPATHEIA_DATA"], "empatheticdialogues").rglob("*.csv"))
    chunks: set[str] = set()
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file, quoting=csv.QUOTE_NONE):
                chunks.update(chunk for field in row for chunk in field.replace("_comma_", ",").lower().split())
    assert len(chunks) > 20_000
    for chunk in sorted(chunks):
        words = tokenize(f"x {chunk}")
        assert [word.text for word in tokenize_words(f"x {chunk}", "recec")] == words, chunk
        assert [stem(word) for word in words] == [NLTK_STEM(word) for word in words]


def test_words_stems_and_forms_load_no_nltk():
    code = (
        "import sys; from empatheia.text.words import count_words; from empatheia.metrics.word_forms import base_form;"
        " print(count_words('I can\\'t, \\'tis gone!'), base_form('lost'),"
        " {'torch', 'nltk', 'transformers', 'scipy', 'sklearn', 'polars'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.split() == ["8", "lose", "set()"], run.stderr
