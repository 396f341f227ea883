"""Reported faults that are about time and state rather than text; the numbers are those of the list of cases."""

from __future__ import annotations

from typing import Any

import pytest

from .client import Client, position, result_of, server, within

QUICK = {"debounceMs": 0}
WATCHED = {"debounceMs": 0, "drafts": True}


def slow(**entry: Any) -> dict[str, Any]:
    """An answer that takes for ever, with a sign of life at every step."""
    return {"fill": "never", "drafts": [f"draft {step}" for step in range(10_000)], "delay_ms": 50_000} | entry


async def started(client: Client, **settings: Any) -> None:
    await client.initialize(initializationOptions=settings)


def texts(items: list[Any]) -> list[str]:
    return [item["insertText"] for item in items]


async def test_1_an_answer_for_another_place_is_discarded() -> None:
    async with server(slow(after="first = "), {"after": "second = ", "fill": "2"}) as client:
        await started(client, **WATCHED)
        uri = client.open("first = \nsecond = \n")
        _, first = client.ask(uri, 0, 8)
        await client.notification("midfill/draft")
        assert texts(await client.inline(uri, 1, 9)) == ["2"]
        assert result_of(await within(first)) == {"items": []}


async def test_1_an_answer_for_an_outdated_version_is_discarded() -> None:
    async with server({"fill": "1", "drafts": ["1"], "delay_ms": 100}) as client:
        await started(client, **WATCHED)
        uri = client.open("x = ")
        _, answer = client.ask(uri, 0, 4)
        await client.notification("midfill/draft")
        client.change(uri, 2, ((0, 0), (0, 0), "y = "))
        assert result_of(await within(answer)) == {"items": []}
        assert "changed" in (await client.request("midfill/why"))["decisions"][0]["reason"]


async def test_2_typing_what_is_offered_shortens_the_same_item() -> None:
    async with server({"fill": "foo(a, b)"}) as client:
        await started(client, **QUICK)
        uri = client.open("x = ")
        assert texts(await client.inline(uri, 0, 4)) == ["foo(a, b)"]
        for typed, char in enumerate("foo", start=1):
            client.change(uri, 1 + typed, ((0, 3 + typed), (0, 3 + typed), char))
            assert texts(await client.inline(uri, 0, 4 + typed)) == ["foo(a, b)"[typed:]]
        # The editor closes the bracket by itself: the item writes it too.
        client.change(uri, 9, ((0, 7), (0, 7), "()"))
        (item,) = await client.inline(uri, 0, 8)
        assert item["insertText"] == "a, b)"
        assert item["range"] == {"start": position(0, 8), "end": position(0, 9)}


async def test_3_fast_typing_runs_one_generation_and_the_newest_wins() -> None:
    text = "abcdefghijklmnopqrst"
    entries = [slow(after=text[:end]) for end in range(1, 20)] + [{"after": text, "fill": " done"}]
    async with server(*entries) as client:
        await started(client, **WATCHED)
        uri = client.open("")
        answers = []
        for end in range(1, 21):
            client.change(uri, end + 1, text[:end])
            answers.append(client.ask(uri, 0, end))
            if end == 10:
                await client.notification("midfill/draft")
        results = [result_of(await within(answer)) for _, answer in answers]
        assert results[:-1] == [{"items": []}] * 19
        assert texts(results[-1]["items"]) == [" done"]
        count = len(client.all("midfill/draft"))
        await client.request("midfill/why")
        assert len(client.all("midfill/draft")) == count
        assert client.all("window/showMessage") == []


async def test_3_a_cancelled_request_ends_within_a_step() -> None:
    async with server(slow()) as client:
        await started(client, **WATCHED)
        uri = client.open("x = ")
        number, answer = client.ask(uri, 0, 4)
        await client.notification("midfill/draft")
        client.notify("$/cancelRequest", {"id": number})
        assert (await within(answer))["error"]["code"] == -32800
        await client.notification("midfill/status", lambda status: status["state"] == "ready")
        count = len(client.all("midfill/draft"))
        assert "cancelled" in (await client.request("midfill/why"))["sentence"]
        assert len(client.all("midfill/draft")) == count


