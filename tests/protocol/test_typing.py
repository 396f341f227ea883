"""Typing, accepting and bursts through the real server: what reaches the engine, counted in drafts and decisions."""

from __future__ import annotations

from typing import Any

from .client import Client, position, result_of, server, within

QUICK = {"debounceMs": 0}


def texts(items: list[Any]) -> list[str]:
    return [item["insertText"] for item in items]


async def decisions(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.request("midfill/why"))["decisions"]
    return found


async def fetched_ahead(client: Client) -> dict[str, Any]:
    """The decision on what was fetched ahead; each question gives the server time to make it."""
    for _ in range(1000):
        for decision in await decisions(client):
            if decision["outcome"] == "prefetched":
                return decision
    raise AssertionError("nothing was fetched ahead")


async def test_3_a_storm_of_keystrokes_costs_a_bounded_number_of_forwards() -> None:
    """Every forward sends a draft: 200 keystrokes, and the engine gets to a handful of steps."""
    text = "".join(chr(97 + number % 26) for number in range(200))
    slow = {"fill": "never", "drafts": [str(step) for step in range(1000)], "delay_ms": 10_000}
    entries = [{"after": text, "fill": " done", "drafts": [" done"]}] + [
        {"after": text[:end], **slow} for end in range(199, 180, -1)
    ]
    async with server(*entries, *[slow] * 181) as client:
        await client.initialize(initializationOptions=QUICK | {"drafts": True})
        uri = client.open("")
        answers = []
        for end in range(1, 201):
            client.change(uri, end + 1, ((0, end - 1), (0, end - 1), text[end - 1]))
            answers.append(client.ask(uri, 0, end))
        results = [result_of(await within(answer)) for _, answer in answers]
        assert results[:-1] == [{"items": []}] * 199
        assert texts(results[-1]["items"]) == [" done"]
        assert len(client.all("midfill/draft")) <= 20
        assert [decision["forwards"] for decision in await decisions(client)].count(0) >= 199 - 20
        assert client.all("window/showMessage") == []


async def test_2_backspace_brings_the_longer_item_back() -> None:
    async with server({"fill": "foo(a, b)"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("x = ")
        assert texts(await client.inline(uri, 0, 4)) == ["foo(a, b)"]
        client.change(uri, 2, ((0, 4), (0, 4), "foo("))
        assert texts(await client.inline(uri, 0, 8)) == ["a, b)"]
        client.change(uri, 3, ((0, 5), (0, 8), ""))
        assert texts(await client.inline(uri, 0, 5)) == ["oo(a, b)"]
        client.change(uri, 4, ((0, 4), (0, 5), ""))
        assert texts(await client.inline(uri, 0, 4)) == ["foo(a, b)"]
        assert [decision["source"] for decision in await decisions(client)] == ["cache"] * 3 + ["engine"]


async def test_7_after_a_line_was_accepted_the_next_line_comes_back() -> None:
    async with server({"fill": "a = 1\n    b = 2\n    c = 3"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("def f():\n    \n\nf()\n")
        (item,) = await client.inline(uri, 1, 4)
        assert item["insertText"] == "a = 1\n    b = 2\n    c = 3"
        client.change(uri, 2, ((1, 4), (1, 4), "a = 1\n    "))
        assert texts(await client.inline(uri, 2, 4)) == ["b = 2\n    c = 3"]
        client.change(uri, 3, ((2, 4), (2, 4), "b = 2"))
        assert texts(await client.inline(uri, 2, 9)) == ["\n    c = 3"]
        assert [decision["source"] for decision in await decisions(client)] == ["cache", "cache", "engine"]


async def test_after_an_accept_the_next_completion_is_there() -> None:
    async with server({"after": "x = ", "fill": "foo("}, {"after": "x = foo(", "fill": "a)"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("x = ")
        assert texts(await client.inline(uri, 0, 4)) == ["foo("]
        client.change(uri, 2, ((0, 4), (0, 4), "foo("))
        assert (await fetched_ahead(client))["forwards"] == 1
        assert texts(await client.inline(uri, 0, 8)) == ["a)"]
        newest = (await decisions(client))[0]
        assert (newest["source"], newest["forwards"]) == ("cache", 0)
        assert "asked for" not in (await client.request("midfill/why"))["sentence"]


async def test_what_was_fetched_ahead_is_not_shown_at_another_place() -> None:
    slow = {"after": "x = foo(", "fill": "a)", "drafts": [str(step) for step in range(1000)], "delay_ms": 10_000}
    async with server({"after": "x = ", "fill": "foo("}, slow, {"after": "foo(b", "fill": ", c)"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("x = ")
        assert texts(await client.inline(uri, 0, 4)) == ["foo("]
        client.change(uri, 2, ((0, 4), (0, 4), "foo("))
        await client.notification("midfill/status", lambda status: status["state"] == "busy")
        client.change(uri, 3, ((0, 8), (0, 8), "b"))
        assert texts(await client.inline(uri, 0, 9)) == [", c)"]


async def test_1_an_item_of_the_cache_is_not_applied_to_a_newer_version() -> None:
    """The change arrives right behind the question, which is answered from the cache in no time."""
    async with server({"fill": "foo"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("x = ")
        assert texts(await client.inline(uri, 0, 4)) == ["foo"]
        for version in range(2, 12):
            _, answer = client.ask(uri, 0, 4)
            client.change(uri, 2 * version, "y = ")
            items = result_of(await within(answer))["items"]
            assert items == [] or (await decisions(client))[0]["outcome"] == "shown"
            client.change(uri, 2 * version + 1, "x = ")
            assert texts(await client.inline(uri, 0, 4)) == ["foo"]


async def test_11_three_distinct_candidates_best_first() -> None:
    async with server({"fill": ["1", "2", "3", "4"]}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("x = ")
        items = await client.inline(uri, 0, 4, explicit=True)
        assert texts(items) == ["1", "2", "3"]
        assert all(item["range"] == {"start": position(0, 4), "end": position(0, 4)} for item in items)


async def test_6_cancelling_the_first_request_leaves_the_loading_alone() -> None:
    loading = {"error": {"code": "loading", "message": "the model is loading"}}
    slow = {"fill": "never", "drafts": [str(step) for step in range(1000)], "delay_ms": 10_000}
    async with server(slow, loading, {"fill": "1"}) as client:
        await client.initialize(initializationOptions=QUICK | {"drafts": True})
        uri = client.open("x = ")
        number, answer = client.ask(uri, 0, 4)
        await client.notification("midfill/draft")
        client.notify("$/cancelRequest", {"id": number})
        assert (await within(answer))["error"]["code"] == -32800
        assert await client.inline(uri, 0, 4) == []
        await client.notification("midfill/status", lambda status: status["state"] == "loading")
        assert texts(await client.inline(uri, 0, 4)) == ["1"]
        assert client.all("window/showMessage") == []
