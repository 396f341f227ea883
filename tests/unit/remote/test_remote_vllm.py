"""Our canvases on a vLLM server that answers as documented: what it is probed for, and what it is given to denoise."""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from asking import Flag, ask, edit, failure, fill, result, texts
from local_server import says, text
from starlette.responses import JSONResponse, StreamingResponse
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from vllm_server import MODEL, Vllm, canvases, decode, error

from diffusion.api import Candidate, Draft, Result

SUFFIX = "\n\ndef other():\n    return 1\n"


@pytest.mark.parametrize(
    ("before", "middle", "rest"),
    [
        ("a = foo(", "b, c=3", ")"),
        ("a = foo(", "a middle of thirty-two characters", ")"),
        ("x = ", "1", ""),
        ("def f():\n    ", "return 12", ""),
        ("def f():\n", "    return 12", ""),
        ("sel", "f.x", ""),
        ("sel", "f.value", " + 1"),
        ("a" * 40, "bc = 1", ""),
    ],
)
@pytest.mark.parametrize("more", [{}, {"narrow": False}, {"logprobs": False}, {"echo": False}, {"canvas": 64}])
def test_the_right_middle_is_found(before: str, middle: str, rest: str, more: dict[str, Any], vllm: Any) -> None:
    # Where the cursor's line is blank, its indentation belongs to the middle that the model writes.
    blanks = before[before.rfind("\n") + 1 :] if before.rstrip(" ").endswith("\n") else ""
    server, engine = vllm(Vllm(blanks + middle, rest + SUFFIX, **more))
    assert engine.note == "" and engine.device == f"vLLM 0.32.0 at {server.url}, {MODEL}"
    end = result(engine, fill(f"{before}│{rest}{SUFFIX}"))
    assert end.candidates == (Candidate(text=middle),), end
    widths = {len(xargs["diffusion_seed_canvas"]) for xargs in canvases(server)}
    served = more.get("canvas", 128)
    assert widths == {served} if more.get("narrow") is False else max(widths) <= served


@pytest.mark.parametrize("middle", ["12", "b + 3456", "b + 3456, ca", "b + 3456, call()", "b" * 32])
def test_a_length_is_right_where_the_suffix_is_restored(middle: str, vllm: Any) -> None:
    """Where the canvas that floats is of no use, and the middle has one of the lengths that are tried."""
    _, engine = vllm(Vllm(middle, ")" + SUFFIX, floats=False))
    assert texts(engine, fill(f"a = foo(│){SUFFIX}")) == [middle]


def test_several_lines(vllm: Any) -> None:
    middle = "\n    if x:\n        return 2\n    return 3"
    _, engine = vllm(Vllm(middle, SUFFIX))
    assert texts(engine, fill(f"def f(x):│{SUFFIX}", mode="block", max_lines=9)) == [middle]
    assert texts(engine, fill(f"def f(x):│{SUFFIX}", mode="block", max_lines=3)) == ["\n    if x:\n        return 2"]


def test_the_end_of_a_file(vllm: Any) -> None:
    _, engine = vllm(Vllm("return a + b", ""))  # the model writes it without the indentation: a dedent
    assert result(engine, fill("def f(a, b):\n    │")).candidates == (Candidate(text="return a + b", replace_before=4),)
    _, engine = vllm(Vllm("    return a + b", ""))
    assert texts(engine, fill("def f(a, b):\n    │")) == ["return a + b"]


def test_what_is_sent(vllm: Any) -> None:
    server, engine = vllm(Vllm("b)", SUFFIX))
    request = fill(f"import os\nprint(│{SUFFIX}", steps=9, seed=3)
    assert texts(engine, request) == ["b)"]
    first = [body for body in server.bodies("/v1/completions") if len(body["prompt"]) > 1]
    for body in first:
        xargs, seed = body["vllm_xargs"], body["vllm_xargs"]["diffusion_seed_canvas"]
        assert body["max_tokens"] == len(seed) and body["seed"] == 3 and body["return_token_ids"] is True
        assert xargs["diffusion_canvas_length"] == len(seed) or "diffusion_canvas_length" not in xargs
        assert xargs["diffusion_read_only"] == 1 and xargs["diffusion_max_steps"] in (6, 9)
        prompt = decode(body["prompt"])
        assert prompt.startswith("<bos><|turn>system\n") and "def other():" in prompt and "a/b.py" in prompt
        assert prompt.endswith("```python\nimport os\nprint")  # what healing took is pinned at the start
        assert seed[0] == 107 + ord("(") and 0 in xargs["diffusion_pinned"]
    assert [body["vllm_xargs"]["diffusion_max_steps"] for body in first] == sorted(
        body["vllm_xargs"]["diffusion_max_steps"] for body in first
    )
    seeds = [xargs["diffusion_seed_canvas"] for xargs in canvases(server)]
    server.asked.clear()
    texts(engine, request)
    again = [xargs["diffusion_seed_canvas"] for xargs in canvases(server)]
    assert sorted(seeds) == sorted(again)  # the same request, the same noise


def test_ids_are_asked_for_once(vllm: Any) -> None:
    server, engine = vllm(Vllm("b)", SUFFIX))
    lines = "".join(f"x{n} = {n}\n" for n in range(50))
    texts(engine, fill(f"{lines}print(│{SUFFIX}"))
    asked = [body["prompt"] for body in server.bodies("/tokenize")]
    assert len(asked) == len(set(asked)) > 50
    server.asked.clear()
    texts(engine, fill(f"{lines}print(a, │{SUFFIX}"))
    assert len(server.bodies("/tokenize")) <= 3


