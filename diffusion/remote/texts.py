"""Text to ids and back for a model that is served elsewhere: by a local tokenizer.json, or by the server itself.

The layout asks for one piece of text after the other and cannot wait for a server. So it is run until all pieces that
it asks for are known: the others are collected, fetched side by side and remembered. Between two keystrokes that is one
piece. Knows no layout.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from diffusion.remote.connection import Connection, nonsense
from diffusion.vocabulary import Vocabulary

REMEMBERED = 32_768
ROUNDS = 8
"""A layout that knows more sizes asks for other pieces; it settles in two or three rounds."""

T = TypeVar("T")


class Encodes(Protocol):
    """What a layout needs of a tokenizer."""

    def encode_line(self, line: str) -> Sequence[int]:
        """Ids of a piece of text with line ends LF."""
        ...


class Texts(Protocol):
    """Ids of a served model. Raises EngineError where the server has to be asked and fails."""

    async def laid_out(self, layout: Callable[[Encodes], T]) -> T:
        """What `layout` makes of a tokenizer."""
        ...

    async def text(self, ids: Sequence[int]) -> str:
        """The text of ids, none of which is special."""
        ...


class LocalTexts:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    async def laid_out(self, layout: Callable[[Encodes], T]) -> T:
        return layout(self._vocabulary)

    async def text(self, ids: Sequence[int]) -> str:
        return self._vocabulary.decode(ids)


class ServerTexts:
    """POST /tokenize and /detokenize, as vLLM has them. `is_text`: may this id stand for text?"""

    def __init__(self, connection: Connection, model: str, is_text: Callable[[int], bool]) -> None:
        self._connection, self._model, self._is_text = connection, model, is_text
        self._known: OrderedDict[str, tuple[int, ...]] = OrderedDict()
        self._side_by_side = asyncio.Semaphore(2 * connection.remote.parallel)

    async def laid_out(self, layout: Callable[[Encodes], T]) -> T:
        for _ in range(ROUNDS):
            asking = _Asking(self._known)
            result = layout(asking)
            if not asking.missing:
                break
            texts = list(asking.missing)
            self._known.update(zip(texts, await asyncio.gather(*map(self._ids, texts)), strict=True))
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return result

    async def text(self, ids: Sequence[int]) -> str:
        body = {"model": self._model, "tokens": list(ids)}
        answer = await self._connection.json("POST", "/detokenize", body) if ids else {"prompt": ""}
        if not isinstance(answer, dict) or not isinstance(answer.get("prompt"), str):
            raise nonsense(self._connection.remote)
        return str(answer["prompt"])

    async def _ids(self, text: str) -> tuple[int, ...]:
        async with self._side_by_side:
            ids = await self._tokenized(text)
            if all(map(self._is_text, ids)):
                return ids
            # Code that mentions <eos> is text like any other: no special token is left where all of them are cut open.
            parts = [await self._tokenized(part) for part in re.findall(r"[<\[]|[^<\[]+", text)]
        return tuple(i for part in parts for i in part if self._is_text(i))

    async def _tokenized(self, text: str) -> tuple[int, ...]:
        body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        return token_ids(self._connection, await self._connection.json("POST", "/tokenize", body), "tokens")


class _Asking:
    """A tokenizer of the pieces that are known. `missing`: the others, of which it guesses the number of ids."""

    def __init__(self, known: OrderedDict[str, tuple[int, ...]]) -> None:
        self._known = known
        self.missing: dict[str, None] = {}

    def encode_line(self, line: str) -> Sequence[int]:
        if line in self._known:
            self._known.move_to_end(line)
            return self._known[line]
        self.missing[line] = None
        return (0,) * (1 + len(line) // 4)


def token_ids(connection: Connection, answer: Any, key: str) -> tuple[int, ...]:
    """The list of ids under `key`. Raises EngineError where there is none."""
    ids = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(ids, list) or not all(type(i) is int for i in ids):
        raise nonsense(connection.remote)
    return tuple(ids)
