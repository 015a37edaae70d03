"""What a turn tells of: found where it is told, not where it is denied, wished, or somebody else's."""

import re

import pytest

from empatheia.records.dialogue import Span, Turn
from empatheia.voices.reflection import Perceived, reflect
from empatheia.voices.reflection.forms import load_forms, topic_pool
from empatheia.voices.reflection.topics import _rules, names, topics_of, weighed

UNKNOWN = {"pleasant": 0.4, "unpleasant": 0.4, "mixed": 0.2}


@pytest.mark.parametrize(
    ("text", "topic", "who"),
    [
        ("my grandma died last week", "death", "your grandma"),
        ("I had to put my old dog to sleep", "death_pet", "your dog"),
        ("Dad has cancer", "illness", "your dad"),
        ("im getting laid off on friday", "job_loss", ""),
        ("he cheated on me", "cheated", ""),
        ("I passed my driving test!", "passed", ""),
        ("I didn't pass my driving test", "failed", ""),
        ("i'm going to be an aunt", "baby", ""),
        ("Neighbours are blasting loud music at 3am again", "neighbours", ""),
        ("A stranger paid for my groceries", "kindness", ""),
        ("We adopted a kitten", "new_pet", ""),
        ("nobody came to my party", "left_out", ""),
        ("the scan is all clear", "all_clear", ""),
    ],
)
def test_what_is_told_of(text: str, topic: str, who: str) -> None:
    first = topics_of(text)[0]
    assert (first.name, first.who) == (topic, who)


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("I wish I got the job", "new_job"),
        ("my phone died", "death"),
        ("she passed away", "passed"),
        ("if I fail I'll never pass my exam", "passed"),
        ("no cancer, good news!", "illness"),
        ("he got promoted instead of me", "new_job"),
        ("", "death"),
    ],
)
def test_what_is_not_told(text: str, topic: str) -> None:
    assert topic not in [found.name for found in topics_of(text)]


def test_somebody_elses_are_not_the_speakers() -> None:
    assert [topic.who for topic in topics_of("some dad told his son to stop crying")] == []


def test_of_a_long_turn_only_the_sentences_of_the_causes_count() -> None:
    text = "My sister lost her job. " + "We had tea and talked about the weather for a while. " * 4 + "I won a prize."
    start = text.index("won a prize")
    found = topics_of(text, [Span(0, start, start + 11, 0.9)])
    assert [topic.name for topic in found] == ["won"]


def test_sides_are_pulled_and_never_against_what_is_sure() -> None:
    death = topics_of("my mum died")
    assert weighed(Perceived(), death, UNKNOWN).sides["unpleasant"] > 0.6
    sure = {"pleasant": 0.92, "unpleasant": 0.05, "mixed": 0.03}
    assert weighed(Perceived({}, sure), death, sure).sides == sure
    both = topics_of("my mum died and I got engaged")
    assert weighed(Perceived({}, UNKNOWN), both, UNKNOWN).sides == UNKNOWN


def test_a_reply_fits_what_is_told() -> None:
    felt = Perceived({"sad": 0.9, "lonely": 0.1}, {"pleasant": 0.02, "unpleasant": 0.95, "mixed": 0.03})
    texts = [reflect([Turn("speaker", "My dog died yesterday.")], felt, seed=seed)[0].text for seed in range(12)]
    assert sum(bool(re.search(r"\b(?:dog|pet|together|miss|sorry)\b", text)) for text in texts) >= 10
    assert not [text for text in texts if "!" in text]


def test_every_topic_has_forms_and_every_form_a_topic_that_is_known() -> None:
    told = {name for form in load_forms() for name in form.topics}
    assert told == set(names())
    for name in names():
        moments = ("any", "any_pleasant", "any_unpleasant", "unclear", "joy", "worry", "shame", "anger", "care")
        assert topic_pool("ask", name, moments), name


def test_every_pattern_of_a_topic_can_be_compiled() -> None:
    """They are compiled when a text first needs them: a mistake in one shall not wait for that text."""
    for rule in _rules().topics:
        assert re.compile(rule.says) and re.compile(rule.never), rule.name
