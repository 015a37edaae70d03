"""What a listener must not say: joy at grief, sorrow at small things, a scene that was not told."""

import re

import pytest

from empatheia.records.dialogue import Turn
from empatheia.taxonomy import EMOTIONS
from empatheia.voices.reflection import Perceived, reflect
from empatheia.voices.reflection.feelings import told_feeling
from empatheia.voices.reflection.talk import talk_moment
from empatheia.voices.reflection.topics import topics_of

CHEER = (
    r"!|\b(?:lovely|wonderful|glad(?! you(?:'re)? (?:told|said|telling))|great|happy for|congratulations|fun|nice"
    r"|exciting|good to hear|good news)\b"
)
GRAVE = r"\b(?:sorry|awful|terrible|devastated|heartbreaking|rough|hard|painful|scary|frightening)\b"


def felt(emotion: str, weight: float, pleasant: float, unpleasant: float) -> Perceived:
    emotions = {name: weight if name == emotion else (1 - weight) / 31 for name in EMOTIONS}
    sides = {"pleasant": pleasant, "unpleasant": unpleasant, "mixed": 1 - pleasant - unpleasant}
    return Perceived(emotions, sides)


JOY, CALM, GRIEF, HARD = (
    felt("joyful", 0.6, 0.85, 0.1),
    felt("content", 0.9, 0.95, 0.02),
    felt("sad", 0.7, 0.05, 0.93),
    felt("annoyed", 0.2, 0.12, 0.86),
)


def replies(perceived: Perceived, *texts: str) -> list[str]:
    turns = [Turn("speaker" if (len(texts) - 1 - i) % 2 == 0 else "listener", text) for i, text in enumerate(texts)]
    return [answer.text for seed in range(8) for answer in reflect(turns, perceived, 3, seed)]


@pytest.mark.parametrize(
    ("perceived", "text"),
    [
        (CALM, "I sat with her until the end."),
        (CALM, "i just feel numb"),
        (JOY, "The hospital rang, we have to come now."),
        (JOY, "I should be happy for her."),
        (JOY, "She got the house, though, and I don't have a room."),
        (JOY, "We won the cup and my dad wasn't here to see it."),
    ],
)
def test_no_cheer_at_loss_whatever_was_perceived(perceived: Perceived, text: str) -> None:
    wrong = [reply for reply in replies(perceived, text) if re.search(CHEER, reply, re.IGNORECASE)]
    assert not wrong


@pytest.mark.parametrize("text", ["Tired.", "feeling a bit meh", "Rain again.", "bored", "Bit of a cold.", "Whatever."])
def test_small_things_are_no_tragedy(text: str) -> None:
    wrong = [r for r in replies(HARD, text) if re.search(GRAVE, r) and "sorry it's one of those days" not in r]
    assert not wrong


@pytest.mark.parametrize("text", ["My mum helps on Fridays.", "She likes the blue one."])
def test_grief_of_before_does_not_darken_a_plain_turn(text: str) -> None:
    wrong = [r for r in replies(HARD, "I am so worn out.", "Since when?", text) if re.search(GRAVE, r)]
    assert not wrong


def test_a_kindness_is_not_met_with_anger() -> None:
    text = "My neighbour, bless her, drove me to every appointment and won't take any money."
    assert not [r for r in replies(felt("angry", 0.8, 0.05, 0.93), text) if re.search(r"angry|annoy|enough|unfair", r)]


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("I gave my seat to a pregnant woman", "baby"),
        ("my daughter took her first steps and I was at work", "baby"),
        ("They gave us a cake on my last day.", "food"),
        ("My sister won't answer me", "child_proud"),
        ("the house is quiet since my sons left for college", "at_school"),
        ("she just bought a house", "new_home"),
        ("finally beat the final boss", "at_work"),
        ("I fell out with a lad at the reunion", "reunion"),
        ("The interview was a disaster", "interview"),
        ("the test came back negative again, two years of trying", "all_clear"),
    ],
)
def test_a_scene_that_was_not_told_is_not_found(text: str, topic: str) -> None:
    assert topic not in [found.name for found in topics_of(text)]


@pytest.mark.parametrize("text", ["I should be happy for them", "they told me to be happy", "I wish I was excited"])
def test_a_feeling_that_ought_to_be_is_not_told(text: str) -> None:
    assert told_feeling(text) == ""


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("you're just a bot, you don't get it", "question_self"),
        ("who do you play for", "question_self"),
        ("is 12 too young for a phone? mum thinks so", "question"),
        ("whats 7 x 8", "question"),
        ("I burned the rice and cried. How are you?", ""),
        ("guess what", "opening"),
    ],
)
def test_questions_beside_what_is_told(text: str, moment: str) -> None:
    assert talk_moment([Turn("speaker", text)]) == moment


def test_nobody_is_asked_how_long_for_what_happened_once() -> None:
    assert not [r for r in replies(felt("annoyed", 0.7, 0.03, 0.95), "I dropped my lunch.") if "How long" in r]


def test_no_question_repeats_the_words_before_it() -> None:
    for reply in replies(felt("proud", 0.8, 0.95, 0.02), "I finished my first novel!"):
        assert reply.lower().count("moment") < 2 and reply.lower().count("proud") < 2
