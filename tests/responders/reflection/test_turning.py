"""What is said back: every pronoun turned, every verb in agreement, and nothing where the rules do not know."""

import pytest

from empatheia.records.dialogue import Span, Turn
from empatheia.voices.reflection.clauses import is_foreign, sayable
from empatheia.voices.reflection.turning import clean, turn_person


def said(text: str, *earlier: str) -> str | None:
    """The best thing that can be said back of the last turn."""
    turns = [Turn("speaker" if (len(earlier) - i) % 2 == 0 else "listener", t) for i, t in enumerate((*earlier, text))]
    found = sayable(turns, len(turns) - 1)
    return found[0].text if found else None


TURNED = {
    # pronouns and agreement
    "I finally passed my driving test after three tries!": "you finally passed your driving test after three tries",
    "My husband hits me": "your husband hits you",
    "I just found out I'm going to be an aunt!": "you just found out you're going to be an aunt",
    "My cat is very sick.": "your cat is very sick",
    "I was late and my boss shouted at me.": "you were late and your boss shouted at you",
    "I am so tired of my job.": "you're so tired of your job",
    "I wasn't invited to my own sister's wedding.": "you weren't invited to your own sister's wedding",
    "We lost our house in the fire.": "you lost your house in the fire",
    "I wish I was there with my mother.": "you wish you were there with your mother",
    "I really was proud of myself.": "you really were proud of yourself",
    "I've been looking after myself for once.": "you've been looking after yourself for once",
    "My son told me he was bullied.": "your son told you he was bullied",
    "A friend of mine moved to Canada.": "a friend of yours moved to Canada",
    "They didn't hire me.": "they didn't hire you",
    "I have to give a talk tomorrow and I can't sleep.": "you have to give a talk tomorrow and you can't sleep",
    "My daughter was born this morning!": "your daughter was born this morning",
    "It's my first day tomorrow.": "it's your first day tomorrow",
    "It's been three weeks since my mum died.": "it's been three weeks since your mum died",
    "There was a spider in my bed.": "there was a spider in your bed",
    "I think I'm in love.": "you think you're in love",
    "I'm pregnant!": "you're pregnant",
    "I'd love to see my brother again.": "you'd love to see your brother again",
    "I'll be on my own at Christmas.": "you'll be on your own at Christmas",
    "We're moving to Spain in June.": "you're moving to Spain in June",
    "My parents and I moved to Leeds.": "you and your parents moved to Leeds",
    "Me and my husband was crying.": "you and your husband were crying",
    "My brother and I haven't spoken in years.": "you and your brother haven't spoken in years",
    "My boss and me were fired.": "you and your boss were fired",
    "My sister called me this morning and we both cried.": "your sister called you this morning and you both cried",
    "I sleep with my door open now.": "you sleep with your door open now",
    "He put his name on my slides.": "he put his name on your slides",
    "She took me to the hospital.": "she took you to the hospital",
    "Today I slipped on my way to class.": "today you slipped on your way to class",
    "Last week my brother won a race.": "last week your brother won a race",
    "My friend Sarah was so kind to me.": "your friend Sarah was so kind to you",
    "When I was small, my mother sang to me.": "when you were small, your mother sang to you",
    # negation stays inside
    "I didn't get the job.": "you didn't get the job",
    "didn't get the job": "you didn't get the job",
    "I never told my dad about it all.": "you never told your dad about it all",
    "I can't sleep since the accident.": "you can't sleep since the accident",
    "Nobody came to my party.": "nobody came to your party",
    "I have no friends in this town.": "you have no friends in this town",
    "I don't know what to do": "you don't know what to do",
    "I am not sad about the divorce.": "you're not sad about the divorce",
    # apostrophes, short ways of writing, chat filler
    "i cant sleep": "you can't sleep",
    "im so tired of my boss lol": "you're so tired of your boss",
    "ive never been so happy": "you've never been so happy",
    "i didnt get it and my mum doesnt know": "you didn't get it and your mum doesn't know",
    "my bf cheated on me w my best friend": "your boyfriend cheated on you with your best friend",
    "omg i got the job tbh": "you got the job",
    "its my birthday tmrw": "it's your birthday tomorrow",
    "so my ex texted me last night": "your ex texted you last night",
    "Honestly, I miss him every day.": "you miss him every day",
    "because my dog died": "your dog died",
    "MY DOG DIED": "your dog died",
    "I got my A-level results \U0001f62d": "you got your A-level results",
    "theres a bear in our tent": "there's a bear in your tent",
    "I’m proud of my son.": "you're proud of your son",
    # a subject that was left out
    "Found my old lego in the attic": "you found your old lego in the attic",
    "got fired today": "you got fired today",
    "just got engaged!!!": "you just got engaged",
    "lost my wallet on the bus": "you lost your wallet on the bus",
    "never been so scared": "you've never been so scared",
    "miss my mum so much": "you miss your mum so much",
    "sister left her husband": "your sister left her husband",
    # elders by the name their child calls them
    "Mum is in hospital.": "your mum is in hospital",
    "I told Dad about the exam.": "you told your dad about the exam",
    "My mum and dad are getting divorced.": "your mum and dad are getting divorced",
    "I was at Grandma's house all day.": "you were at your grandma's house all day",
    "Uncle Sam came to my show.": "Uncle Sam came to your show",
    # names and acronyms
    "Sarah left me.": "Sarah left you",
    "Dr. Smith told me it is cancer.": "Dr. Smith told you it's cancer",
    "The NHS lost my letter.": "the NHS lost your letter",
    "I start in monday's class with Tom.": "you start in monday's class with Tom",
    # fragments
    "New lump. Same side as Mum's.": "New lump. Same side as your mum's",
    "exam tomorrow": "exam tomorrow",
    "Ten years at the company today.": "Ten years at the company today",
    # the other half of a sentence that asks
    "I was fired. Was it my fault?": "you were fired",
}  # fmt: skip


