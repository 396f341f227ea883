"""Every way in which a server fails is one sentence that names it, and one that says what to do."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from asking import failure, fill, result, texts
from conftest import NewEngine, Serve, write_profile
from local_server import Handler, breaks_off, events, hangs, in_turn, says, text

from diffusion.remote.engine import load

MODELS = says({"data": [{"id": "coder"}]})
ANSWER = says({"choices": [{"text": "b", "finish_reason": "stop"}]})
PATH = "/v1/completions"


def routes(answer: Handler) -> dict[str, Handler]:
    return {"GET /v1/models": MODELS, f"POST {PATH}": answer}


@pytest.mark.parametrize(
    ("answer", "code", "message", "hint"),
    [
        (says({"error": {"message": "Invalid API Key"}}, 401), "model", r"without a key \(401: Invalid API", "keyring"),
        (says({"detail": "no"}, 403), "model", r"without a key \(403: no\)", "api_key_env"),
        (says({"error": {"message": "The model `x` does not exist."}}, 404), "model", "`x` does not exist", "`model`"),
        (says({"detail": "Not Found"}, 404), "model", "has not found it", "`form`"),
        (text("", 405), "model", "knows no /v1/completions", "`form`"),
        (text("", 307), "model", "sends requests elsewhere", "final address"),
        (says({"message": "suffix is not currently supported"}, 400), "model", "suffix is not", "`form` must fit"),
        (says({"error": "a\n" * 900}, 422), "model", "does not take", "`form` must fit"),
        (says({"error": {"message": "slow down"}}, 429), "busy", "too many requests: slow down", "in a moment"),
        (says({"error": {"message": "Loading model"}}, 503), "unavailable", r"503: Loading model", "log"),
        (text("<html>", 502), "unavailable", r"failed \(502\)", "log"),
        (says({"error": {"message": "boom"}}), "unavailable", "broke off its answer: boom", "log"),
        (text("<html>welcome</html>"), "model", "something else than a completion", "`url`"),
        (text("{"), "model", "something else", "`url`"),
        (text("[" * 100_000), "model", "something else", "`url`"),
        (text(""), "model", "something else", "`url`"),
        (says([1]), "model", "something else", "`url`"),
        (says({"choices": [{"text": 7}]}), "model", "something else", "`url`"),
        (says({"choices": 7}), "model", "something else", "`url`"),
        (text("x" * 9_000_000), "model", "something else", "`url`"),
        (breaks_off('data: {"choices": [{"te'), "unavailable", "broke off its answer", "log"),
        (breaks_off(""), "unavailable", "without an answer", "log"),
        (events({"choices": [{"text": "b"}]}, "nonsense"), "model", "something else", "`url`"),
    ],
)  # fmt: skip
def test_what_a_server_says_no_with(
    answer: Handler, code: str, message: str, hint: str, serve: Serve, new_engine: NewEngine
) -> None:
    engine = new_engine(serve(routes(answer)).url)
    error = failure(engine)
    assert error.code == code
    assert len(error.message) < 400
    assert re.search(message, error.message), error.message
    assert hint in error.hint


def test_a_refused_key_is_told_as_such(serve: Serve, new_engine: NewEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KEY", " secret ")
    server = serve(routes(says({}, 401)))
    error = failure(new_engine(server.url, api_key_env="TEAM_KEY"))
    assert "refuses the key" in error.message and "secret" not in error.message + error.hint
    assert server.asked[-1].headers["authorization"] == "Bearer secret"


@pytest.mark.parametrize("first", [text("", 503), says({}, 429, **{"retry-after": "0"}), breaks_off(""), text("", 500)])
def test_what_may_pass_is_tried_again(first: Handler, serve: Serve, new_engine: NewEngine) -> None:
    server = serve(routes(in_turn(first, first, ANSWER)))
    assert texts(new_engine(server.url, retries=2), fill("a│")) == ["b"]
    assert len(server.bodies(PATH)) == 3


@pytest.mark.parametrize(
    "answer", [says({}, 400), says({}, 429, **{"retry-after": "60"}), events({"choices": [{"text": "b"}]}, "?")]
)
def test_what_will_not_pass_is_not(answer: Handler, serve: Serve, new_engine: NewEngine) -> None:
    server = serve(routes(answer))
    failure(new_engine(server.url, retries=5))
    assert len(server.bodies(PATH)) == 1


def test_a_server_that_is_down_is_found_when_it_is_up(serve: Serve, new_engine: NewEngine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    engine = new_engine(f"http://127.0.0.1:{port}")
    assert "no connection" in engine.note and "start the server" in engine.note
    assert "connection refused" in failure(engine).message
    server = serve(routes(ANSWER), port=port)
    assert texts(engine, fill("a│")) == ["b"]
    assert engine.note == "" and engine.device == f"server at {server.url}, coder"


def test_a_server_that_has_gone_is_probed_anew(serve: Serve, new_engine: NewEngine) -> None:
    server = serve({"GET /v1/models": MODELS, f"POST {PATH}": in_turn(text("", 503), ANSWER)})
    engine = new_engine(server.url)
    assert failure(engine).code == "unavailable" and "503" in engine.note
    server.routes["GET /v1/models"] = says({"data": [{"id": "another"}]})
    assert texts(engine, fill("a│")) == ["b"]
    assert server.bodies(PATH)[-1]["model"] == "another"


def test_a_silent_server_is_given_up(serve: Serve, new_engine: NewEngine) -> None:
    engine = new_engine(serve(routes(hangs)).url, timeout=0.2)
    error = failure(engine)
    assert error.message.endswith("has not answered within 0.2 s") and "`timeout`" in error.hint


def test_no_answer_within_the_deadline_is_a_result_without_candidates(serve: Serve, new_engine: NewEngine) -> None:
    engine = new_engine(serve(routes(hangs)).url)
    end = result(engine, fill("a│", deadline_ms=100.0))
    assert (end.candidates, end.finish) == ((), "deadline")


def test_certificates(serve: Serve, new_engine: NewEngine, tmp_path: Path) -> None:
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    server = serve(routes(ANSWER), certificate=(tmp_path / "cert.pem", tmp_path / "key.pem"))
    error = failure(new_engine(server.url))
    assert "certificate" in error.message and "`ca_file`" in error.hint
    assert texts(new_engine(server.url, ca_file=str(tmp_path / "ca.pem")), fill("a│")) == ["b"]


def test_https_to_a_server_without_tls(serve: Serve, new_engine: NewEngine) -> None:
    error = failure(new_engine(serve(routes(ANSWER)).url.replace("http:", "https:")))
    assert "TLS" in error.message and "http://" in error.hint


def test_a_proxy_is_not_asked_for_this_machine(
    serve: Serve, new_engine: NewEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert texts(new_engine(serve(routes(ANSWER)).url), fill("a│")) == ["b"]


def test_a_ca_file_without_certificates(serve: Serve, profiles: Path) -> None:
    write_profile(profiles, "https://x.example", ca_file="team.toml")
    with pytest.raises(Exception, match="which holds no certificates"):
        load("team")


def test_a_profile_of_the_package_is_not_to_be_changed(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDFILL_LLAMACPP_URL", serve({}).url)
    error = failure(load("llamacpp"))
    assert re.search(r"in a copy of .*llamacpp\.toml in .*midfill/profiles", error.hint)
