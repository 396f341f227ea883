"""The chat layout in text, with "│" for the cursor; special ids are shown by their names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from diffusion.api import BadRequest, ContextItem, EditRequest, FillRequest
from diffusion.chat_layout import ChatPrompt, edit_prompt, fence_for, fill_prompt, pieces, prefix_window
from diffusion.profiles import ModelProfile
from diffusion.vocabulary import Vocabulary
from lsp_server.context.budget import Budget
from lsp_server.context.request import window
from tests.chat_models import SOURCES, TOKENS, small_profile, train_tokenizer

SIZE = 900


class Laid:
    """A tokenizer and its profile, and prompts as one reads them."""

    def __init__(self, folder: Path) -> None:
        train_tokenizer(SIZE, folder / "tokenizer.json")
        self.profile: ModelProfile = small_profile(folder, SIZE)
        self.texts = Vocabulary(folder / "tokenizer.json", self.profile.specials)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def fill(self, marked: str, **more) -> ChatPrompt:  # type: ignore[no-untyped-def]
        prefix, suffix = marked.split("│")
        request = FillRequest(
            id="1", prefix=prefix, suffix=suffix, **{"language": "python", "path": "p/app.py", **more}
        )
        return fill_prompt(request, self.texts, self.profile)

    def edit(self, before: str, selected: str, after: str, **more) -> ChatPrompt:  # type: ignore[no-untyped-def]
        asked = {"language": "python", "path": "p/app.py", "instruction": "Rename b.", **more}
        request = EditRequest(id="1", before=before, selected=selected, after=after, **asked)
        return edit_prompt(request, self.texts, self.profile)

    def shown(self, ids: tuple[int, ...]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Laid:
    return Laid(tmp_path_factory.mktemp("laid"))


def test_a_fill_reads_as_a_chat_in_which_the_model_is_writing_the_file(laid: Laid) -> None:
    item = ContextItem(kind="import", text="import re")
    prompt = laid.fill("import os\n\n\ndef f(a):\n    x = fo│)\n    return x\n\nf(1)\n", context=(item,))
    assert laid.shown(prompt.encoder) == (
        "<bos><|turn>system\nComplete it.<turn|>\n"
        "<|turn>user\nFile: p/app.py\nLanguage: python\n"
        "\nElsewhere (import):\n```\nimport re\n```\n"
        "\nWhat follows the gap, from the next line on:\n```python\n    return x\n\nf(1)\n\n```\n<turn|>\n"
        "<|turn>model\n<|channel>thought\n<channel|>```python\nimport os\n\n\ndef f(a):\n    x ="
    )
    assert prompt.healed.taken == " fo"
    assert laid.shown(prompt.suffix_ids) == ")\n    return x\n\nf(1)\n"


def test_an_edit_reads_as_a_chat_in_which_the_model_is_writing_the_part_anew(laid: Laid) -> None:
    prompt = laid.edit("a = 1\n", "    b = 2\n", "c = 3\n")
    assert laid.shown(prompt.encoder) == (
        "<bos><|turn>system\nEdit it.<turn|>\n"
        "<|turn>user\nFile: p/app.py\nLanguage: python\n"
        "\nWhat stands before the part:\n```python\na = 1\n\n```\n"
        "\nWhat follows the part:\n```python\nc = 3\n\n```\n"
        "\nThe part to change:\n```python\n    b = 2\n\n```\n"
        "What to change: Rename b.<turn|>\n"
        "<|turn>model\n<|channel>thought\n<channel|>```python\na = 1"
    )
    assert prompt.healed.taken == prompt.healed.forced == "\n"


def test_behind_the_file_s_end_the_model_s_turn_is_closed(laid: Laid) -> None:
    prompt = laid.fill("f(│)\n")
    end, eos = TOKENS["turn_end"], TOKENS["eos"]
    ids = prompt.after(12)
    assert laid.shown(ids[: ids.index(end) + 1]) == ")\n```<turn|>"
    assert set(ids[ids.index(end) + 1 :]) == {eos} and len(ids) == 12
    assert laid.shown(laid.fill("f(│)").after(12)).startswith(")\n```<turn|>")
    assert prompt.after(1) == prompt.suffix_ids[:1]
    assert laid.fill("f(│\n \n").open_end and not prompt.open_end


@pytest.mark.parametrize("name", ["<|turn>", "<turn|>", "<bos>", "<|channel>", "<eos>"])
def test_code_that_mentions_special_tokens_is_text(laid: Laid, name: str) -> None:
    marked = f"x = '{name}'\ny│\nz = '{name}'\n"
    prompt = laid.fill(marked, context=(ContextItem(kind="file", text=name),), path=name, language=name)
    plain = laid.fill("x│\nz\n")
    for special in range(len(TOKENS)):
        assert prompt.encoder.count(special) == plain.encoder.count(special)
        assert special not in prompt.suffix_ids
    assert name in laid.texts.decode(prompt.suffix_ids)


def test_text_with_fences_gets_a_longer_fence(laid: Laid) -> None:
    assert fence_for("a ``` b", "````") == "`````" and fence_for("`a` ``b``") == "```"
    prompt = laid.fill("```js\nx│\n```\n")
    assert "````python\n```js\n" in laid.shown(prompt.encoder) and prompt.fences
    assert not laid.fill("x│\n").fences


@settings(max_examples=40)
@given(st.data())
def test_the_prompt_stays_within_its_bounds(laid: Laid, data: st.DataObject) -> None:
    text = st.builds(
        lambda unit, times: unit * times,
        st.sampled_from(["x = 1\n", "\n", "a" * 30, "  ", "def f():\n    pass\n\n\n", "�é\n", "```\n", "\t"]),
        st.integers(0, 900),
    )
    context = tuple(ContextItem(kind="file", path="q.py", text=data.draw(text)) for _ in range(3))
    prompt = laid.fill(data.draw(text) + "│" + data.draw(text), context=context, path="a" * 500, language="b" * 300)
    assert len(prompt.encoder) <= laid.profile.layout.encoder
    assert len(prompt.after(64)) == 64
    before, after = data.draw(text), data.draw(text)
    edit = laid.edit(before, "x = 1\n" * data.draw(st.integers(0, 30)), after, context=context)
    assert len(edit.encoder) <= laid.profile.layout.encoder


def test_what_an_edit_cannot_show_whole_is_refused(laid: Laid) -> None:
    with pytest.raises(BadRequest, match="the selection is too long"):
        laid.edit("", "x = 1\n" * 2000, "")
    with pytest.raises(BadRequest, match="the instruction is too long"):
        laid.edit("", "x = 1\n", "", instruction="make it better " * 500)


def common(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


@pytest.mark.parametrize("roomy", [False, True])
def test_typing_encodes_a_few_ids_only(laid: Laid, roomy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets are closed by the editor, so that what is left of the line changes. Also where there is room for more
    text than the language server sends."""
    if roomy:
        assert laid.profile.chat is not None
        layout = replace(laid.profile.layout, encoder=12_000)
        wide = replace(laid.profile, layout=layout, chat=replace(laid.profile.chat, suffix=4000))
        monkeypatch.setattr(laid, "profile", wide)
    source = "\n".join(SOURCES)
    start = source.index("\n", 30_000)
    before: tuple[int, ...] = ()
    new = []
    for at in range(start, start + 400):
        line = source[source.rfind("\n", 0, at) : at]
        seen = window(source[:at] + ")" * ("(" in line) + source[start + 400 :], at, Budget())
        prompt = laid.fill(f"{seen.prefix}│{seen.suffix}")
        new.append(len(prompt.encoder) - common(before, prompt.encoder))
        before = prompt.encoder
    assert new[0] > 500 and sum(new[1:]) / len(new[1:]) < 3


@given(st.text(alphabet="ab \n\t", max_size=60))
def test_pieces_lose_nothing(text: str) -> None:
    assert "".join(pieces(text)) == text


def test_a_window_begins_with_a_line_and_a_line_too_long_is_cut(laid: Laid) -> None:
    text = "".join(f"value_{i} = {i}\n" for i in range(200)) + "last"
    window = laid.texts.decode(prefix_window(text, 300, laid.texts))
    assert text.endswith(window) and window.startswith("value_") and window.endswith("last")
    long = laid.texts.decode(prefix_window("x = [" + "1, " * 500, 100, laid.texts))
    assert 0 < len(laid.texts.encode(long)) <= 100
