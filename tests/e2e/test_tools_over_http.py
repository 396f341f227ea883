"""What other completion tools send, in form, to the real engine process with the embedded model: llama.vim,
llama.vscode, minuet and Zed. What the model says is not judged: the same question must have the same answer.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import pytest_asyncio

from lsp_server.engine_client import EngineClient

pytestmark = pytest.mark.slow

BEFORE = "def total(xs):\n    result = 0\n    for x in xs:\n        result += x\n    return "
BEHIND = "\n\n\nprint(total([1, 2]))\n"
ABOVE, _, LINE = BEFORE.rpartition("\n")
TIMINGS = [f"timings/{what}_{unit}" for what in ("prompt", "predicted") for unit in ("n", "ms", "per_token_ms")]
STOPS = [*(f"<|{name}|>" for name in ("endoftext", "fim_pad", "fim_prefix", "fim_middle", "fim_suffix")), "<PRE>"]

LLAMA = {
    "id_slot": 0, "input_prefix": f"{ABOVE}\n", "input_suffix": BEHIND, "prompt": LINE, "n_predict": 128,
    "input_extra": [{"text": "def product(xs):\n    pass\n", "time": [1, 2], "filename": "/p/other.py"}],
    "top_k": 40, "top_p": 0.9, "samplers": ["top_k", "top_p", "infill"], "stream": False, "cache_prompt": True,
    "n_indent": 4, "t_max_prompt_ms": 500, "t_max_predict_ms": 60_000,
}  # fmt: skip
LLAMA_VIM = LLAMA | {"model": "", "stop": [], "response_fields": ["content", *TIMINGS, "truncated", "tokens_cached"]}
LLAMA_VSCODE = LLAMA | {"n_cmpl": 3}
AHEAD = LLAMA | {"input_prefix": "", "input_suffix": "", "prompt": "", "n_predict": 0, "samplers": []}
MINUET = {
    "model": "midfill", "stream": True, "max_tokens": 128, "suffix": BEHIND,
    "prompt": f"# language: python\n# indentation: use 4 spaces for a tab\n{BEFORE}",
}  # fmt: skip
ZED = {
    "model": "midfill", "max_tokens": 64, "stop": STOPS,
    "prompt": f"<|fim_prefix|>{BEFORE}<|fim_suffix|>{BEHIND}<|fim_middle|>",
}  # fmt: skip


@pytest_asyncio.fixture
async def http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    """The open port of an engine of this test alone."""
    monkeypatch.setenv("MIDFILL_RUNTIME_DIR", str(tmp_path / "run"))
    client = EngineClient()
    address = await client.listen("127.0.0.1:0", "secret")
    headers = {"authorization": "Bearer secret"}
    try:
        async with httpx.AsyncClient(base_url=f"http://{address}", headers=headers, timeout=120) as opened:
            yield opened
    finally:
        await client.close()
        for process in psutil.process_iter(["cmdline"]):
            if str(client.paths.socket) in (process.info["cmdline"] or ()):
                process.kill()


async def test_what_they_send_is_answered_as_they_read_it(http: httpx.AsyncClient) -> None:
    async def answer(path: str, body: dict[str, Any]) -> httpx.Response:
        response = await http.post(path, json=body)
        assert response.status_code == 200, response.text
        return response

    assert (await answer("/infill", AHEAD)).json()["content"] == ""
    vim = (await answer("/infill", LLAMA_VIM)).json()
    assert vim.keys() == {"content", *TIMINGS, "truncated", "tokens_cached"}
    several = (await answer("/infill", LLAMA_VSCODE)).json()
    assert several[0]["content"] == vim["content"]
    assert len({each["content"] for each in several}) == len(several) <= 3

    plain = {"prompt": BEFORE, "suffix": BEHIND, "max_tokens": 64}
    zed, same = [(await answer("/v1/completions", body)).json() for body in (ZED, plain)]
    assert {"id", "object", "created", "model", "choices", "usage"} <= zed.keys()
    assert zed["choices"] == same["choices"]

    told = {**MINUET, "stream": False, "language": "python"}
    streamed = [line[6:] for line in (await answer("/v1/completions", MINUET)).text.splitlines() if line]
    assert streamed[-1] == "[DONE]"
    minuet = "".join(json.loads(line)["choices"][0]["text"] for line in streamed[:-1])
    assert minuet == (await answer("/v1/completions", told)).json()["choices"][0]["text"]