async def test_4_the_cache_takes_what_follows_into_account() -> None:
    ahead = {"after": "x = 1", "fill": ""}  # what is fetched after the accept
    async with server(ahead, {"fill": "1"}, {"fill": "2"}) as client:
        await started(client, **QUICK)
        uri = client.open("x = \ny = x\n")
        assert texts(await client.inline(uri, 0, 4)) == ["1"]
        client.change(uri, 2, ((0, 4), (0, 4), "1"))
        client.change(uri, 3, ((0, 4), (0, 5), ""))
        assert texts(await client.inline(uri, 0, 4)) == ["1"]
        client.change(uri, 4, ((1, 4), (1, 5), "z"))
        assert texts(await client.inline(uri, 0, 4)) == ["2"]


async def test_5_the_text_stays_the_clients_through_a_full_replacement() -> None:
    async with server(slow(after="old = "), {"after": "formatted = ", "fill": "1"}) as client:
        await started(client, **WATCHED)
        uri = client.open("old = ")
        _, first = client.ask(uri, 0, 6)
        await client.notification("midfill/draft")
        client.change(uri, 2, "# formatted\nform\n")
        client.change(uri, 3, ((1, 4), (1, 4), "atted"), ((1, 9), (1, 9), " = "))
        assert texts(await client.inline(uri, 1, 12)) == ["1"]
        assert result_of(await within(first)) == {"items": []}


async def test_6_a_model_that_is_loading_is_a_state_and_no_error() -> None:
    loading = {"error": {"code": "loading", "message": "the model is loading"}}
    async with server(loading, {"fill": "1"}) as client:
        await started(client, **QUICK)
        uri = client.open("x = ")
        assert await client.inline(uri, 0, 4) == []
        await client.notification("midfill/status", lambda status: status["state"] == "loading")
        assert client.all("window/showMessage") == []
        assert texts(await client.inline(uri, 0, 4)) == ["1"]
        assert client.all("midfill/status")[-1]["state"] == "ready"


async def test_7_after_a_word_was_accepted_the_rest_of_the_item_comes_back() -> None:
    async with server({"fill": '"hi", name)'}) as client:
        await started(client, **QUICK)
        uri = client.open("print() # tail")
        (item,) = await client.inline(uri, 0, 6)
        assert item == {"insertText": '"hi", name)', "range": {"start": position(0, 6), "end": position(0, 7)}}
        client.change(uri, 2, ((0, 6), (0, 6), '"hi",'))
        (item,) = await client.inline(uri, 0, 11)
        assert item == {"insertText": " name)", "range": {"start": position(0, 11), "end": position(0, 12)}}


async def test_7_also_when_the_item_rewrites_the_indentation() -> None:
    async with server({"fill": "else:\n        x = 2"}) as client:
        await started(client, **QUICK)
        uri = client.open("if a:\n    x = 1\n    \ny = 2\n")
        (item,) = await client.inline(uri, 2, 4)
        assert item == {"insertText": "else:\n    x = 2", "range": {"start": position(2, 0), "end": position(2, 4)}}
        client.change(uri, 2, ((2, 0), (2, 4), "else:"))
        assert texts(await client.inline(uri, 2, 5)) == ["\n    x = 2"]


async def test_8_the_item_continues_what_is_selected_in_the_menu() -> None:
    async with server({"after": "x.format", "fill": "(a)"}, {"after": "x.fo", "fill": "never"}) as client:
        await started(client, **QUICK)
        uri = client.open("x.fo")
        span = {"start": position(0, 2), "end": position(0, 4)}
        (item,) = await client.inline(uri, 0, 4, selected={"range": span, "text": "format"})
        assert item == {"insertText": "format(a)", "range": span}
        assert await client.inline(uri, 0, 4, selected={"range": span, "text": "fold"}) == []


async def test_9_why_nothing_is_offered() -> None:
    script = ({"fill": "a", "confidence": 0.01}, {"fill": "   "}, {"none": True}, {"error": "out of memory"})
    async with server(*script) as client:
        await started(client, **QUICK)
        uri = client.open("x = ")
        said = []
        for _ in script:
            assert await client.inline(uri, 0, 4) == []
            said.append((await client.request("midfill/why", {"textDocument": {"uri": uri}}))["sentence"])
        prose = client.open("text ", uri="untitled:notes", language="plaintext")
        assert await client.inline(prose, 0, 5) == []
        why = await client.request("midfill/why", {"textDocument": {"uri": prose}})
        for sentence, reason in zip(
            [*said, why["sentence"]],
            ["low confidence: 0.01", "white space", "nothing to say", "out of memory", "switched off while typing"],
            strict=True,
        ):
            assert reason in sentence
        assert len(why["decisions"]) == 1
        assert len((await client.request("midfill/why"))["decisions"]) == 5
        result = await client.request("workspace/executeCommand", {"command": "midfill.why"})
        assert result == why["sentence"]
        assert "text" not in {key for decision in why["decisions"] for key in decision}


