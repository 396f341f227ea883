"""What a profile says of a server: the table [remote] of its TOML file, checked, and the key for it.

    name = "team"
    title = "DiffusionGemma on our vLLM server"
    backend = "vllm"                  # or "openai"
    like = "diffusiongemma-26b-a4b-it"  # vllm only, this is the default: the profile of the served model

    [remote]
    url = "https://llm.example.com"   # or the environment variable that `url_env` names, which comes first
    model = ""                        # or `model_env`; empty: the only one that is served
    form = "completions"              # openai only: completions | infill (llama.cpp) | ollama | chat

Every other field is optional: see `Remote`. Opens no connection. No torch.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import SplitResult, urlsplit

import platformdirs

from diffusion.api import DISTRIBUTION, EngineError
from diffusion.profiles import Backend, backend_of, profile_file, read_toml

Form = Literal["completions", "infill", "ollama", "chat"]

LIKE = "diffusiongemma-26b-a4b-it"


@dataclass(frozen=True, kw_only=True)
class Remote:
    """One server. Times in seconds. `file`: where all this is written, for messages.

    `path` replaces the route of the form ("/v1/fim/completions"). `api_key_env` names an environment variable,
    `keyring` a service in the system's keyring (user name "midfill"). `ca_file`: certificates to trust instead of the
    system's. `timeout` bounds a whole answer, `connect_timeout` a connection, `retries` further attempts after a lost
    connection, 5xx or 429. `parallel` requests are under way at most. `max_tokens`: 0 leaves it to the request.
    `tokenizer`: a local tokenizer.json (vllm only; without it the server is asked for ids). `canvas`: positions that
    the server's canvas has, 0: it is asked.
    """

    name: str
    title: str
    backend: Backend
    file: Path
    url: str
    like: str = LIKE
    model: str = ""
    form: Form = "completions"
    path: str = ""
    api_key_env: str = ""
    keyring: str = ""
    ca_file: Path | None = None
    connect_timeout: float = 3.0
    timeout: float = 20.0
    retries: int = 2
    parallel: int = 4
    temperature: float = 0.0
    max_tokens: int = 0
    tokenizer: Path | None = None
    canvas: int = 0
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def where(self) -> str:
        """Where a user changes this: a profile of the package is copied first."""
        own = platformdirs.user_config_path(DISTRIBUTION) / "profiles"
        return str(self.file) if self.file.parent == own else f"a copy of {self.file} in {own}"

    @property
    def loopback(self) -> bool:
        """Is the server on this machine?"""
        return urlsplit(self.url).hostname in ("localhost", "127.0.0.1", "::1")


RANGES: dict[str, tuple[float, float]] = {
    "connect_timeout": (0.1, 60), "timeout": (0.1, 600), "retries": (0, 10), "parallel": (1, 64),
    "temperature": (0, 2), "max_tokens": (0, 4096), "canvas": (0, 4096),
}  # fmt: skip
_FIXED = ("name", "title", "backend", "file", "like", "url", "model")
_PATHS = ("ca_file", "tokenizer")


def load_remote(name: str) -> Remote:
    """The server that the profile called `name` names. Raises EngineError with the file and what is wrong in it."""
    file = profile_file(name)
    data = read_toml(file)
    table = data.get("remote")
    if not isinstance(table, dict):
        raise _wrong(file, "it has no table [remote]", "write the server's `url` into one")
    fields = {field.name: field for field in dataclasses.fields(Remote) if field.name not in _FIXED}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key in ("url", "url_env", "model", "model_env"):
            continue
        if key not in fields:
            raise _wrong(file, f"`{key}` means nothing in [remote]", f"the fields are {', '.join(sorted(fields))}")
        values[key] = _checked(file, key, value, {} if key == "extra" else fields[key].default)
    for key in ("title", "like"):
        if not isinstance(data.get(key, ""), str):
            raise _wrong(file, f"`{key}` must be a text", "put quotes around it")
    return Remote(
        name=name,
        title=data.get("title", name),
        backend=backend_of(name),
        file=file,
        like=data.get("like", LIKE),
        url=_url(file, _said(file, table, "url")),
        model=_said(file, table, "model"),
        **values,
    )


def api_key(remote: Remote) -> str:
    """The key for the server, "" if the profile names none. Raises EngineError if it cannot be had."""
    if remote.api_key_env:
        if key := os.environ.get(remote.api_key_env, "").strip():
            return _sendable(remote, key)
        message = f"the environment variable {remote.api_key_env} with the key for {remote.url} is not set"
        raise EngineError(message, f"set it where the editor is started, or use `keyring` in {remote.where}", "model")
    return _sendable(remote, _from_keyring(remote)) if remote.keyring else ""


def _from_keyring(remote: Remote) -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        hint = f"install it: pipx inject {DISTRIBUTION} keyring, or use `api_key_env` in {remote.where}"
        raise EngineError("the keyring cannot be used: the package keyring is missing", hint, "model") from None
    try:
        key = keyring.get_password(remote.keyring, DISTRIBUTION)
    except KeyringError as error:
        hint = f"unlock it, or use `api_key_env` in {remote.where}"
        raise EngineError(f"the keyring cannot be read ({type(error).__name__})", hint, "model") from None
    if not key:
        hint = f"store it: keyring set {remote.keyring} {DISTRIBUTION}"
        raise EngineError(f"the keyring holds no key for {remote.keyring!r}", hint, "model")
    return key.strip()


def _sendable(remote: Remote, key: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise EngineError(
            f"the key for {remote.url} is no key: it holds blanks or other odd characters", "copy it anew", "model"
        )
    return key


def _said(file: Path, table: dict[str, Any], key: str) -> str:
    """A text that an environment variable may say instead: the one that `KEY_env` names."""
    variable, value = table.get(f"{key}_env", ""), table.get(key, "")
    if not isinstance(variable, str) or not isinstance(value, str):
        raise _wrong(file, f"`{key}` and `{key}_env` must be texts", "put quotes around them")
    return (os.environ.get(variable, "") if variable else "").strip() or value


def _url(file: Path, url: str) -> str:
    """The base address without a slash at its end; "/v1" at the end is dropped, since routes begin with it."""
    if not url:
        hint = "set the environment variable that its `url_env` names, or write `url` into a copy of it of your own"
        raise EngineError(f"the model profile {file} needs the address of a server", hint, "model")
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise EngineError(f"{url!r} is no address of a server", "write it as https://host:port", "model")
    return url.rstrip("/").removesuffix("/v1")


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for one that is no number
        return parts
    except ValueError:
        return None


def _checked(file: Path, key: str, value: Any, default: Any) -> Any:
    if key in _PATHS:
        return _file(file, key, value)
    kind = type(default)
    if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
        wanted = {str: "a text", int: "a whole number", float: "a number", dict: "a table"}[kind]
        raise _wrong(file, f"`{key}` must be {wanted}", f"for example {key} = {default!r}")
    if key in RANGES and not RANGES[key][0] <= value <= RANGES[key][1]:
        low, high = RANGES[key]
        raise _wrong(file, f"`{key}` must lie between {low:g} and {high:g}", f"it is {value}")
    if key == "form" and value not in get_args(Form):
        raise _wrong(file, f"`form` must be one of {', '.join(get_args(Form))}", f"it is {value!r}")
    return cast(Any, kind(value))


def _file(file: Path, key: str, value: Any) -> Path | None:
    """A path, relative to the profile's file; "" is none."""
    if not isinstance(value, str):
        raise _wrong(file, f"`{key}` must be a path", "put quotes around it")
    if not value:
        return None
    path = (file.parent / Path(value).expanduser()).resolve()
    if not path.is_file():
        raise _wrong(file, f"`{key}` names {path}, which is no file", "correct the path")
    return path


def _wrong(file: Path, message: str, hint: str) -> EngineError:
    return EngineError(f"the model profile {file}: {message}", hint, "model")
