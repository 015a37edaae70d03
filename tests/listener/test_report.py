"""The page: whole without anything else, escaped, in words what it says in pictures, cut with a note."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from fake_components import DIALOGUE, fake_components

from empatheia.documents.analysis_page import Report, write_report
from empatheia.documents.analysis_turns import IN_WORDS, _inferences, marked, word_steps
from empatheia.documents.emotion_timeline import described, emotion_timeline
from empatheia.documents.html import line_html
from empatheia.errors import DataError
from empatheia.listener.analyzer import Analyzer
from empatheia.records.dialogue import Dialogue, Turn

VOID = {"meta", "br"}
EVIL = "</style><script>alert(1)</script>\"'&<img src=x onerror=alert(1)> \u202e\x00 [a](javascript:x)"


class Page(HTMLParser):
    """Reads a page strictly: every element closed in order, ids unique, links that lead somewhere."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.tags, self.words, self.attributes, self.said = [], [], [], [], [], [], []
        self.in_said = False
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        named = dict(attrs)
        if named.get("class") == "said":
            self.in_said = True
            self.said.append("")
        if "id" in named:
            self.ids.append(named["id"])
        if "href" in named:
            self.links.append(named["href"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()
        self.in_said = self.in_said and tag != "p"

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)
        if self.in_said and "sup" not in self.open:
            self.said[-1] += data

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def shown(content):
    return Page(line_html(content))


def page_of(*inputs, report=None, parts="all", components=None):
    report = report or Report(source="chats.jsonl")
    for analysis in Analyzer(parts, components=components or fake_components()).analyze(list(inputs)):
        report.add(analysis)
    html = report.html()
    page = Page(html)
    assert len(set(page.ids)) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    return html, page


def test_everything_is_on_the_page():
    html, page = page_of(DIALOGUE)
    assert page.said == [turn.text for turn in DIALOGUE.turns]
    for words in (
        "emotion", "caused by", "empathy shown", "interpretation: weak", "exploration: strong", "fitting reply",
        "probably true besides", "affect", "behaviour", "physical", "looked up: PersonX x", "no answer for",
        "fake causes",
        "Made by empatheia", "no diagnosis",
    ):  # fmt: skip
        assert words in page.text, words
    assert page.ids.count("c1-t1") == 1 and "svg" in page.tags and html.count("<mark") > 2


def test_relations_without_an_answer_say_why():
    records = [
        {"turn": 0, "relation": "xReact", "tails": ["sad"], "scores": [], "head": None},
        {"turn": 0, "relation": "Causes", "tails": [], "scores": [], "head": None, "absent": "the <table> has none"},
    ]
    page = shown(_inferences(records, is_open=True))
    assert "affect feels : sad" in page.text and "no answer for “ causes ”: the <table> has none" in page.text
    assert "no answer for “ because they wanted ”, “ needed before" in page.text and "events" not in page.text
    assert ("open", None) in page.attributes
    assert ("open", None) not in shown(_inferences(records, is_open=False)).attributes


def test_why_an_inference_is_missing_is_plain_english():
    from empatheia.taxonomy import NO_HEAD
    from empatheia_research.understanding.inferences.provider import REASONS

    assert set(IN_WORDS) == set(REASONS)
    page = shown(_inferences([{"turn": 0, "relation": "xReact", "tails": [], "absent": NO_HEAD}], is_open=False))
    assert "the source knows no event like this one" in page.text and NO_HEAD not in page.text


def test_it_needs_nothing_else():
    html, page = page_of(DIALOGUE, "I won!")
    assert not {"script", "link", "img", "iframe", "object", "embed", "form", "base", "source", "video"} & set(
        page.tags
    )
    assert not re.search(r"https?:|//[a-z]|url\(|@import|src=", html)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "default-src 'none'" in html


def test_everything_is_escaped():
    evil = Dialogue(EVIL, (Turn("speaker", EVIL), Turn("listener", EVIL), Turn("speaker", EVIL)))
    named = {part: own for part, own in fake_components().items()}
    for own in named.values():
        own.name = EVIL
    report = Report(source=EVIL, full_data=EVIL, max_conversations=1)
    report.add({"row": EVIL, "error": EVIL})
    html, page = page_of(evil, evil, report=report, components=named)
    assert not {"script", "img"} & set(page.tags) and "\x00" not in html and "\u202e" not in html
    assert page.tags.count("style") == 1 and "<script>alert(1)</script>" in page.text


def test_pictures_are_also_told_in_words():
    html, page = page_of(DIALOGUE)
    assert re.search(r'<svg [^>]*role="img" aria-labelledby="c1-tl-t c1-tl-d"', html)
    assert re.search(r"\w+ in turn 1; \w+ in turn 3\.", page.text)
    assert 'lang="en"' in html and "<main>" in html and html.count("<h1>") == 1 and 'class="skip"' in html
    headings = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(b - a <= 1 for a, b in pairwise(headings))
    assert "prefers-color-scheme: dark" in html and "@media print" in html and "prefers-reduced-motion" in html
    assert 'aria-label="cause in turn 3"' in html and 'scope="row"' in html


def test_one_turn_only_the_listener_and_five_hundred():
    html, page = page_of("I lost my job.")
    assert "1 conversation, 1 turn." in page.text and "Conversations" not in page.text
    _, page = page_of(Dialogue("x", (Turn("listener", "How are you?"),)))
    assert "no speaker turn" in page.text and "svg" not in page.tags
    long = Dialogue("x", tuple(Turn(("speaker", "listener")[i % 2], f"Turn {i}.") for i in range(500)))
    html, page = page_of(long)
    assert "c1-t500" in page.ids and len(html) < 4_000_000 and "weaker ones" in page.text


def test_several_have_an_index():
    _, page = page_of(DIALOGUE, "I won the race!", Dialogue("third", (Turn("speaker", "Bye."),)))
    assert {"#c1", "#c2", "#c3"} <= set(page.links) and "third" in page.text and "Conversation 2" in page.text


def test_the_rest_is_cut_with_a_note():
    _, page = page_of(*["I won!"] * 5, report=Report(max_conversations=2, full_data="all.jsonl"))
    assert (
        "first 2 of 5 conversations; 3 more are counted in the summary only. All of them are in all.jsonl" in page.text
    )
    assert "5 conversations, 5 turns" in page.text and "c3" not in page.ids
    _, page = page_of(*["I won!"] * 3, report=Report(max_conversations=2))
    assert "run the same command with --out FILE.jsonl" in page.text
    _, page = page_of(DIALOGUE, DIALOGUE, report=Report(max_turns=6))
    assert "The first 2 of 4 turns are shown" in page.text and "c2-t2" in page.ids and "c2-t3" not in page.ids
    with pytest.raises(DataError, match="max_turns is 0; accepted: 1 or more"):
        Report(max_turns=0)


def test_memory_is_bounded():
    report = Report(max_conversations=3)
    record = Analyzer(components=fake_components()).analyze("I won!").to_dict()
    for number in range(1, 2001):
        report.add({"row": number, **record} if number % 2 else {"row": number, "error": "is empty."})
    assert len(report._records) == 3 and len(report._faults) == 20
    page = Page(report.html())
    assert "1,000 conversations" in page.text and "1,000 rows that could not be used" in page.text
    assert "980 more are not listed" in page.text and "Row 3" in page.text


def test_what_is_missing_says_why():
    own = {part: one for part, one in fake_components().items() if part == "emotion"}
    report = Report()
    analysis = Analyzer("emotion,intent", components=own).analyze(DIALOGUE)
    plain = analysis.to_dict() | {"missing": {"intent": "no model <here>. Get it with: empatheia models train intent"}}
    report.add(plain)
    page = Page(report.html())
    assert "intent what each turn expresses or intends missing no model <here>. Get it with" in page.text


def test_written_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    analyses = Analyzer("emotion", components=fake_components()).analyze([DIALOGUE])
    write_report(target, analyses, source="x")
    old = target.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [target]
    monkeypatch.setattr(Report, "html", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(target, analyses)
    assert target.read_text(encoding="utf-8") == old and list(tmp_path.iterdir()) == [target]
    with pytest.raises(DataError, match="is a folder; name a file"):
        write_report(tmp_path, [])
    with pytest.raises(DataError, match="does not exist; create it first"):
        write_report(tmp_path / "no" / "a.html", [])


def test_marks_lie_on_the_words():
    text = "I lost <my> job"
    words = [{"start": 2, "end": 6, "score": 0.8}, {"start": 12, "end": 15, "score": 0.4}]
    html = line_html(marked(text, words, [(2, 15, 4), (7, 11, 2)], [{"start": 0, "end": 1}], "c1"))
    assert Page(f"<p>{html}</p>").text.replace("5 ", "").replace("3 ", "").startswith("I lost <my>")
    assert '<span class="cause"><mark class="w4">lost</mark></span>' in html
    assert html.index("#c1-t3") < html.index('<mark class="w2">job</mark>') < html.index("#c1-t5")
    assert '<span class="ground">I</span>' in html
    assert "first 4,000 of 5,000" in line_html(marked("x" * 5000, [], [(3990, 5000, 0)], [], "c1"))


def test_shades():
    assert word_steps([]) == [] and word_steps([{"score": None}, {"score": 0.0}]) == [0, 0]
    assert word_steps([{"score": 0.1}] * 9) == [4] * 6 + [0] * 3


def test_timeline_in_words():
    chances = [
        {"turn": i, "probabilities": {"sad": 0.9, "joyful": 0.1} if i < 4 else {"sad": 0.2, "joyful": 0.8}}
        for i in (0, 2, 4)
    ]
    assert described(chances) == "sad in turns 1 to 3; joyful in turn 5."
    svg = line_html(emotion_timeline(chances, "c9"))
    Page(svg)
    assert svg.count("<circle") == 3 and "turn 5: joyful 80%" in svg and "turn 5: 80% pleasant" in svg
    assert 'class="neg top"' in svg and 'class="pos top"' in svg
    assert emotion_timeline([], "c1") is None
