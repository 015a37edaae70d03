"""The chat page in a real browser: three turns, highlights, steering, comparing, themes, phone, keyboard, offline."""

from __future__ import annotations

import json
import re

import httpx2 as httpx
import pytest
from browsing import Visit, chromium

from accessibility import serious, watched

DOG = "😢 My dog ran away in the park because of the fireworks 🎆 and I am so worried."
NIGHT = "We looked for him all night and I can not sleep."
FOUND = "A neighbour 👩🏽‍🌾 found him! I am so grateful."
MARKUP = '<img src=x onerror="document.title=1"><b>bold</b> & <script>document.title=2</script> my dog is ill'


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def visiting(browser, address):
    """Opens the page, with options of the browser; at the end no other host was asked and nothing went wrong."""
    visits: list[Visit] = []

    def visit(place: str = "/", **options):
        visits.append(Visit(browser, **options))
        visits[-1].open(address + place)
        return visits[-1]

    yield visit
    for one in visits:
        foreign, faults = one.foreign, one.faults
        one.context.close()
        assert foreign == []
        assert faults == []


def say(page, text: str) -> None:
    n = page.locator(".turn").count()
    page.fill("#message", text)
    page.keyboard.press("Enter")
    page.locator(".turn").nth(n).locator(".doing").first.wait_for()


def words_shown(page) -> list[tuple]:
    """Start, end, text and score of each word of the sentence on the right."""
    words = page.locator("#insight .sentence[role=group] .word").all()
    names = ("data-start", "data-end", "data-score")
    return [(*(float(word.get_attribute(name)) for name in names), word.inner_text()) for word in words]


def test_three_turns_have_the_highlights_of_the_api(visiting, address):
    page = visiting().page
    messages = []
    for turn, text in enumerate((DOG, NIGHT, FOUND)):
        say(page, text)
        messages.append({"role": "user", "content": text})
        answer = httpx.post(f"{address}/v1/chat/completions", json={"messages": messages}, timeout=60).json()
        reply, told = answer["choices"][0]["message"]["content"], answer["empathy"]
        assert page.locator(".turn").nth(turn).locator(".reply").inner_text() == reply
        wanted = [word for word in told["words"] if word["turn"] == len(told["turns"]) - 1]
        shown = words_shown(page)
        assert [(word["start"], word["end"], word["score"], word["text"]) for word in wanted] == [
            (start, end, pytest.approx(score), said) for start, end, score, said in shown
        ]
        assert [text[int(start) : int(end)] for start, end, _, _ in shown] == [said for *_, said in shown]
        assert page.locator("#insight .sentence[role=group]").inner_text() == text
        causes = [cause["text"] for cause in told["causes"] if cause["turn"] == len(told["turns"]) - 1]
        assert sorted(page.locator(".turn").nth(turn).locator(".said mark").all_inner_texts()) == sorted(causes)
        assert page.locator(".feeling").inner_text().split()[0] == told["emotion"]
        assert page.locator("#emotions .bar").count() == 6
        assert page.locator(".candidate").count() == len(told["candidates"])
        messages.append({"role": "assistant", "content": reply})
    points = page.locator(".course button")
    assert points.count() == 3
    points.first.click()
    assert page.locator("#insight .sentence[role=group]").inner_text() == DOG
    assert points.first.get_attribute("aria-pressed") == "true"


def test_a_word_tells_its_score_and_a_chosen_one_steers_the_reply(visiting):
    visit = visiting()
    page = visit.page
    say(page, DOG)
    word = page.locator("#insight button.word", has_text="fireworks")
    assert re.fullmatch(r"fireworks, cause: (< 1|\d+) %", word.get_attribute("aria-label"))
    word.hover()
    shown = word.evaluate("element => getComputedStyle(element, '::after').content")
    assert shown.strip('"') == word.get_attribute("data-tip")
    word.click()
    page.locator("#about").click()
    page.locator(".doing", has_text="2 of 2").wait_for()
    asked = [json.loads(one.post_data) for one in visit.sent if one.url.endswith("/v1/chat/completions")]
    assert asked[-1]["empathy"] == {"focus": ["fireworks"]}
    assert page.locator(".doing .tag").all_inner_texts() == ["“fireworks”"]
    assert "fireworks" in page.locator(".facts").first.inner_text()
    assert len(words_shown(page)) > 5  # what was found is still seen beside what was chosen


