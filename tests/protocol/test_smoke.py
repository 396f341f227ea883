"""The thin slice: a document, a cursor, an answer."""

from __future__ import annotations

from .client import server


async def test_a_script_answers_an_inline_completion() -> None:
    async with server({"after": "print(", "fill": '"hi"'}) as client:
        await client.initialize()
        uri = client.open("print(\n")
        (item,) = await client.inline(uri, 0, 6)
        assert item["insertText"] == '"hi"'
        assert await client.shutdown() == 0
