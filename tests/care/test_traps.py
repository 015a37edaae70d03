"""Every trap of the project's list: words that only sound like danger, and danger that hides."""

from __future__ import annotations

import pytest

from empatheia.care import assess
from empatheia.records.dialogue import Dialogue, Span

HARMLESS = [
    "She is skilled.",
    "killing it",
    "I'm dead 😂",
    "I'm dead 💀",
    "kill me lol",
    "dying of laughter",
    "this traffic makes me want to die",
    "I could murder a pizza",
    "my phone died",
    "We watched Suicide Squad.",
    "The deadline is on Friday.",
    "I shot myself in the foot with that email.",
    "I bombed my exam.",
    "I cut myself shaving.",
    "hang in there",
    "The kids jump off the couch all day.",
    "I'm stuck.",
    "my mind is racing",
    "I feel sad today.",
    "My grandmother died last week and I keep her scarf on my desk.",
    "kill -9 $(cat server.pid)",
    "This sandwich is to die for.",
    "I ran 10 kms this morning.",
]
EXPLICIT = [
    "I want to kill myself.",
    "I want to die.",
    "I WANT TO KILL MYSELF",
    "I’m going to kill myself",
    "I don\u2019t want to live anymore",
    "I don\u02bct want to live anymore",
    "I don\u2032t want to live anymore",
    "i want to unalive myself",
    "i'm gonna kms tonight, i mean it",
    "su1cide is all I think about",
    "i want to k!ll mys3lf",
    "I think about s u i c i d e every day",
    "i want to diiiiiie, i cant do this",
    "sui\u200bcide is my plan",
    "ｋｉｌｌ ｍｙｓｅｌｆ is what I'll do",
    "I'm going to end my life.",
    "Everyone would be better off without me.",
    "I took all my pills.",
    "He said he'll kill me if I leave.",
    "There is no reason for me to keep living.",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_sounds_like_danger_is_left_in_peace(text: str):
    assert assess(text).level == "none", assess(text).reasons


@pytest.mark.parametrize("text", EXPLICIT)
def test_danger_is_found_however_it_is_spelt(text: str):
    found = assess(text)
    assert found.level == "crisis", found
    assert found.kinds and found.reasons


@pytest.mark.parametrize(
    "text",
    ["I don't want to die.", "I don’t want to die, I just want this to stop.", "I'm not suicidal, I'm just tired."],
)
def test_a_denied_wish_is_a_concern(text: str):
    assert assess(text).level == "concern"


def test_grief_after_a_suicide_is_a_concern_about_another():
    found = assess("My friend died by suicide years ago.")
    assert (found.level, found.about) == ("concern", "other")


@pytest.mark.parametrize(
    "text", ["My character wants to die.", 'The song goes "I want to die tonight".', "In my novel she kills herself."]
)
def test_fiction_and_lyrics_are_no_danger(text: str):
    found = assess(text)
    assert (found.level, found.about) == ("none", "fiction")


@pytest.mark.parametrize("text", ["I'm no longer suicidal.", "I don't feel suicidal anymore."])
def test_what_is_over_is_no_danger(text: str):
    found = assess(text)
    assert (found.level, found.about) == ("none", "past")


def test_an_attempt_in_the_past_is_a_concern():
    found = assess("I tried to kill myself last year.")
    assert (found.level, found.about) == ("concern", "past")


@pytest.mark.parametrize(
    "text", ["My brother says he'll kill himself.", "I think my friend wants to die.", "My sister is suicidal."]
)
def test_another_persons_danger_is_told_from_ones_own(text: str):
    found = assess(text)
    assert found.is_flagged and found.about == "other" and "third_party" in found.kinds


def test_words_of_another_in_quotes_are_theirs():
    found = assess('My sister wrote to me: "I want to kill myself". What do I say?')
    assert found.is_flagged and found.about == "other"


def test_asking_for_a_friend_is_not_believed_to_be_about_one():
    found = assess("Asking for a friend, how many pills would it take to die?")
    assert found.is_flagged and found.about in ("self", "unclear")


def test_her_own_better_off_is_hers():
    assert assess("Everyone would be better off without me.").about == "self"


@pytest.mark.parametrize("answer", ["yes", "Yes.", "yeah i think so", "sometimes", "I am"])
def test_yes_to_the_listeners_question_is_a_crisis(answer: str):
    found = assess(Dialogue.of("I'm so low.", "Are you thinking of suicide?", answer))
    assert (found.level, found.about) == ("crisis", "self")


def test_yes_to_another_question_is_nothing():
    assert assess(Dialogue.of("I'm off to the sea.", "Are you taking the dog?", "yes")).level == "none"


def test_no_to_the_question_about_safety_is_a_crisis():
    assert assess(Dialogue.of("It's a bad night.", "Are you safe right now?", "no")).level == "crisis"


@pytest.mark.parametrize(
    ("question", "answer", "levels"),
    [
        ("Do you sometimes wish that you would not wake up?", "most days", ("crisis",)),
        ("Have you thought of ending your life?", "not in so many words", ("concern", "crisis")),
        ("Have you taken anything tonight?", "the blister is empty", ("concern", "crisis")),
        ("Did you make yourself sick after lunch?", "yes, again", ("concern",)),
        ("Are you afraid of him?", "a bit", ("concern", "crisis")),
        ("Is she still breathing?", "i dont know", ("concern", "crisis")),
        ("Will you be alive on Sunday?", "cant say", ("concern", "crisis")),
        ("Do you want to die?", "no no, it was about the football", ("none",)),
        ("Are you safe?", "Yes, I am at my sister's.", ("none",)),
        ("Are you hurting yourself?", "no, the cat scratched me, I swear", ("none",)),
        ("Have you taken the dog out?", "yes", ("none",)),
        ("Are you going to take them all to school?", "yes, five in one car", ("none",)),
    ],
)
def test_what_a_question_about_danger_makes_of_an_answer(question: str, answer: str, levels: tuple[str, ...]):
    found = assess(Dialogue.of("It was a long day.", question, answer))
    assert found.level in levels, found


def test_a_plain_no_takes_a_suspicion_back_but_not_a_wish_to_die():
    no = "no, nothing like that"
    assert assess(Dialogue.of("I want to kill myself.", "Do you want to die?", no)).level != "none"
    assert assess(Dialogue.of("I feel so empty lately.", "Do you want to die?", no)).level == "none"


def test_earlier_turns_fade():
    turns = ["I want to kill myself."]
    levels = []
    for _ in range(9):
        turns += ["I'm here.", "The kettle is on and the cat sleeps."]
        levels.append(assess(Dialogue.of(*turns)).level)
    assert levels[0] == "crisis" and levels[-1] == "none" and "concern" in levels
    order = ["crisis", "concern", "none"]
    assert [order.index(level) for level in levels] == sorted(order.index(level) for level in levels)


def test_other_talk_in_front_hides_nothing():
    turns = ["The bus was late again.", "That's annoying."] * 5
    assert assess(Dialogue.of(*turns, "I want to kill myself.")).level == "crisis"


@pytest.mark.usefixtures("sentence_encoder")  # the small check does not notice
def test_means_after_distress_are_a_concern():
    found = assess(Dialogue.of("I lost my job today.", "I'm sorry.", "What are the highest bridges in the city?"))
    assert found.is_flagged


def test_spans_index_the_text_as_written():
    text = "Well… I don’t know.  I’m gonna k!ll mys3lf tonight 😔"
    found = assess(text)
    assert [span.of(found.turns) for span in found.spans if isinstance(span, Span)]
    assert "k!ll mys3lf" in " ".join(span.of(found.turns) for span in found.spans)


def test_spans_of_earlier_turns_name_their_turn():
    found = assess(Dialogue.of("I want to kill myself.", "I'm here.", "The kettle is on."))
    assert found.spans and found.spans[0].turn == 0 and "kill myself" in found.spans[0].of(found.turns)
    assert any("ago" in reason for reason in found.reasons)


# -- bad input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "   ", "\n", "\u200b", "!!!", "😂" * 500, "a" * 20_000, "word " * 4_000])
def test_empty_long_and_wordless_texts_are_no_danger(text: str):
    assert assess(text).level == "none"


def test_danger_at_the_end_of_a_long_text_is_found():
    text = "We went to the market and bought pears. " * 500 + "I want to kill myself. " + "The tram was full. " * 20
    found = assess(text)
    assert found.level == "crisis" and any(text[s.start : s.end].lower() == "kill myself" for s in found.spans)


@pytest.mark.parametrize("text", ["Ich will nicht mehr leben.", "quiero morirme", "Je veux mourir."])
def test_plain_words_in_other_languages_are_found(text: str):
    assert assess(text).level == "crisis"


def test_another_language_is_told_as_uncertain():
    found = assess("Il fait beau aujourd'hui et je suis avec mes amis dans le jardin.")
    assert found.level == "none" and found.uncertain


def test_other_scripts_are_told_as_uncertain():
    assert assess("今日はとても天気がいいですね").uncertain


def test_what_is_no_text_is_refused():
    from empatheia.errors import DataError

    with pytest.raises(DataError, match="accepted: a text or a Dialogue"):
        assess(42)


def test_many_texts_are_assessed_one_by_one():
    from empatheia.care import Detector

    detector = Detector()
    assert {detector.assess(f"Bus number {i} is late.").level for i in range(200)} == {"none"}


def test_an_assessment_is_plain_data():
    import json

    told = json.loads(json.dumps(assess("I want to kill myself.").to_dict()))
    assert told["level"] == "crisis" and told["spans"][0]["text"]
