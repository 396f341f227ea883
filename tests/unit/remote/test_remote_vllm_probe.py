"""What a vLLM server is probed for, and what becomes of fills where it cannot denoise our canvases."""

from __future__ import annotations

from typing import Any

import pytest
from asking import failure, fill, texts
from conftest import NewEngine, Serve
from local_server import in_turn, says, text
from vllm_server import MODEL, Vllm, error


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ({"pins": False, "version": "0.31.0"}, "vLLM 0.31.0 at URL ignores canvases (vLLM 0.32 or later is needed)"),
        ({"pins": False}, "vLLM 0.32.0 at URL ignores canvases (vLLM 0.32 or later is needed)"),
        ({"length": 1000}, "vLLM 0.32.0 at URL has a context of 1000 tokens only: raise --max-model-len"),
    ],
)
def test_a_server_without_pinned_canvases_fills_by_chat(more: dict[str, Any], note: str, vllm: Any) -> None:
    server, engine = vllm(Vllm(**more))
    assert engine.note.startswith("filling by chat completion, since " + note.replace("URL", server.url))
    assert texts(engine, fill("a│")) == ["by chat"]
    assert "after_cursor" in server.bodies("/v1/chat/completions")[0]["messages"][1]["content"]


@pytest.mark.parametrize(
    ("route", "answer", "note"),
    [
        ("POST /v1/completions", lambda _: error("Extra inputs are not permitted: vllm_xargs"), "takes no canvas"),
        ("POST /v1/completions", says({"detail": "Not Found"}, 404), "takes no canvas"),
        ("POST /v1/completions", lambda _: error("diffusion_seed_canvas is odd"), "write `canvas` into"),
        ("POST /tokenize", says({}, 404), "has no /tokenize: name a local `tokenizer`"),
        ("GET /version", says({}, 404), ""),
        ("GET /version", says({"version": [1]}), ""),
    ],
)
def test_a_server_that_is_different(route: str, answer: Any, note: str, serve: Serve, new_engine: NewEngine) -> None:
    server = serve({**Vllm("b", "").routes(), route: answer})
    engine = new_engine(server.url, "vllm")
    assert note in engine.note and bool(note) == bool(engine.note)
    assert texts(engine, fill("a│")) == ["by chat" if note else "b"]


def test_the_width_may_be_told(serve: Serve, new_engine: NewEngine) -> None:
    routes = Vllm("b", "").routes()
    known = routes["POST /v1/completions"]
    refuses_once = in_turn(lambda _: error("diffusion_seed_canvas is odd"), known)
    engine = new_engine(serve({**routes, "POST /v1/completions": refuses_once}).url, "vllm", canvas=128)
    assert engine.note == "" and texts(engine, fill("a│")) == ["b"]


@pytest.mark.parametrize(
    ("routes", "fields", "message", "hint"),
    [
        ({"GET /v1/models": says({"data": [{"id": "x"}]})}, {"model": MODEL}, f"does not serve {MODEL}", "it serves x"),
        ({"GET /v1/models": says({"data": []})}, {}, "lists no models", "name one"),
        ({"GET /v1/models": text("<html>")}, {}, "something else than a completion", "`url`"),
        ({"GET /v1/models": says({"error": "no key"}, 401)}, {}, "without a key (401: no key)", "keyring"),
        ({"GET /version": text("", 503)}, {}, "failed (503)", "log"),
        ({"POST /tokenize": says({"tokens": "x"})}, {}, "something else", "`url`"),
        ({"POST /detokenize": says({"prompt": "another text"})}, {}, "something else", "`url`"),
    ],
)
def test_a_server_that_cannot_be_used(
    routes: dict[str, Any], fields: dict[str, Any], message: str, hint: str, serve: Serve, new_engine: NewEngine
) -> None:
    engine = new_engine(serve({**Vllm().routes(), **routes}).url, "vllm", **fields)
    failed = failure(engine)
    assert message in failed.message and hint in failed.hint


def test_another_vocabulary_is_another_model(vllm: Any) -> None:
    _, engine = vllm(Vllm(vocabulary=32_000))
    failed = failure(engine)
    assert "serves a model with 32000 tokens" in failed.message and "`like`" in failed.hint