def test_another_feeling_another_intent_other_words(visiting):
    visit = visiting()
    page = visit.page
    say(page, DOG)
    page.select_option("#wish-emotion", "afraid")
    page.select_option("#wish-intent", "questioning")
    page.click("#again")
    page.locator(".doing", has_text="2 of 2").wait_for()
    page.click("#reword")
    page.locator(".doing", has_text="3 of 3").wait_for()
    asked = [json.loads(one.post_data) for one in visit.sent if one.url.endswith("/v1/chat/completions")]
    assert asked[1]["empathy"] == {"emotion": "afraid", "intent": "questioning"}
    assert (asked[2]["seed"], asked[2]["empathy"]) == (1, asked[1]["empathy"])
    page.get_by_role("button", name="Earlier reply").click()
    assert page.locator(".doing .tag").all_inner_texts() == ["afraid", "questioning"]
    assert "afraid" in page.locator(".facts").first.inner_text()


def test_two_systems_side_by_side_are_voted_on_blind(visiting):
    other, title = "listener", "empatheia-listener"
    page = visiting(accept_downloads=True).page
    page.click("#compare")
    page.select_option("#system", "empatheia")
    page.select_option("#other", other)
    page.fill("#message", DOG)
    page.keyboard.press("Enter")
    page.locator(".vote").wait_for()
    assert page.locator(".answer .name").all_inner_texts() == ["Reply A", "Reply B"]
    assert "Shown after you have voted" in page.locator("#insight").inner_text()
    replies = page.locator(".answer .reply").all_inner_texts()
    page.locator("[data-act=vote-right]").click()
    assert sorted(page.locator(".answer .name").all_inner_texts()) == ["empatheia", title]
    page.click("#more")
    with page.expect_download() as saved:
        page.click("#save-votes")
    (vote,) = [json.loads(line) for line in saved.value.path().read_text(encoding="utf-8").splitlines()]
    assert vote["vote"] == "right"
    assert vote["blind"] is True
    assert [vote["left"]["text"], vote["right"]["text"]] == replies
    assert {vote["left"]["model"], vote["right"]["model"]} == {"empatheia", other}
    assert vote["messages"] == [{"role": "user", "content": DOG}]


def test_conversation_is_saved_as_json_and_text_and_kept_only_if_asked(visiting):
    visit = visiting(accept_downloads=True)
    page = visit.page
    say(page, DOG)
    reply = page.locator(".reply").inner_text()
    page.click("#more")
    with page.expect_download() as saved:
        page.click("#save-json")
    record = json.loads(saved.value.path().read_text(encoding="utf-8"))
    assert [turn["text"] for turn in record["turns"]] == [DOG]
    assert record["turns"][0]["answers"][0]["text"] == reply
    assert len(record["turns"][0]["answers"][0]["empathy"]["emotions"]) == 32
    with page.expect_download() as saved:
        page.click("#save-text")
    text = saved.value.path().read_text(encoding="utf-8")
    assert f"You: {DOG}" in text and reply in text
    assert visit.context.storage_state()["origins"] == []
    page.keyboard.press("Escape")
    page.reload()
    page.locator("body[data-ready]").wait_for()
    assert page.locator(".turn").count() == 0

    say(page, DOG)
    page.click("#more")
    page.check("#keep")
    page.keyboard.press("Escape")
    page.reload()
    page.locator(".turn .reply").wait_for()
    assert page.locator(".reply").inner_text() == reply
    page.click("#more")
    page.uncheck("#keep")
    assert visit.context.storage_state()["origins"] == []


def test_words_of_a_system_that_streams_and_its_candidates_on_demand(visiting):
    page = visiting().page
    page.select_option("#system", "gao2021-small")
    say(page, NIGHT)
    assert page.locator(".reply").inner_text()
    assert page.locator(".candidate").count() == 0
    page.get_by_role("button", name="Compare candidates").click()
    page.locator(".doing", has_text="2 of 2").wait_for()
    assert page.locator(".candidate").count() > 0


def test_in_a_crisis_help_is_plainly_there(visiting):
    page = visiting().page
    assert "program" in page.locator("#notice").inner_text()
    say(page, "I want to kill myself tonight.")
    card = page.locator(".answer.care")
    assert card.locator("h3").is_visible()
    assert card.locator("li").count() >= 2
    assert page.locator("#pinned").is_visible()
    say(page, FOUND)
    page.locator("#to-help").click()
    assert card.locator("li").first.is_visible()


def test_markup_is_shown_as_text(visiting):
    page = visiting().page
    say(page, MARKUP)
    assert page.locator(".said").inner_text().endswith(MARKUP)
    assert page.locator("#insight .sentence[role=group]").inner_text() == MARKUP
    assert page.locator("main img, main script, main b").count() == 0
    assert "empatheia" in page.title()


