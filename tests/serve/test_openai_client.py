"""The official client, sync and async, against a real server."""

from __future__ import annotations

import asyncio

import openai
import pytest
from loopback import DOG, until

from empatheia.serve import ServerSettings, create_app
from empatheia.serve.run import Launch


@pytest.fixture(scope="module")
def client(address):
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=60) as made:
        yield made


def test_a_reply_has_our_side(client):
    answer = client.chat.completions.create(
        model="empatheia", messages=DOG, n=2, seed=3, extra_body={"empathy": {"explain": True, "focus": ["dog"]}}
    )
    told = answer.model_extra["empathy"]
    assert [one.index for one in answer.choices] == [0, 1]
    assert answer.choices[0].finish_reason == "stop"
    assert told["candidates"][0]["text"] == answer.choices[0].message.content
    assert told["targets"][0]["text"] == "dog"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream(client):
    plain = client.chat.completions.create(model="tiny", messages=DOG, max_tokens=20)
    chunks = list(
        client.chat.completions.create(
            model="tiny", messages=DOG, max_tokens=20, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert text == plain.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[0].model_extra["empathy"]["emotion"] == plain.model_extra["empathy"]["emotion"]
    assert chunks[-1].usage == plain.usage and not chunks[-1].choices


def test_the_stream_helper_puts_it_together(client):
    with client.chat.completions.stream(model="gao2021-small", messages=DOG) as stream:
        final = stream.get_final_completion()
    plain = client.chat.completions.create(model="gao2021-small", messages=DOG)
    assert final.choices[0].message.content == plain.choices[0].message.content


def test_models(client):
    assert client.models.list().data[0].id == "empatheia"
    assert client.models.retrieve("tiny").owned_by == "empatheia"


def test_responses(client):
    answer = client.responses.create(
        model="empatheia", input=DOG[0]["content"], extra_body={"empathy": {"focus": ["dog"]}}
    )
    chat = client.chat.completions.create(model="empatheia", messages=DOG, extra_body={"empathy": {"focus": ["dog"]}})
    assert answer.output_text == chat.choices[0].message.content
    assert answer.status == "completed"
    assert answer.usage.output_tokens == chat.usage.completion_tokens
    assert answer.model_extra["empathy"]["targets"] == chat.model_extra["empathy"]["targets"]


def test_responses_streamed(client):
    conversation = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi!"}, *DOG]
    plain = client.responses.create(model="gao2021-small", input=conversation)
    with client.responses.stream(model="gao2021-small", input=conversation) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert final.output_text == plain.output_text
    kinds = [one.type for one in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.output_text.delta") >= 2
    assert [one.sequence_number for one in events if hasattr(one, "sequence_number")] == list(range(len(kinds)))


def test_a_response_that_is_cut_is_incomplete(client):
    answer = client.responses.create(model="tiny", input="My dog ran away.", max_output_tokens=2)
    assert answer.status == "incomplete" and answer.incomplete_details.reason == "max_output_tokens"


@pytest.mark.parametrize(
    "fields",
    [
        {"previous_response_id": "resp_1"},
        {"tools": "web_search_preview"},
        {"background": True},
        {"input": [{"type": "function_call_output", "call_id": "1", "output": "x"}]},
        {"input": [{"content": "x"}]},
        {"input": [{"role": "assistant", "content": "x"}]},
        {"input": []},
        {"max_output_tokens": 0},
    ],
)
def test_what_responses_cannot_do_is_a_clear_400(client, fields):
    with pytest.raises(openai.BadRequestError) as error:
        client.responses.create(**{"model": "empatheia", "input": "Hello.", **fields})
    assert error.value.param.startswith(next(iter(fields)))


def test_errors_are_the_client_s_own(client):
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="nobody", messages=DOG)
    assert missing.value.code == "model_not_found" and missing.value.param == "model"
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="empatheia", messages=DOG, temperature=-1)
    with pytest.raises(openai.UnprocessableEntityError):
        client.chat.completions.create(model="empatheia", messages=DOG * 2000)


def test_many_at_once_are_not_mixed_up(client, address):
    texts = [f"My {animal} ran away {place}." for animal in ("dog", "cat", "horse") for place in ("today", "at sea")]
    alone = {
        (model, text): client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": text}], max_tokens=20
        )
        for text in texts
        for model in ("empatheia", "tiny")
    }

    async def all_at_once():
        async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=120) as asking:

            async def one(model, text):
                messages = [{"role": "user", "content": text}]
                return await asking.chat.completions.create(model=model, messages=messages, max_tokens=20)

            async def streamed(model, text):
                messages = [{"role": "user", "content": text}]
                stream = await asking.chat.completions.create(
                    model=model, messages=messages, max_tokens=20, stream=True
                )
                return "".join([part.choices[0].delta.content or "" async for part in stream])

            pairs = list(alone) * 2
            return pairs, await asyncio.gather(*(one(*pair) for pair in pairs), *(streamed(*pair) for pair in alone))

    pairs, answers = asyncio.run(all_at_once())
    for pair, answer in zip([*pairs, *alone], answers, strict=True):
        text = answer if isinstance(answer, str) else answer.choices[0].message.content
        assert text == alone[pair].choices[0].message.content
    for pair, answer in zip(pairs, answers, strict=False):
        before, after = alone[pair].model_extra["empathy"], answer.model_extra["empathy"]
        assert after["emotions"] == pytest.approx(before["emotions"], abs=1e-5)
        assert [one["text"] for one in after["candidates"]] == [one["text"] for one in before["candidates"]]


def test_a_key_is_asked_for(tiny_model, monkeypatch):
    from loopback import running

    monkeypatch.setenv("KEYS_OF_THIS_TEST", "first-key, second-key")
    launch = Launch(server=ServerSettings(models=(str(tiny_model),), default="tiny"), key_env="KEYS_OF_THIS_TEST")
    from empatheia.serve.run import application

    with running(launch, application(launch)) as where:
        for key, is_right in (
            ("first-key", True),
            ("second-key", True),
            ("first-key2", False),
            ("first-key, second-key", False),
        ):
            asking = openai.OpenAI(base_url=f"{where}/v1", api_key=key, max_retries=0)
            if is_right:
                assert asking.models.list().data
            else:
                with pytest.raises(openai.AuthenticationError) as error:
                    asking.chat.completions.create(model="tiny", messages=DOG)
                assert key not in str(error.value)


def test_a_client_that_leaves_stops_its_generation(address, client):
    import httpx2

    body = {"model": "tiny", "messages": DOG, "stream": True, "max_tokens": 1024}
    for _ in range(5):
        with httpx2.stream("POST", f"{address}/v1/chat/completions", json=body, timeout=120) as answer:
            assert answer.status_code == 200
            next(answer.iter_lines())

    def is_idle():
        text = httpx2.get(f"{address}/metrics", timeout=120).text
        return "empatheia_queue 0.0" in text

    until(is_idle)
    assert client.chat.completions.create(model="tiny", messages=DOG, max_tokens=5).choices


def test_settings_without_the_page_have_none():
    from fastapi.testclient import TestClient

    with_page, without = create_app(ServerSettings()), create_app(ServerSettings(page=False))
    assert TestClient(with_page).get("/").status_code == 200
    assert TestClient(without).get("/").status_code == 404
