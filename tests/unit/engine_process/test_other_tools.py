"""The routes for other tools and the guard before them, in this process, with answers that the test writes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import httpx
import pytest
import pytest_asyncio

from diffusion.api import Candidate, Cost, Draft, Event, Failure, FillRequest, Result, Status
from diffusion.guard import Guard
from diffusion.other_tools import other_tools
from diffusion.tool_port import WITHOUT_KEY

KEY = {"authorization": "Bearer secret"}
PREFIXED: dict[str, Any] = {"input_prefix": "a\n", "input_suffix": "", "prompt": "b"}


class Answers:
    """What is answered next, and what has been asked."""

    def __init__(self) -> None:
        candidates = (Candidate(text="one;two"), Candidate(text="three"))
        cost = Cost(encoded=3, cached=4, ms=50.0)
        self.events: list[Event] = [Draft(step=1, text="o"), Result(candidates=candidates, cost=cost, model="m")]
        self.asked: list[FillRequest] = []
        self.status = Status(state="ready", model="m")

    async def fill(self, request: FillRequest, arrived: float) -> AsyncGenerator[Event, None]:
        self.asked.append(request)
        for event in self.events:
            yield event


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest_asyncio.fixture
async def http(answers: Answers) -> AsyncIterator[httpx.AsyncClient]:
    app = Guard(other_tools(answers.fill, lambda: answers.status), port=8012, key="secret", without_key=WITHOUT_KEY)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8012") as client:
        yield client


def events_in(body: str) -> list[Any]:
    lines = [event.removeprefix("data: ") for event in body.split("\n\n") if event]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


async def test_a_completion(http: httpx.AsyncClient, answers: Answers) -> None:
    body = {"model": "x", "prompt": "p", "suffix": "\ns", "n": 2, "stop": [";"], "temperature": 1.5}
    answer = (await http.post("/v1/completions", json=body, headers=KEY)).json()
    assert [choice["text"] for choice in answer["choices"]] == ["one", "three"]
    assert [choice["finish_reason"] for choice in answer["choices"]] == ["stop", "stop"]
    assert answer["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert answer["model"] == "m" and answer["object"] == "text_completion"
    (asked,) = answers.asked
    assert (asked.prefix, asked.suffix, asked.n) == ("p", "\ns", 2)


async def test_a_streamed_completion(http: httpx.AsyncClient) -> None:
    body = {"prompt": "p", "stream": True, "stream_options": {"include_usage": True}}
    answer = await http.post("/v1/completions", json=body, headers=KEY)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *chunks, usage, done = events_in(answer.text)
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks if not chunk["choices"][0]["index"]) == "one;two"
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == [] and usage["usage"]["prompt_tokens"] == 7 and done == "[DONE]"


async def test_an_infill(http: httpx.AsyncClient, answers: Answers) -> None:
    answer = (await http.post("/infill", json={**PREFIXED, "stop": [";"]}, headers=KEY)).json()
    assert answer["content"] == "one" and answer["stop"] is True
    assert answer["tokens_predicted"] == 1 and answer["tokens_cached"] == 4
    assert answer["timings"]["prompt_n"] == 3 and answer["timings"]["predicted_per_second"] == 20.0
    assert answers.asked[0].prefix == "a\nb"
    body = {**PREFIXED, "response_fields": ["content", "timings/predicted_ms", "nothing/here"]}
    assert (await http.post("/infill", json=body, headers=KEY)).json() == {
        "content": "one;two",
        "timings/predicted_ms": 50.0,
    }
    first, last = events_in((await http.post("/infill", json={**PREFIXED, "stream": True}, headers=KEY)).text)
    assert (first["content"], first["stop"], last["content"], last["stop"]) == ("one;two", False, "", True)


async def test_several_infills_are_a_list(http: httpx.AsyncClient, answers: Answers) -> None:
    body = {**PREFIXED, "n_cmpl": 3, "response_fields": ["content"]}
    answer = await http.post("/infill", json=body, headers=KEY)
    assert answer.json() == [{"content": "one;two"}, {"content": "three"}]
    assert answers.asked[0].n == 3


async def test_context_sent_ahead_costs_no_fill(http: httpx.AsyncClient, answers: Answers) -> None:
    body = {**PREFIXED, "n_predict": 0, "samplers": [], "t_max_predict_ms": 1}
    answer = await http.post("/infill", json=body, headers=KEY)
    assert answer.json()["content"] == "" and answers.asked == []


async def test_models_and_health(http: httpx.AsyncClient, answers: Answers) -> None:
    assert (await http.get("/v1/models", headers=KEY)).json()["data"][0]["id"] == "m"
    assert (await http.get("/health")).json() == {"status": "ok"}
    answers.status = Status(state="loading", model="m")
    loading = await http.get("/health")
    assert loading.status_code == 503 and loading.json()["error"]["message"] == "Loading model"


@pytest.mark.parametrize(("code", "status"), [("bad_request", 400), ("busy", 429), ("loading", 503), ("model", 503)])
async def test_failures_in_the_clients_form(http: httpx.AsyncClient, answers: Answers, code: Any, status: int) -> None:
    answers.events = [Failure(code=code, message="no", hint="do this")]
    answer = await http.post("/v1/completions", json={"prompt": ""}, headers=KEY)
    assert answer.status_code == status and answer.json()["error"]["message"] == "no: do this"


async def test_an_engine_without_an_answer_and_bad_requests(http: httpx.AsyncClient, answers: Answers) -> None:
    answers.events = []
    assert (await http.post("/infill", json=PREFIXED, headers=KEY)).status_code == 500
    for body, status in ((b"garbage", 400), (b"{}", 400), (b"x" * 5_000_000, 413)):
        answer = await http.post("/infill", content=body, headers={**KEY, "content-type": "application/json"})
        assert answer.status_code == status and answer.json()["error"]["message"]
    assert (await http.get("/infill", headers=KEY)).status_code == 405
    assert (await http.post("/v1/stop", json={}, headers=KEY)).status_code == 404


# --- the guard


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "secret"}, 401),
        ({**KEY, "host": "evil.example:8012"}, 403),
        ({**KEY, "host": "127.0.0.1"}, 403),
        ({**KEY, "host": "127.0.0.1:8013"}, 403),
        ({**KEY, "origin": "http://127.0.0.1:8012"}, 403),
        ({**KEY, "origin": "null"}, 403),
        ({**KEY, "sec-fetch-site": "cross-site"}, 403),
        ({**KEY, "content-type": "text/plain"}, 415),
        ({**KEY, "content-type": "application/x-www-form-urlencoded"}, 415),
        ({**KEY, "content-type": "application/json; charset=utf-8"}, 200),
        ({**KEY, "host": "localhost:8012"}, 200),
    ],
)
async def test_who_may_ask(http: httpx.AsyncClient, answers: Answers, headers: Mapping[str, str], status: int) -> None:
    sent = {"content-type": "application/json", **headers}
    answer = await http.post("/infill", content=json.dumps(PREFIXED), headers=sent)
    assert answer.status_code == status
    assert len(answers.asked) == (status == 200)
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_page_gets_no_preflight_and_no_health(http: httpx.AsyncClient) -> None:
    asking = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    for headers in (asking, {**asking, **KEY}, KEY):
        for path in ("/infill", "/v1/completions", "/health"):
            answer = await http.options(path, headers=headers)
            assert answer.status_code >= 400
            assert not [name for name in answer.headers if name.startswith("access-control")]
    assert (await http.get("/health", headers={"host": "evil.example"})).status_code == 403