@pytest.mark.parametrize("text", TURNED)
def test_a_sentence_is_turned_to_you(text: str) -> None:
    assert said(text) == TURNED[text]


@pytest.mark.parametrize(
    "text",
    [
        "What should I do?",
        "You are so kind to me.",
        "Thank you for asking.",
        "She is lovely.",  # who?
        "It was so good.",
        "He said 'I never want to see you again'.",
        "Tell me what to do",
        "Imagine losing my job",
        "I'm a failure",
        "I am so stupid",
        "nobody loves me",
        "everyone hates me",
        "I want to kill myself",
        "i want to die",
        "fuck my boss",
        "He raped me",
        "yeah",
        "I know",
        "I think so",
        "I hope so too",
        "He did eventually",
        "lol",
        "We all make mistakes.",
        "hoy perdí mi trabajo y estoy muy triste",
        "asdkjh qwrtplk",
        "If I fail my exam",
        "because",
        "my my my my",
        "",
    ],
)
def test_what_is_not_safe_is_not_said_back(text: str) -> None:
    assert said(text) is None


def test_she_is_the_one_person_spoken_of_before() -> None:
    assert said("She starts chemo monday", "my mum is ill", "What is it like?") == "your mum starts chemo Monday"
    assert said("She starts chemo monday", "my mum and my sister are ill", "Oh.") == "she starts chemo Monday"
    assert said("She starts chemo monday", "my husband's mum is ill", "Oh.") == "she starts chemo Monday"


def test_half_a_sentence_does_not_turn_into_its_opposite() -> None:
    long = "I thought I would get the job in the city after all these years but they gave it to my best friend"
    assert said(long) == "they gave it to your best friend"
    assert (
        said("If my mum finds out and my dad comes home early from his shift at the factory then I am in trouble")
        is None
    )


def test_the_clause_with_the_cause_is_preferred() -> None:
    text = "I went to work as usual. My boss sacked me in front of everyone. I had soup for lunch."
    start = text.index("My boss")
    spans = (Span(0, start, start + 20, 0.9),)
    assert sayable([Turn("speaker", text)], 0, spans)[0].text == "your boss sacked you in front of everyone"
    words = tuple(Span(0, start + i, start + i + 3, 0.8) for i in (0, 3, 8))
    assert sayable([Turn("speaker", text)], 0, (), words)[0].text == "your boss sacked you in front of everyone"


def test_languages_are_told_apart() -> None:
    assert is_foreign("Ich habe meine Arbeit verloren") and is_foreign("我今天丢了工作")
    assert not is_foreign("Me and mum go home") and not is_foreign("exam tomorrow") and not is_foreign("😭")


def test_cleaning_restores_and_lowers() -> None:
    assert clean("I HATE MY BOSS SO MUCH") == "I hate my boss so much"
    assert clean("lol i dont care \U0001f602\U0001f602") == "i don't care"
    assert clean("the MRI was fine") == "the MRI was fine"
    assert clean("I was SO happy") == "I was so happy"


def test_what_cannot_be_turned_is_refused() -> None:
    assert turn_person("everything about me is wrong") is None
    assert turn_person("I says to him") is None
    assert turn_person("the girl I wants") is None


def test_a_sentence_does_not_end_inside_a_time_of_day() -> None:
    assert (said("My bus comes in at 6:10 p.m. on the 14th.") or "14th").endswith("14th")


@pytest.mark.parametrize(
    "text",
    [
        "Next month my wife and I are going on holiday.",
        "no my credit is gone",
        "I don't need Tuscany, love.",
        "Mum says mummy it's outdated",
        "I was driving home and me legs wouldn't move",
    ],
)
def test_odd_ones_are_turned_well_or_not_at_all(text: str) -> None:
    good = {
        "next month you and your wife are going on holiday",
        "next month your wife and you are going on holiday",
        "your credit is gone",
        "you don't need Tuscany",
        "you were driving home",
    }
    assert said(text) is None or said(text) in good