async def test_10_an_error_is_told_once_and_the_next_request_works() -> None:
    broken = {"error": {"code": "model", "message": "out of memory", "hint": "close something"}}
    async with server(broken, broken, {"fill": "1"}) as client:
        await started(client, **QUICK)
        uri = client.open("x = ")
        assert await client.inline(uri, 0, 4) == []
        assert await client.inline(uri, 0, 4) == []
        assert texts(await client.inline(uri, 0, 4)) == ["1"]
        (shown,) = client.all("window/showMessage")
        assert "out of memory" in shown["message"]
        assert "close something" in shown["message"]
        assert client.all("midfill/status")[-1]["state"] == "ready"


async def test_10_what_is_too_long_for_a_line_is_shown_in_short_and_logged_in_full() -> None:
    broken = {"error": {"code": "unavailable", "message": "the engine has ended", "hint": "the log is " + "a/" * 40}}
    async with server(broken) as client:
        await started(client, **QUICK)
        assert await client.inline(client.open("x = "), 0, 4) == []
        (shown,) = client.all("window/showMessage")
        assert shown["message"] == "midfill: the engine has ended"
        assert any("a/a/a/" in logged["message"] for logged in client.all("window/logMessage"))
        assert "a/a/a/" in (await client.request("midfill/why"))["sentence"]


async def test_11_an_explicit_request_offers_several_and_bypasses_the_gates() -> None:
    many = {"fill": ["1", "2", "1", "3"], "confidence": 0.01}
    async with server(many, many) as client:
        await client.initialize(initializationOptions={"debounceMs": 5000, "disabledLanguages": ["python"]})
        uri = client.open("x = ")
        assert texts(await client.inline(uri, 0, 4, explicit=True)) == ["1", "2"]
        assert await client.inline(uri, 0, 3) == []


async def test_11_an_explicit_request_is_answered_in_plain_text_too() -> None:
    async with server({"fill": "world"}) as client:
        await started(client)
        uri = client.open("hello ", uri="untitled:Untitled-1", language="plaintext")
        assert texts(await client.inline(uri, 0, 6, explicit=True)) == ["world"]


@pytest.mark.parametrize("pushed", [True, False])
async def test_12_a_changed_setting_takes_effect_at_once(pushed: bool) -> None:
    async with server({"fill": "1"}, {"fill": "2"}) as client:
        client.configuration = QUICK
        await client.initialize(
            capabilities={} if pushed else {"workspace": {"configuration": True}}, initializationOptions=QUICK
        )

        async def configure(**settings: Any) -> None:
            client.configuration = settings
            sent = {"midfill": settings} if pushed else None
            client.notify("workspace/didChangeConfiguration", {"settings": sent})
            ((name, value),) = settings.items()
            await client.notification("window/logMessage", lambda log: f"{name} = {value}" in log["message"])

        uri = client.open("x = ")
        assert texts(await client.inline(uri, 0, 4)) == ["1"]
        await configure(enabled=False)
        assert await client.inline(uri, 0, 4) == []
        assert "switched off" in (await client.request("midfill/why"))["sentence"]
        await configure(enabled=True)
        assert texts(await client.inline(uri, 0, 4)) == ["2"]


async def test_12_a_bad_setting_is_named_once() -> None:
    async with server({"fill": "1"}) as client:
        await started(client, debounceMs="fast", maxLines=3)
        (shown,) = client.all("window/showMessage")
        assert "debounceMs" in shown["message"]
        client.notify("workspace/didChangeConfiguration", {"settings": {"midfill": {"debounceMs": "fast"}}})
        uri = client.open("x = ")
        assert texts(await client.inline(uri, 0, 4)) == ["1"]
        assert len(client.all("window/showMessage")) == 1


async def test_drafts_come_only_when_asked_for_and_name_their_request() -> None:
    entry = {"fill": "ab", "drafts": ["a", "ab"]}
    async with server(entry, entry) as client:
        await started(client, debounceMs=0)
        uri = client.open("x = ")
        await client.inline(uri, 0, 4)
        assert client.all("midfill/draft") == []
        client.notify("workspace/didChangeConfiguration", {"settings": {"midfill": {"drafts": True}}})
        number, answer = client.ask(uri, 0, 4)
        await within(answer)
        assert client.all("midfill/draft") == [{"id": str(number), "text": text} for text in ("a", "ab")]
