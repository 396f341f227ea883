"""Framing: whatever the pieces in which bytes arrive, and however sloppy the headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.transport import MAX_BODY, Framer, FramingError


def frames(data: bytes) -> list[bytes]:
    return [frame for frame in Framer().feed(data) if isinstance(frame, bytes)]


@given(bodies=st.lists(st.binary(max_size=30), max_size=5), data=st.data())
def test_bodies_arrive_whole_whatever_the_pieces(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies)
    framer, found = Framer(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += list(framer.feed(stream[:size]))
        stream = stream[size:]
    assert found == bodies


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: 2\r\n\r\n",
        b"CONTENT-LENGTH:2\r\n\r\n",
        b"Content-Length :  2  \r\n\r\n",
        b"Content-Length: 2\n\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\nX-Other: 7\r\n\r\n",
        b"\r\n\r\nContent-Length: 2\r\n\r\n",
        b"stray textContent-Length: 2\r\n\r\n",
    ],
)
def test_sloppy_headers_are_understood(header: bytes) -> None:
    assert frames(header + b"{}" + header + b"[]") == [b"{}", b"[]"]


@pytest.mark.parametrize("length", [b"99999999999", b"-5", str(MAX_BODY + 1).encode(), b"9" * 5000])
def test_a_length_that_cannot_be_meant_is_reported_and_passed(length: bytes) -> None:
    found = list(Framer().feed(b"Content-Length: " + length + b"\r\n\r\n{}\r\nContent-Length: 2\r\n\r\n[]"))
    assert isinstance(found[0], FramingError)
    assert found[1:] == [b"[]"]


def test_endless_headers_are_not_kept() -> None:
    framer = Framer()
    for _ in range(100):
        assert list(framer.feed(b"x" * 10_000)) == []
    assert len(framer._buffer) < 30_000
    assert list(framer.feed(b"Content-Length: 2\r\n\r\n{}")) == [b"{}"]
