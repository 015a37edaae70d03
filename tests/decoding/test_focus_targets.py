"""What a focused reply should be about: the four ways to find target words, and words that cannot be targets."""

import pytest
from tiny_focus import DIALOGUES, TURNS, words_component

from empatheia.analysis.questions import is_candidate
from empatheia.analysis.targets import (
    N_WORDS,
    TARGETS,
    GivenTargets,
    ReasonerTargets,
    ScoredTargets,
    SpanTargets,
    Targets,
    named,
    of_analysis,
)
from empatheia.errors import ConfigError, DataError
from empatheia.records.analysis import Analysis, Labels, TurnAnalysis, WordScores
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span, Turn
from empatheia.taxonomy import EMOTIONS

LONG = Dialogue.of("My cat ran away.", "Oh no!", "She came back, but my dog is gone.", id="long")


def test_words_of_the_estimator():
    component = words_component()
    dialogues = [*DIALOGUES[:3], LONG]
    found = ScoredTargets(component).find(dialogues)
    for dialogue, own in zip(dialogues, found, strict=True):
        assert own.text == dialogue.turns[-1].text and own.turn == len(dialogue.turns) - 1
        assert 1 <= len(own.spans) <= N_WORDS and all(map(is_candidate, own.words))
        assert own.emotion in EMOTIONS and own.source == "estimator"
        scores = [span.score for span in own.spans]
        assert scores == sorted(scores, reverse=True)
        (whole,) = component.annotate([Dialogue("", dialogue.turns[-1:])])
        assert {(s.start, s.end) for s in own.spans} == {(s.start, s.end) for s in whole[0].top(len(own.spans))}
    assert ScoredTargets(words_component()).find(DIALOGUES[1:2])[0].words == found[1].words
    assert len(ScoredTargets(component, k=2).find(DIALOGUES[:1])[0].spans) == 2
    assert ScoredTargets(component, k=None).find(DIALOGUES[:1])[0].words[:5] == found[0].words


def test_a_turn_without_content_words_has_no_target():
    """G7 has the estimator name a stop word then; a reply cannot be about it."""
    (own,) = ScoredTargets(words_component()).find([Dialogue.of("But it is on!")])
    assert own.spans == ()


def test_an_emotion_that_reads_the_context_gets_it():
    component = words_component()
    seen = []

    class Emotions:
        part, name = "emotion", "e"

        def annotate(self, dialogues, *, batch_size=32, progress=None):
            seen.extend(len(d.turns) for d in dialogues)
            return [() for _ in dialogues]

    component.emotion = Emotions()
    (own,) = ScoredTargets(component).find([LONG])
    assert seen == [3] and own.turn == 2 and all(span.turn == 2 for span in own.spans)


def understood(causes, words, turns=LONG.turns):
    emotions = dict.fromkeys(EMOTIONS, 0.0) | {"sad": 1.0}
    newest = TurnAnalysis(len(turns) - 1, Labels(emotions), causes=tuple(causes), words=tuple(words))
    return Analysis(Dialogue("", turns), (newest,), by={"causes": "gao2021"})


def test_words_of_a_reasoner():
    text = LONG.turns[2].text
    at = text.index
    words = [Span(2, at("dog"), at("dog") + 3, 0.2), Span(2, at("gone"), at("gone") + 4, 0.9)]
    causes = [Span(0, 3, 6, 0.95), Span(2, at("my dog"), len(text), 0.8), Span(2, 0, at(","), 0.7)]
    own = of_analysis(understood(causes, words))
    assert own.words == ("gone", "dog", "came", "back")  # the better stretch first, the better word first in it
    assert own.emotion == "sad" and own.source == "gao2021"
    asked = []

    def analyze(dialogues):
        asked.extend(dialogues)
        return [understood(causes[:1], [], d.turns) for d in dialogues]

    later = Dialogue("x", (*LONG.turns, Turn("listener", "Oh.")))
    assert ReasonerTargets(analyze).find([later])[0].spans == ()  # causes in earlier turns are no words of this one
    assert asked[0].turns == LONG.turns


