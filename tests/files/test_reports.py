"""Every file of tests/data/reports, by each of its readers: analysis, training data, curation."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from empatheia.files.conversations import read_conversations
from empatheia.files.forms import FORMS, JSON_FORMS, json_form, text_form
from empatheia.reading import read_json
from empatheia.records.dialogue import Dialogue
from empatheia.text.readable import readable
from empatheia_people.curation.chats import read_chats
from empatheia_people.curation.cleaning import Cleaner, CleaningCounts
from empatheia_people.curation.dialogues import dialogues_of
from empatheia_people.curation.segmenter import RULES, chat_turn, turns_of
from empatheia_people.curation.sources import find_sources
from empatheia_people.curation.subtitles import read_subtitles
from empatheia_research.corpora import own

REPORTS = Path(__file__).parents[1] / "data" / "reports"
CASES = yaml.safe_load((REPORTS / "cases.yaml").read_text(encoding="utf-8"))
HOW_TO = Path(__file__).parents[2] / "docs" / "howto" / "conversations.md"


def written(row) -> str | list[str]:
    """A row as cases.yaml has it."""
    if isinstance(row.item, Dialogue):
        return [f"{turn.role[0]} {turn.text}" for turn in row.item.turns]
    return row.item if row.error is None else f"error: {row.error}"


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case['file']}-{case.get('speaker', case.get('column', ''))}"
)
def test_analysis_reads(case):
    said: list[str] = []
    rows = list(read_conversations(REPORTS / case["file"], case.get("column"), case.get("speaker"), said.append))
    found = [written(row) for row in rows]
    assert len(found) == len(case["reads"])
    for one, expected in zip(found, case["reads"], strict=True):
        assert one == expected or (str(one).startswith("error") and str(one).startswith(str(expected)))
    assert said == case.get("says", [])


def test_every_file_has_a_case_and_every_form_a_file():
    others = {"offsets.json", "texts_of_all_kinds.jsonl"}  # of pages and of the one default
    files = {path.name for path in REPORTS.iterdir() if path.suffix in (".json", ".jsonl", ".txt", ".csv")}
    assert files - others == {case["file"] for case in CASES}
    assert {case.get("form") for case in CASES} - {None} == {form.name for form in FORMS}


@pytest.mark.parametrize("case", [case for case in CASES if "form" in case and case["form"] != "turns"], ids=str)
def test_the_form_of_a_file_is_told(case):
    path = REPORTS / case["file"]
    is_json = path.suffix == ".json"
    form = json_form(read_json(path)) if is_json else text_form(path.read_text(encoding="utf-8").splitlines())
    assert form is not None and form.name == case["form"]
    if is_json:
        assert [other.name for other in JSON_FORMS if other.fits(read_json(path))] == [case["form"]]


def test_the_how_to_has_a_row_for_each_form():
    rows = [line.split("|")[1].strip(" `") for line in HOW_TO.read_text(encoding="utf-8").splitlines() if "| `" in line]
    assert rows == [form.name for form in FORMS]


@pytest.mark.parametrize("case", [case for case in CASES if case.get("form") == "turns"], ids=str)
def test_training_data_reads_the_same(case, tmp_path):
    path = REPORTS / case["file"]
    (tmp_path / "own").mkdir()
    shutil.copy(path, tmp_path / "own" / f"train{path.suffix}")
    corpus = own.load("train", tmp_path)
    joined = [[f"{turn.role[0]} {turn.text}" for turn in one.turns] for one in corpus]
    expected = []
    for turns in case["reads"]:
        expected.append([])
        for turn in turns:  # neighbours of one person are joined
            is_more = expected[-1] and expected[-1][-1][0] == turn[0]
            expected[-1][-1:] = [expected[-1][-1] + turn[1:]] if is_more else [*expected[-1][-1:], turn]
    assert joined == expected and not corpus.problems
    assert list(corpus.notes) == [line for line in case.get("says", []) if line.startswith("left out")]


@pytest.mark.parametrize("case", [case for case in CASES if "form" in case and "speaker" not in case], ids=str)
def test_curation_reads_the_same(case):
    path = REPORTS / case["file"]
    script = read_chats(path.read_bytes(), path.suffix)
    expected = [" ".join(turn[2:].split()) for turns in case["reads"] for turn in turns]
    assert [one.text for one in script.sentences] == expected
    left = next((line.removeprefix("left out: ") for line in case.get("says", []) if line.startswith("left out")), "")
    assert ", ".join(f"{what} ({n})" for what, n in script.notes) == left


def test_a_chat_is_cut_at_pauses_between_messages_of_one_person():
    script = read_chats((REPORTS / "whatsapp_pauses.txt").read_bytes(), ".txt")
    turns = turns_of(script, RULES["always_same"])
    assert [turn.text for turn in turns] == [
        *("I lost my cat", "Oh no", "thank you she was old"),
        *("I got the job!", "Great"),
    ]
    assert [len(one.turns) for one in dialogues_of(script, turns)] == [3, 2]
    assert chat_turn(script.sentences[2], script.sentences[3], 3_600_000) == "a long pause"
    full = read_chats((REPORTS / "telegram_full.json").read_bytes(), ".json")
    assert len(list(dialogues_of(full, turns_of(full, RULES["always_same"])))) == 2


@pytest.mark.parametrize(
    ("name", "days"),
    [("whatsapp_rising.txt", [1, 1]), ("whatsapp_rising_us.txt", [1, 25])],  # 5, 6, 7 June; 6 May, 7 May, 1 June
)
def test_the_day_or_the_month_comes_first_as_dates_rise(name, days):
    times = [one.start for one in read_chats((REPORTS / name).read_bytes(), ".txt").sentences]
    assert [(b - a) // 86_400_000 for a, b in pairwise(times)] == days


@pytest.mark.parametrize(
    ("name", "texts", "notes"),
    [
        (
            "cue_names.vtt",
            ["Hello there.", "- Who is it?", "- Me."],
            {"lines of comments and styles": 2, "names of cues": 2},
        ),
        ("rolling.vtt", ["I lost my dog", "and my cat", "last week"], {"lines that captions repeat": 3}),
        ("drawing.ass", ["I lost my dog."], {"drawings": 2}),
        (
            "scanned.srt",
            [
                "I lost my dog.",
                "I'm sad.",
                "It was WILD, I think.",
                "Drink 2 l of tea.",
                "We run ls now.",
                "Is it good?",
            ],
            {"l of a scanned subtitle read as I": 6},
        ),
        ("names.srt", ["Ann Miller: I lost my dog.", "Ben Cole: Oh no."], {}),
    ],
)
def test_the_furniture_of_subtitles_is_no_speech(name, texts, notes):
    path = REPORTS / name
    script = read_subtitles(path.read_bytes(), path.suffix)
    assert [one.text for one in script.sentences] == texts and dict(script.notes) == notes


def test_names_of_two_words_are_no_speech():
    (ann, ben) = read_subtitles((REPORTS / "names.srt").read_bytes(), ".srt").sentences
    cleaner, counts = Cleaner.without(), CleaningCounts()
    assert [cleaner.utterance(one.text, counts) for one in (ann, ben)] == ["I lost my dog.", "Oh no."]
    assert cleaner.utterance("What he said: we go.", counts) == "What he said: we go."


LOCALES = {  # the same moment as phones of these languages write it; what was left out, deleted, missed
    "en": ("3/14/24, 8:28\u202fPM - ", "<Media omitted>", "This message was deleted", "Missed voice call"),
    "de": ("14.03.24, 20:28 - ", "<Medien ausgeschlossen>", "Diese Nachricht wurde gelöscht.", "Verpasster Videoanruf"),
    "es": ("14/3/24, 8:28 p.\xa0m. - ", "imagen omitida", "Se eliminó este mensaje.", "Llamada perdida"),
    "fr": ("14/03/2024 à 20:28 - ", "<Médias omis>", "Ce message a été supprimé", "Appel vocal manqué"),
    "it": ("14/03/24, 20:28 - ", "<Media omessi>", "Questo messaggio è stato eliminato", "Videochiamata persa"),
    "pt": ("14/03/2024 20:28 - ", "<Mídia oculta>", "Mensagem apagada", "Chamada de voz perdida"),
    "nl": ("14-03-2024 20:28 - ", "afbeelding weggelaten", "Dit bericht is verwijderd", "Gemiste spraakoproep"),
    "ru": ("14.03.2024, 20:28 - ", "<Без медиафайлов>", "Данное сообщение удалено", "Пропущенный видеозвонок"),
    "tr": ("14.03.2024 20:28 - ", "<Medya dahil edilmedi>", "Bu mesaj silindi", "Cevapsız sesli arama"),
    "pl": (
        "14.03.2024, 20:28 - ",
        "<pominięto multimedia>",
        "Ta wiadomość została usunięta",
        "Nieodebrane połączenie wideo",
    ),
    "id": ("14/03/24 20.28 - ", "<Media tidak disertakan>", "Pesan ini telah dihapus", "Panggilan suara tak terjawab"),
    "hi": ("14/03/24, 8:28 pm - ", "<मीडिया छोड़ा गया>", "यह संदेश हटा दिया गया", "मिस्ड वॉइस कॉल"),
}


@pytest.mark.parametrize("language", LOCALES)
def test_whatsapp_of_twelve_languages(language):
    stamp, *notices = LOCALES[language]
    chat = "".join(f"{stamp}{line}\n" for line in ("Ann: one", *(f"Ben: {own}" for own in notices), "Ben: two"))
    script = read_chats(chat.encode(), ".txt")
    assert [(one.speaker, one.text) for one in script.sentences] == [("Ann", "one"), ("Ben", "two")]
    assert {one.start for one in script.sentences} == {1_710_448_080_000}  # 2024-03-14 20:28 UTC
    assert dict(script.notes) == {"media": 1, "deleted messages": 1, "calls": 1}


def test_what_people_say_of_calls_and_media_is_speech():
    lines = ["Ann: Missed you!", "Ben: voice call me later", "Ann: image omitted, I think", "Ben: null and void"]
    script = read_chats("".join(f"14.03.24, 20:28 - {line}\n" for line in lines).encode(), ".txt")
    assert [f"{one.speaker}: {one.text}" for one in script.sentences] == lines and not script.notes


def test_lists_of_people_in_a_slack_export_are_no_chats(tmp_path):
    (tmp_path / "general").mkdir()
    shutil.copy(REPORTS / "slack.json", tmp_path / "general" / "2017-12-01.json")
    for name in ("users", "channels"):
        (tmp_path / f"{name}.json").write_text('[{"id": "U1", "name": "ann"}]')
    found = find_sources([tmp_path])
    assert [one.subtitle for one in found.sources] == ["2017-12-01"] and found.n_other == 2


def test_the_command_knows_the_speaker_and_keeps_every_word(cli, tiny_model, tmp_path):
    model = ("--model", str(tiny_model))
    done = cli("analyze", str(REPORTS / "speakers.jsonl"), "--speaker", "Ana", "--json", *model)
    assert done.code == 0 and "Ben = listener, Ana = speaker" in done.err
    first = json.loads(done.out.splitlines()[0])
    assert [turn["role"] for turn in first["turns"]] == ["listener", "speaker", "speaker"]
    out = tmp_path / "out.csv"
    done = cli("analyze", str(REPORTS / "extra_cells.csv"), "--out", str(out), *model)
    assert done.code == 0 and "rows with more cells than columns" in done.err
    assert "I lost my dog, and my cat too" in out.read_text(encoding="utf-8")
    exported = cli("analyze", str(REPORTS / "telegram.json"), "--json", *model)
    assert "left out: notices (1), forwarded messages (1), messages without a text (1)" in exported.err


def test_letters_that_windows_1252_broke_are_read_everywhere():
    assert readable("I\x92m \x93fine\x94\x85\x81") == "I’m “fine”  "
