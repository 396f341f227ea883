"""The native layout, in text with a cursor mark."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from diffusion.api import ContextItem, FillRequest
from diffusion.layouts import Prompt, context_text, native, window_start
from diffusion.vocabulary import normalise

from .conftest import TEXTS, Tiny


def lay_out(tiny: Tiny, marked: str, **more) -> Prompt:  # type: ignore[no-untyped-def]
    prefix, suffix = marked.split("│")
    return native(
        FillRequest(id="1", prefix=prefix, suffix=suffix, **{"language": "python", **more}),
        tiny.vocabulary,
        tiny.profile,
    )


def text_of(tiny: Tiny, ids: tuple[int, ...]) -> str:
    return tiny.vocabulary.decode(ids)


def test_blanks_before_the_cursor_are_held_back_with_their_newline(tiny: Tiny) -> None:
    for marked, held_back, encoded in (
        ("if a:\n    x = 1\n    │\ny = 2\n", "\n    ", "if a:\n    x = 1"),
        ("if a:\n│\n", "\n", "if a:"),
        ("x =  │\n", "", "x =  "),
        ("    │", "    ", ""),
        ("│", "", ""),
        ("a\r\n\t│\r\nb", "\n\t", "a"),
    ):
        prompt = lay_out(tiny, marked)
        assert (prompt.held_back, text_of(tiny, prompt.encoder)) == (held_back, encoded)
        assert prompt.starts_line == held_back.startswith("\n") and not prompt.forced


def test_a_token_that_may_go_on_is_not_encoded_and_has_to_be_written(tiny: Tiny) -> None:
    for marked, forced, encoded in (
        ("x = ba│r\n", " ba", "x ="),
        ("x = │\n", " ", "x ="),
        ("f(│\n", "(", "f"),
        ("if a:\n    b12│\n", "b12", "if a:\n    "),
        ("/**\n *│\n", "*", "/**\n "),  # one blank of indentation belongs to the newline
        ("x│", "x", ""),
    ):
        prompt = lay_out(tiny, marked)
        assert (prompt.forced, prompt.held_back, text_of(tiny, prompt.encoder)) == (forced, forced, encoded)
        assert text_of(tiny, prompt.typed) == forced
        assert text_of(tiny, prompt.before) == encoded


def test_what_no_ids_can_spell_stays_in_the_prefix(tiny: Tiny) -> None:
    request = FillRequest(id="1", prefix="x = été", suffix="\n", language="python")
    prompt = native(request, tiny.vocabulary, tiny.profile, can_spell=str.isascii)
    assert (prompt.forced, prompt.held_back, text_of(tiny, prompt.encoder)) == ("", "", "x = été")


def test_the_head_says_language_and_whether_the_window_starts_the_file(tiny: Tiny) -> None:
    tokens, languages = tiny.profile.tokens, tiny.profile.languages
    assert lay_out(tiny, "x│").encoder[:3] == (tokens["bos"], languages["python"], tokens["file"])
    assert lay_out(tiny, "x│", language="cobol").encoder[1] == languages["plaintext"]
    assert lay_out(tiny, "x│", language="typescriptreact").encoder[1] == languages["typescript"]
    long = "\n".join(f"line_{i} = {i}" for i in range(2000))
    assert tokens["window"] in lay_out(tiny, long + "│").encoder


def test_context_stands_before_the_window_without_what_the_window_shows(tiny: Tiny) -> None:
    items = (ContextItem(kind="import", text="import os"), ContextItem(kind="import", text="import re"))
    prompt = lay_out(tiny, "import os\nx│", path="one/two/three.py", context=items)
    shown = text_of(tiny, prompt.encoder) + prompt.forced
    assert shown == context_text("one/two/three.py", ["import re"]) + "import os\nx"
    assert context_text("one/two/three.py", []) == "two/three.py"


def test_the_suffix_head_ends_with_the_end_of_the_file(tiny: Tiny) -> None:
    eof = tiny.profile.tokens["eof"]
    assert lay_out(tiny, "x = │").pins == (eof,)
    prompt = lay_out(tiny, "x = │\r\ny = 2\r\n")
    assert prompt.pins[-1] == eof and text_of(tiny, prompt.pins) == "\ny = 2\n"
    long = lay_out(tiny, "x = │" + TEXTS[1]).pins
    assert len(long) == tiny.profile.layout.pins and eof not in long


@given(before=st.text(max_size=400), after=st.text(max_size=400), path=st.text(max_size=40))
def test_any_text_fits(tiny: Tiny, before: str, after: str, path: str) -> None:
    before, after, path = (t.encode("utf-8", "replace").decode() for t in (before, after, path))
    request = FillRequest(id="1", prefix=before * 9, suffix=after, path=path)
    prompt = native(request, tiny.vocabulary, tiny.profile)
    assert 3 <= len(prompt.encoder) <= tiny.profile.layout.encoder
    assert len(prompt.pins) <= tiny.profile.layout.pins
    assert normalise(before * 9).endswith(prompt.held_back)


@given(st.lists(st.integers(1, 200), min_size=1, max_size=200))
def test_the_window_fits_and_moves_seldom(sizes: list[int]) -> None:
    starts = [window_start(sizes[: n + 1], 300) for n in range(len(sizes))]
    assert starts == sorted(starts)
    for n, start in enumerate(starts):
        fits = sum(sizes[start : n + 1]) <= 300
        # Only lines longer than a third of the window make it overflow; their ids are cut later.
        assert fits or max(sizes[start : n + 1]) > 100
    if max(sizes) <= 50:
        moves = sum(a != b for a, b in pairwise(starts))
        assert moves <= sum(sizes) / 50


def test_one_endless_line_keeps_a_steady_window(tiny: Tiny) -> None:
    line = "x = [" + ", ".join(map(str, range(3000)))
    first, second = lay_out(tiny, line + "│").encoder, lay_out(tiny, line + ", 5│").encoder
    assert second[: len(first)] == first
