"""Each ranking term puts its better example above its worse one, and says why where it has no value."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from empatheia.analysis.targets import named
from empatheia.errors import ConfigError
from empatheia.listener import Listener
from empatheia.listener.steps.ranking import Ranker
from empatheia.listener.steps.settings import WeightSettings
from empatheia.listener.terms.term import TERMS, Case, Row, Tools, all_terms, total
from empatheia.records.analysis import EVEN, GIVEN, Analysis, Inference, Labels, TurnAnalysis, TurnLabels
from empatheia.records.dialogue import Dialogue
from empatheia.voices.decoding import FocusSettings
from empatheia.voices.voice import Request
from empatheia_research.decoding.distractors import GivenDistractors
from empatheia_research.voices.contrast import targets_of

TALK = Dialogue.of(
    "Something bad happened.", "I am so sorry to hear that.", "My dog ran away in the park. I have not found him."
)
SIDES = {"pleasant": 0.05, "unpleasant": 0.9, "mixed": 0.05}
GLAD = {"pleasant": 0.95, "unpleasant": 0.05, "mixed": 0.0}


QUESTION = Labels({"questioning": 1.0}, GIVEN)


def found(targets=("dog", "park"), intent=QUESTION, **changes):
    """An analysis of TALK."""
    fields = {"side": Labels(SIDES), "inferences": (Inference(2, "xReact", ("lonely",)),)}
    newest = TurnAnalysis(2, Labels(EVEN, "test"), reaction=intent, **(fields | changes))
    return Analysis(TALK, (newest,), named(TALK.turns[-1].text, targets, 2).spans if targets else ())


class Annotating:
    """A question is questioning, "sorry" shows a mechanism; as a trained model would say."""

    def __init__(self, part):
        self.part = part

    def annotate(self, dialogues):
        texts = [dialogue.turns[-1].text for dialogue in dialogues]
        if self.part == "intent":
            return [(TurnLabels(1, {"questioning": 0.9 if "?" in text else 0.1}),) for text in texts]
        return [(SimpleNamespace(turn=1, probabilities=(0, 0, 1) if "sorry" in text else (1, 0, 0)),) for text in texts]


READING: Any = SimpleNamespace(
    component=Annotating,
    reason=lambda part: f"no {part} here.",
    sides_of=lambda texts: [GLAD if "happy" in text else SIDES for text in texts],
)
NOTHING: Any = SimpleNamespace(
    component=lambda part: None, reason=lambda part: f"no {part} here.", sides_of=lambda texts: None
)


@pytest.fixture(scope="module")
def scorer():
    return Listener.load("gao2021-small").as_voice()


def rows_of(texts, one, scorer=None):
    weights = {term.name: 1.0 for term in all_terms()}
    case = Case(one, weights, True, len(texts))
    if scorer is None:
        return [Row(case, text) for text in texts]
    kinds = GivenDistractors(["I have an exam tomorrow."])
    (contrast,) = kinds.make([targets_of(one)], 2)
    focus = FocusSettings.model_validate({})
    scored = scorer.score([Request(TALK, contrast)] * len(texts), texts, focus)
    return [Row(case, text, own) for text, own in zip(texts, scored, strict=True)]


@pytest.mark.parametrize("name", TERMS.names())
def test_a_term_keeps_the_order_of_its_example(name, scorer):
    term = TERMS.get(name)()
    tools = Tools(READING, scorer)
    better, worse = term.values(rows_of(term.example, found(), scorer), tools)
    assert better is not None and worse is not None and better > worse
    assert total({name: better}, {name: term.default or 1.0}) > total({name: worse}, {name: term.default or 1.0})


def test_a_term_is_called_as_in_the_settings_and_counts_as_they_say():
    defaults = WeightSettings.model_validate({}).model_dump(exclude={"predicted_intent"})
    assert {term.name: term.default for term in all_terms()} == {
        n: defaults[n] for n in defaults if n != "predicted_intent"
    }
    assert all(term.unit for term in all_terms())


def test_terms_without_what_they_need_say_so():
    bare = found(targets=(), inferences=(), intent=None, side=None)
    tools = Tools(NOTHING)
    why = {}
    for term in all_terms():
        rows = rows_of(["Oh no.", "I see."], bare)
        if term.values(rows, tools) == [None, None]:
            why[term.name] = term.missing(rows[0].case, tools)
    assert why == {
        "likelihood": "no responder in this process gives probabilities.",
        "listener": "no responder in this process gives probabilities.",
        "information": "no responder in this process gives probabilities.",
        "coverage": "there is no target word.",
        "knowledge": "nothing was inferred.",
        "intent": "no intent is wanted of the reply.",
        "mechanism": "no mechanisms here.",
        "side": "no perception says how pleasant it is (empatheia models get listener).",
    }


def test_a_term_that_is_missing_counts_nothing():
    assert total({"side": None, "length": -0.5, "coverage": 1.0}, {"side": 2.0, "length": 1.0, "coverage": 3.0}) == 2.5


def test_an_unknown_term_is_named():
    with pytest.raises(ConfigError, match=r"no ranking term is called 'sides'\. Did you mean 'side'"):
        TERMS.get("sides")


def test_a_ranker_without_a_scorer_ranks_by_the_other_terms():
    why = Ranker().rank("My dog ran away.", ["You did not lose a thing!", "Where did you last see your dog?"])
    assert why.candidates[0].text.startswith("Where")
    assert all(one.terms["likelihood"] is one.terms["listener"] is None for one in why.candidates)
    assert why.analysis.missing["term likelihood"] == "no responder in this process gives probabilities. It counts 0."
    assert Ranker().rank("My dog ran away.", ["Oh no."]).weights["likelihood"] == 0.0
