"""FIM servers, llama.cpp, Ollama and chat models: what they are asked, and what becomes of their answers."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from typing import Any

import pytest
from asking import Flag, ask, edit, failure, fill, result, start, texts
from conftest import NewEngine, Serve
from local_server import Handler, breaks_off, events, json_lines, says, text
from starlette.responses import JSONResponse

from diffusion.api import Candidate, ContextItem, Draft, Result

MODELS = {"GET /v1/models": says({"data": [{"id": "coder"}]})}
OLLAMA = {"GET /api/tags": says({"models": [{"name": "coder:latest"}]})}


def completion(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}


def said(text: str | None, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


USAGE: dict[str, Any] = {"choices": [], "usage": {"completion_tokens": 3}}


@pytest.mark.parametrize(
    ("form", "routes", "path", "body"),
    [
        (
            "completions",
            {**MODELS, "POST /v1/completions": events(completion("1 +"), completion(" 2", "stop"), USAGE, "[DONE]")},
            "/v1/completions",
            {"model": "coder", "prompt": "import x\n\na\nb = ", "suffix": "\nc", "stop": ["\n"], "max_tokens": 64},
        ),
        (
            "infill",
            {**MODELS, "POST /infill": events({"content": "1 + 2", "stop": False}, {"content": "", "stop": True})},
            "/infill",
            {
                "input_prefix": "a\n", "prompt": "b = ", "input_suffix": "\nc", "stop": ["\n"], "n_predict": 64,
                "input_extra": [{"filename": "x.py", "text": "import x"}],
            },
        ),
        (
            "ollama",
            {
                **OLLAMA,
                "POST /api/generate": json_lines(
                    {"response": "1 +", "done": False}, {"response": " 2", "done": True, "done_reason": "stop"}
                ),
            },
            "/api/generate",
            {"model": "coder:latest", "prompt": "import x\n\na\nb = ", "suffix": "\nc", "stream": True},
        ),
        (
            "chat",
            {**MODELS, "POST /v1/chat/completions": events(said("<mid"), said("dle>1 + 2</mi"), said("ddle>", "stop"))},
            "/v1/chat/completions",
            {"model": "coder", "stream": True},
        ),
    ],
)  # fmt: skip
def test_a_fill(
    form: str, routes: dict[str, Handler], path: str, body: dict[str, Any], serve: Serve, new_engine: NewEngine
) -> None:
    server = serve(routes)
    engine = new_engine(server.url, form=form)
    request = fill("a\nb = │\nc", context=(ContextItem(kind="import", path="x.py", text="import x"),))
    end = result(engine, request)
    assert (end.candidates, end.finish, end.model) == ((Candidate(text="1 + 2"),), "stop", "team")
    (sent,) = server.bodies(path)
    assert body.items() <= sent.items()
    assert engine.note == ""


@pytest.mark.parametrize(
    ("form", "path", "answer"),
    [
        ("completions", "/v1/completions", completion("x", "stop")),
        ("completions", "/v1/completions", {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}),
        ("infill", "/infill", {"content": "x", "stop": True, "stop_type": "eos"}),
        ("ollama", "/api/generate", {"response": "x", "done": True, "done_reason": "stop"}),
        ("chat", "/v1/chat/completions", {"choices": [{"message": {"content": "<middle>x</middle>"}}]}),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_server_that_does_not_stream(
    form: str, path: str, answer: Any, indent: int | None, serve: Serve, new_engine: NewEngine
) -> None:
    server = serve({**MODELS, **OLLAMA, f"POST {path}": text(json.dumps(answer, indent=indent))})
    assert texts(new_engine(server.url, form=form), fill("a│")) == ["x"]


def test_drafts_grow_with_the_stream(serve: Serve, new_engine: NewEngine) -> None:
    answer = events(completion("1"), completion(" + "), completion("2", "stop"), "[DONE]")
    engine = new_engine(serve({**MODELS, "POST /v1/completions": answer}).url)
    *drafts, end = ask(engine, fill("a = │", drafts=True))
    assert [draft.text for draft in drafts if isinstance(draft, Draft)] == ["1", "1 + ", "1 + 2"]
    assert isinstance(end, Result) and end.candidates == (Candidate(text="1 + 2"),)


def test_a_stream_is_closed_when_it_has_said_enough(serve: Serve, new_engine: NewEngine) -> None:
    server = serve({**MODELS, "POST /v1/completions": events(completion("b\nc\nd"), then_hangs=True)})
    engine = new_engine(server.url)
    assert texts(engine, fill("a│")) == ["b"]
    assert server.gone.get(timeout=20) == "/v1/completions"
    assert texts(engine, fill("a│", mode="block", max_lines=2)) == ["b\nc"]


def test_a_cancelled_fill_closes_its_connection_at_once(serve: Serve, new_engine: NewEngine) -> None:
    server = serve({**MODELS, "POST /v1/completions": events(completion("b"), then_hangs=True)})
    cancelled = Flag()
    running = start(new_engine(server.url), fill("a│", drafts=True), cancelled)
    assert next(running) == Draft(step=1, text="b")
    cancelled.set()
    assert list(running) == []
    assert server.gone.get(timeout=20) == "/v1/completions"


def test_a_generator_that_is_closed_closes_its_connection(serve: Serve, new_engine: NewEngine) -> None:
    server = serve({**MODELS, "POST /v1/completions": events(completion("b"), then_hangs=True)})
    running = start(new_engine(server.url), fill("a│", drafts=True))
    next(running)
    running.close()  # type: ignore[attr-defined]
    assert server.gone.get(timeout=20) == "/v1/completions"


def test_at_the_deadline_the_answer_is_what_has_come(serve: Serve, new_engine: NewEngine) -> None:
    server = serve({**MODELS, "POST /v1/completions": events(completion("b"), then_hangs=True)})
    end = result(new_engine(server.url), fill("a│", deadline_ms=1000.0))
    assert (end.candidates, end.finish) == ((Candidate(text="b"),), "deadline")
    assert server.gone.get(timeout=20) == "/v1/completions"


@pytest.mark.parametrize(
    ("mode", "answer", "finish", "shown", "ended"),
    [
        ("line", "b", "length", ["b"], "length"),
        ("block", "b\nc", "length", ["b"], "length"),
        ("line", "b\nc", "length", ["b"], "stop"),
        ("line", "  ", "stop", [], "stop"),
        ("line", "\nb", "stop", [], "stop"),
        ("block", "\n    b", "stop", ["\n    b"], "stop"),
        ("line", "b\r\nc", "stop", ["b"], "stop"),
    ],
)
def test_limits(
    mode: str, answer: str, finish: str, shown: list[str], ended: str, serve: Serve, new_engine: NewEngine
) -> None:
    server = serve({**MODELS, "POST /v1/completions": says(completion(answer, finish))})
    end = result(new_engine(server.url), fill("a│", mode=mode, max_lines=5))
    assert ([candidate.text for candidate in end.candidates], end.finish) == (shown, ended)


def test_several_candidates_are_several_requests_and_the_first_is_greedy(serve: Serve, new_engine: NewEngine) -> None:
    def answer(asked: Any) -> JSONResponse:
        return JSONResponse(completion(f"seed {asked.body.get('seed', 'none')}", "stop"))

    server = serve({**MODELS, "POST /v1/completions": answer})
    assert texts(new_engine(server.url), fill("a│", n=9, seed=5)) == ["seed none", "seed 6", "seed 7"]
    assert sorted(body["temperature"] for body in server.bodies("/v1/completions")) == [0, 0.8, 0.8]


def test_only_the_first_candidate_has_to_succeed(serve: Serve, new_engine: NewEngine) -> None:
    def answer(asked: Any) -> JSONResponse:
        greedy = asked.body["temperature"] == 0
        return JSONResponse(completion("b", "stop") if greedy else {"error": "no"}, 200 if greedy else 400)

    server = serve({**MODELS, "POST /v1/completions": answer})
    assert texts(new_engine(server.url), fill("a│", n=2)) == ["b"]


@pytest.mark.parametrize("form", ["completions", "infill", "chat"])
def test_an_edit_goes_by_chat(form: str, serve: Serve, new_engine: NewEngine) -> None:
    server = serve(
        {**MODELS, "POST /v1/chat/completions": events(said("Sure: <middle>  y\n"), said("</middle> Done."))}
    )
    engine = new_engine(server.url, form=form)
    *drafts, end = ask(engine, edit("a\n│  x\n│b", drafts=True))
    assert [draft.text for draft in drafts if isinstance(draft, Draft)] == ["  y\n"]
    assert isinstance(end, Result) and end.candidates == (Candidate(text="  y\n"),)
    user = server.bodies("/v1/chat/completions")[0]["messages"][1]["content"]
    assert "<selection>  x\n</selection>" in user and "<instruction>rename it</instruction>" in user


def test_an_edit_by_ollama(serve: Serve, new_engine: NewEngine) -> None:
    answer = json_lines(
        {"message": {"content": "<middle>y</mid"}, "done": False}, {"message": {"content": "dle>"}, "done": True}
    )
    engine = new_engine(serve({**OLLAMA, "POST /api/chat": answer}).url, form="ollama")
    assert texts(engine, edit("a│x│b")) == ["y"]


def test_an_edit_may_delete_but_half_of_one_is_none(serve: Serve, new_engine: NewEngine) -> None:
    server = serve({**MODELS, "POST /v1/chat/completions": says(said("<middle></middle>", "stop"))})
    engine = new_engine(server.url)
    assert texts(engine, edit("a│x│b")) == [""]
    server.routes["POST /v1/chat/completions"] = says(said("<middle>y and", "length"))
    end = result(engine, edit("a│x│b"))
    assert (end.candidates, end.finish) == ((), "length")
    server.routes["POST /v1/chat/completions"] = says(said("", "stop"))
    assert texts(engine, edit("a│x│b")) == []
    server.routes["POST /v1/chat/completions"] = breaks_off(
        'data: {"choices": [{"delta": {"content": "<middle>y"}}]}\n'
    )
    assert "broke off" in failure(engine, edit("a│x│b")).message


@pytest.mark.parametrize(
    ("form", "tables", "model", "message", "hint"),
    [
        ("ollama", {"models": [{"name": "a:latest"}]}, "b", "does not serve b:latest", "it serves a:latest"),
        ("ollama", {"models": []}, "b", "does not serve b:latest", "it serves none"),
        ("ollama", {"models": []}, "", "lists no models", "name one as `model`"),
        ("chat", {"data": [{"id": str(n)} for n in range(9)]}, "", "serves 0, 1, 2, 3, 4 and 4 more", "name one"),
        ("chat", {"data": [{"name": "a"}]}, "", "something else than a completion", "`url`"),
        ("chat", {"data": 7}, "", "something else than a completion", "`url`"),
    ],
)
def test_which_model(
    form: str, tables: Any, model: str, message: str, hint: str, serve: Serve, new_engine: NewEngine
) -> None:
    engine = new_engine(
        serve({"GET /v1/models": says(tables), "GET /api/tags": says(tables)}).url, form=form, model=model
    )
    error = failure(engine)
    assert message in error.message and hint in error.hint
    assert engine.note == f"{error.message}: {error.hint}"


def test_a_gateway_may_serve_more_than_it_lists(serve: Serve, new_engine: NewEngine) -> None:
    server = serve({**MODELS, "POST /v1/completions": says(completion("x", "stop"))})
    engine = new_engine(server.url, model="other")
    assert engine.note == f"{server.url} does not list other; it lists coder"
    assert texts(engine, fill("a│")) == ["x"]


def test_a_server_without_a_list_of_models(serve: Serve, new_engine: NewEngine) -> None:
    server = serve({"POST /v1/fim/completions": says(completion("x", "stop"))})
    engine = new_engine(server.url, model="coder", path="/v1/fim/completions", extra={"top_p": 0.5})
    assert texts(engine, fill("a│")) == ["x"]
    assert server.bodies("/v1/fim/completions")[0]["top_p"] == 0.5


def test_a_server_behind_a_path(serve: Serve, new_engine: NewEngine) -> None:
    models = says({"data": [{"id": "coder"}]})
    server = serve({"GET /llm/v1/models": models, "POST /llm/v1/completions": says(completion("x", "stop"))})
    assert texts(new_engine(f"{server.url}/llm/v1/"), fill("a│")) == ["x"]


def test_requests_run_side_by_side(serve: Serve, new_engine: NewEngine) -> None:
    """The first does not end before the second has come."""
    both = threading.Barrier(2)

    async def answer(asked: Any) -> JSONResponse:
        await asyncio.to_thread(both.wait, 20)
        return JSONResponse(completion("x", "stop"))

    engine = new_engine(serve({**MODELS, "POST /v1/completions": answer}).url)
    assert engine.parallel == 4
    ends: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    for _ in range(2):
        threading.Thread(target=lambda: ends.put(texts(engine, fill("a│"))), daemon=True).start()
    assert [ends.get(timeout=20), ends.get(timeout=20)] == [["x"], ["x"]]