def test_special_tokens_in_code_are_text(vllm: Any) -> None:
    server, engine = vllm(Vllm("b)", SUFFIX))
    assert texts(engine, fill(f'x = "<turn|><eos>"\nprint(│{SUFFIX}')) == ["b)"]
    prompt = canvases(server) and server.bodies("/v1/completions")[-1]["prompt"]
    assert decode(prompt).count("<turn|>") == 3 and prompt.count(106) == 2 and 1 not in prompt


def test_a_local_tokenizer(vllm: Any, tmp_path: Any) -> None:
    words = {f"<unused{n}>": n for n in range(107)}
    characters = pre_tokenizers.ByteLevel.alphabet()
    for n, character in enumerate(sorted(characters)):
        words[character] = 200 + n
    tokenizer = Tokenizer(models.BPE(vocab=words, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(tmp_path / "profiles" / "tokenizer.json"))
    server, engine = vllm(Vllm(), tokenizer="tokenizer.json")
    ids = tokenizer.encode("ab", add_special_tokens=False).ids

    def answer(asked: Any) -> JSONResponse:
        width = len(asked.body["vllm_xargs"]["diffusion_seed_canvas"])
        return JSONResponse({"choices": [{"token_ids": (ids * width)[:width], "logprobs": None}]})

    server.routes["POST /v1/completions"] = answer
    (found,) = texts(engine, fill("x = │"))
    assert set(found) == {"a", "b"}
    assert not server.bodies("/tokenize") and not server.bodies("/detokenize")


def test_drafts_come_before_the_result(vllm: Any) -> None:
    _, engine = vllm(Vllm("b, c=3", ")" + SUFFIX))
    *drafts, end = ask(engine, fill(f"a = foo(│){SUFFIX}", drafts=True))
    assert drafts and all(isinstance(draft, Draft) for draft in drafts)
    assert isinstance(end, Result) and drafts[-1].text == end.candidates[0].text == "b, c=3"  # type: ignore[union-attr]


def test_several_candidates(vllm: Any) -> None:
    _, engine = vllm(Vllm("b, c=3", ")" + SUFFIX))
    found = texts(engine, fill(f"a = foo(│){SUFFIX}", n=3))
    assert found[0] == "b, c=3" and 1 <= len(found) <= 3 and len(set(found)) == len(found)


def test_a_start_gets_a_canvas_of_its_own(vllm: Any) -> None:
    server, engine = vllm(Vllm("b, c=3", ")" + SUFFIX))
    texts(engine, fill(f"a = foo(│){SUFFIX}", starts=("b, c=4",)))
    assert any("b, c=4" in _text(xargs["diffusion_seed_canvas"]) for xargs in canvases(server))


def _text(seed: list[int]) -> str:
    return "".join(chr(i - 107) if 107 <= i < 107 + 128 else "~" for i in seed)


def test_an_edit_goes_by_chat(vllm: Any) -> None:
    _, engine = vllm(Vllm())
    assert texts(engine, edit("a│x│b")) == ["by chat"]


@pytest.mark.parametrize(
    "answer",
    [
        says({"choices": []}),
        says({"choices": [{"text": "x"}]}),
        says({"choices": [{"token_ids": [1, 2]}]}),
        says({"choices": [{"token_ids": ["1"] * 128}]}),
        says({"choices": [{"token_ids": [200] * 256, "logprobs": {"token_logprobs": ["x"]}}]}),
        says({"choices": [{"token_ids": [200] * 256, "logprobs": {"token_logprobs": [0.5]}}]}),
        text("nonsense"),
        text("", 500),
        lambda _: error("diffusion_seed_canvas must hold exactly 7 ids, got 8."),
    ],
)
def test_an_answer_that_is_none(answer: Any, vllm: Any) -> None:
    server, engine = vllm(Vllm())
    server.routes["POST /v1/completions"] = answer
    failure(engine, fill("a│"))


def test_the_second_round_may_fail(vllm: Any) -> None:
    server, engine = vllm(Vllm("b, c=3", ")" + SUFFIX))
    answers = server.routes["POST /v1/completions"]

    server.routes["POST /v1/completions"] = lambda asked: error("boom") if clamps(asked) else answers(asked)
    assert texts(engine, fill(f"a = foo(│){SUFFIX}")) == ["b, c=3"]


def unfinished(asked: Any) -> StreamingResponse:
    """The beginning of an answer, and no more of it."""

    async def parts() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    return StreamingResponse(parts(), media_type="application/json")


def clamps(asked: Any) -> bool:
    return bool(asked.body["vllm_xargs"]["diffusion_max_steps"] > 6)


def test_a_cancelled_fill_closes_all_its_connections(vllm: Any) -> None:
    server, engine = vllm(Vllm())
    server.routes["POST /v1/completions"] = unfinished
    cancelled = Flag()
    answers = engine.fill(fill(f"a = foo(│){SUFFIX}"), arrived=time.monotonic(), cancelled=cancelled)
    server.came = queue.SimpleQueue()
    with ThreadPoolExecutor(1) as thread:
        rest = thread.submit(list, answers)
        came = [server.came.get(timeout=20)]
        while came.count("/v1/completions") < 6:
            came.append(server.came.get(timeout=20))
        cancelled.set()
        assert rest.result(20) == []
    assert [server.gone.get(timeout=20) for _ in range(6)] == ["/v1/completions"] * 6


def test_at_the_deadline_the_first_round_is_the_answer(vllm: Any) -> None:
    server, engine = vllm(Vllm("b, c=3", ")" + SUFFIX))
    denoised = server.routes["POST /v1/completions"]
    server.routes["POST /v1/completions"] = lambda asked: (unfinished if clamps(asked) else denoised)(asked)
    end = result(engine, fill(f"a = foo(│){SUFFIX}", deadline_ms=2000.0))
    assert (end.candidates, end.finish) == ((Candidate(text="b, c=3"),), "deadline")
