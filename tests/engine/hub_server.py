"""A hub on this machine: one repository, its files from a folder, in the forms of the real one's HTTP interface, with
connections that break in the middle of a file as often as a test wants. Knows no product code."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "someone/small"


@dataclass
class Hub:
    """`quota`: bytes of bodies until the line is cut, in the middle of a file, and stays so. `lies`: file -> bytes
    that are served for it. `asked`: (file, first byte) of every download; `sent`: bytes of bodies; `status`: of every
    answer, if not 200."""

    folder: Path
    url: str = ""
    quota: float = math.inf
    status: int = 200
    error: str = ""
    lies: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)
    sent: int = 0


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Hub]:
    hub = Hub(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

        def _answer(self) -> None:
            if hub.status != 200:
                return self._send(
                    hub.status, b"{}", {"X-Error-Code": hub.error, "X-Error-Message": "as the test wants"}
                )
            if re.match(f"/api/models/{REPOSITORY}(/revision/|$|\\?)", self.path):
                return self._send(200, json.dumps(self._listing()).encode(), {"Content-Type": "application/json"})
            match = re.match(f"/{REPOSITORY}/resolve/{COMMIT}/([^?]+)", self.path)
            if match and (hub.folder / match[1]).is_file():
                return self._send_file(match[1])
            return self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})

        def _listing(self) -> dict[str, Any]:
            files = []
            for path in sorted(hub.folder.iterdir()):
                entry: dict[str, Any] = {"rfilename": path.name, "size": path.stat().st_size, "blobId": "0" * 40}
                if path.suffix == ".safetensors":
                    entry["lfs"] = {"sha256": _sha(path), "size": path.stat().st_size, "pointerSize": 134}
                files.append(entry)
            return {"id": REPOSITORY, "modelId": REPOSITORY, "sha": COMMIT, "siblings": files}

        def _send_file(self, name: str) -> None:
            body = hub.lies.get(name, (hub.folder / name).read_bytes())
            total, start = len(body), 0
            if match := re.match(r"bytes=(\d+)-", self.headers.get("Range", "")):
                start = int(match[1])
                body = body[start:]
            if self.command == "GET":
                hub.asked.append((name, start))
            headers = {"ETag": f'"{_sha(hub.folder / name)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
            if start:
                headers["Content-Range"] = f"bytes {start}-{total - 1}/{total}"
            self._send(206 if start else 200, body, headers)

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            if len(body) > hub.quota - hub.sent:
                body = body[: max(0, int(hub.quota) - hub.sent)]
                self.close_connection = True
            self.wfile.write(body)
            hub.sent += len(body)

    return Handler


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