def test_markup_in_answers_is_shown_as_text(visiting):
    visit = visiting()
    page = visit.page

    def answer(route) -> None:
        empathy = route.fetch(timeout=60_000).text().split("data: ")[1]
        first = json.loads(empathy)
        told = {"emotion": MARKUP, "emotions": {MARKUP: 1.0}, "notes": [MARKUP], "missing": {MARKUP: MARKUP}}
        first["empathy"] |= told
        first["choices"] = [{"index": 0, "delta": {"content": MARKUP}, "finish_reason": "stop"}]
        route.fulfill(body=f"data: {json.dumps(first)}\n\ndata: [DONE]\n\n", content_type="text/event-stream")

    visit.context.route("**/v1/chat/completions", answer)
    say(page, DOG)
    assert page.locator(".reply").inner_text() == MARKUP
    assert MARKUP in page.locator(".feeling").inner_text()
    assert MARKUP in page.locator(".doubts").first.inner_text()
    assert page.locator("main img, main script, main b").count() == 0


def test_an_error_is_told_and_can_be_tried_again(visiting):
    visit = visiting()
    page = visit.page
    body = json.dumps({"error": {"message": "64 requests are waiting already; try again in 2 s."}})
    visit.context.route("**/v1/chat/completions", lambda route: route.fulfill(status=429, body=body))
    page.fill("#message", NIGHT)
    page.keyboard.press("Enter")
    assert "try again in 2 s" in page.locator(".turn .fault").inner_text()
    visit.context.unroute("**/v1/chat/completions")
    page.locator("[data-act=retry]").click()
    page.locator(".doing").wait_for()
    assert page.locator(".fault:visible").count() == 0
    assert visit.faults and all("429" in fault for fault in visit.faults)  # the browser's own line
    visit.faults.clear()


def test_dark_as_the_system_has_it_and_by_the_switch(visiting):
    def lightness(page) -> int:
        colour = page.locator("body").evaluate("element => getComputedStyle(element).backgroundColor")
        return sum(int(part) for part in re.findall(r"\d+", colour)[:3])

    dark = visiting(color_scheme="dark").page
    assert lightness(dark) < 150
    dark.click("#theme")
    assert lightness(dark) > 600
    light = visiting(color_scheme="light").page
    assert lightness(light) > 600
    light.click("#theme")
    assert lightness(light) < 150
    light.reload()
    light.locator("body[data-ready]").wait_for()
    assert lightness(light) < 150


def test_phone_width_has_all_of_it(visiting):
    page = visiting(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True).page
    wide = "element => element.scrollWidth - element.clientWidth"
    assert page.locator("html").evaluate(wide) == 0
    page.locator("#examples button").first.tap()
    page.locator(".doing").wait_for()
    assert not page.locator("#insight").is_visible()
    page.locator("[data-act=why-0]").tap()
    assert page.locator(".feeling").is_visible()
    assert not page.locator("#message").is_visible()
    assert page.locator("html").evaluate(wide) == 0
    assert page.locator("#insight").evaluate(wide) == 0
    page.get_by_role("button", name="Conversation").tap()
    assert page.locator("#message").is_visible()


def test_keyboard_alone(visiting):
    page = visiting().page
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to writing"
    page.keyboard.press("Enter")
    page.keyboard.type(DOG)
    page.keyboard.press("Enter")
    page.locator(".doing").wait_for()
    assert "Reply:" in page.locator("#said").text_content()

    def tab_to(selector: str) -> None:
        for _ in range(40):
            if page.locator(f"{selector}:focus").count():
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{selector} is not reached by the keyboard")

    tab_to("#insight button.word")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    word = page.locator(":focus").inner_text()
    page.keyboard.press("Space")
    tab_to("#about")
    page.keyboard.press("Enter")
    page.locator(".doing", has_text="2 of 2").wait_for()
    assert page.locator(".doing .tag").all_inner_texts() == [f"“{word}”"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser, address, scheme):
    visit = Visit(browser, bypass_csp=True, color_scheme=scheme)
    watched(visit.context)
    page = visit.open(f"{address}/")
    found = serious(page)
    say(page, DOG)
    say(page, "I want to kill myself tonight.")
    page.click("#compare")
    page.fill("#message", FOUND)
    page.keyboard.press("Enter")
    page.locator(".vote").wait_for()
    page.locator("[data-act=vote-left]").click()
    for summary in page.locator("summary").all():
        summary.click()
    found += serious(page)
    page.click("#more")
    found += serious(page)
    page = visit.open(f"{address}/analyze")
    found += serious(page)
    page.fill("#texts", f"{DOG}\n{NIGHT}\n...")
    page.click("#begin")
    page.locator("#found-title", has_text="Read your texts").wait_for()
    found += serious(page)
    visit.context.close()
    assert found == []