def test_words_of_cause_spans():
    class Spans:
        part, name = "causes", "spans"

        def annotate(self, dialogues, *, batch_size=32, progress=None):
            text = dialogues[0].turns[2].text
            start = text.index("dog")
            spans = (Span(2, 0, 8, 0.3), Span(2, start, start + 11, 0.9), Span(0, 0, 6, 1.0))
            other = CauseAnnotation("long", 0, (0,), (Span(0, 3, 6, 1.0),))
            return [(other, CauseAnnotation("long", 2, (0, 2), spans, "a", emotion="sadness"))]

    (own,) = SpanTargets(Spans()).find([LONG])
    assert own.words == ("dog", "gone", "came") and own.emotion == "sadness"
    (few,) = SpanTargets(Spans(), k=1).find([LONG])
    assert few.words == ("dog",)


def test_words_of_score_zero_and_words_cut_by_a_span():
    text = LONG.turns[2].text
    places = {word: (text.index(word), text.index(word) + len(word)) for word in ("came", "back", "dog", "gone")}

    class Words:
        part, name = "words", "some"

        def annotate(self, dialogues, *, batch_size=32, progress=None):
            scores = {"came": 0.0, "back": 0.2, "dog": 0.9, "gone": 0.0}
            spans = tuple(Span(0, *places[word], score) for word, score in scores.items())
            return [(WordScores(0, "sad", spans),) for _ in dialogues]

    (own,) = ScoredTargets(Words(), k=None).find([Dialogue.of(text)])
    assert own.words == ("dog", "back")  # 0: it carries nothing of the emotion

    class Cut:
        part, name = "causes", "cut"

        def annotate(self, dialogues, *, batch_size=32, progress=None):
            spans = (Span(2, places["back"][0] + 2, places["dog"][1] - 1, 0.9),)  # "ck, but my do"
            return [(CauseAnnotation("long", 2, (2,), spans),)]

    (own,) = SpanTargets(Cut()).find([LONG])
    assert own.words == ("back", "dog")


def test_named_words():
    text = "My dog met a Dog, and lost my new   job."
    own = named(text, ["JOB", "dog", "lost my new job"])
    assert own.words == ("job", "dog", "Dog", "lost", "new")  # every place, no stop word, each once
    assert GivenTargets("exam").find([Dialogue.of("The exam!")])[0].words == ("exam",)
    for word, hint in (("exma", "Near words there: exam"), ("xa", "Accepted: failed, exam"), ("fail", "Near.*failed")):
        with pytest.raises(DataError, match=hint):
            named("I failed the exam.", [word])
    with pytest.raises(DataError, match="'the' is a stop word"):
        named("I failed the exam.", ["the"])
    with pytest.raises(DataError, match=r"'!!' is a stop word or punctuation|does not stand"):
        named("So what !", ["!!"])
    with pytest.raises(DataError, match="does not stand"):
        named("A career", ["car"])  # no part of a word
    with pytest.raises(DataError, match="does not stand"):
        named("A career", ["  "])


def test_bad_input():
    assert TARGETS.get("gee") is ScoredTargets and TARGETS.get("given") is GivenTargets
    with pytest.raises(ConfigError, match="k is 0"):
        ScoredTargets(words_component(), k=0)
    with pytest.raises(ConfigError, match="not a component of part 'causes'"):
        SpanTargets(words_component())
    with pytest.raises(ConfigError, match="no word is named"):
        GivenTargets([])
    with pytest.raises(DataError, match="no speaker turn"):
        GivenTargets(["a"]).find([Dialogue("q", (Turn("listener", "Hi"),))])
    for spans in ([Span(0, 0, 3), Span(0, 2, 4)], [Span(0, 3, 3)], [Span(1, 0, 2)], [Span(0, 0, len(TURNS[0]) + 1)]):
        with pytest.raises(DataError, match="do not overlap"):
            Targets(TURNS[0], tuple(spans))
