"""Which documents hold secrets: by name, by folder, by language id, by what stands in them.

Knows names and texts; no files on disk, no settings. Rather one file too many than one secret in a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

NAMES = (
    ".env*", "*.env", ".flaskenv", ".netrc", "_netrc", ".pgpass", ".htpasswd", ".git-credentials", ".npmrc", ".pypirc",
    ".dockercfg", ".dockerconfigjson", ".vault-token", ".my.cnf", ".s3cfg", "credentials", "credentials.*",
    "secret.*", "secrets", "secrets.json", "secrets.toml", "secrets.y*ml", "master.key", "shadow",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.*",
    "*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.jceks", "*.keystore", "*.keytab", "*.kdbx",
    "*.crt", "*.cer", "*.cert", "*.der", "*.csr", "*.p7b", "*.p7c", "*.gpg", "*.pgp", "*.asc", "*.ovpn", "*.age",
)  # fmt: skip
"""Names of files, in lower case."""
FOLDERS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", "gcloud")
"""Whatever lies somewhere below these."""
LANGUAGES = ("dotenv", "env", "pem")
"""Language ids: an untitled buffer has no other name."""

_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*(?:PRIVATE KEY|CERTIFICATE(?: REQUEST)?|PRIVATE KEY BLOCK)-----\s*(?:\\n)?"
    r"[\"'\s+]*(?:[A-Za-z0-9+/=]{40}|[A-Za-z-]+: )"
    r"|PuTTY-User-Key-File-\d: "
    r"|AGE-SECRET-KEY-1[A-Z0-9]{50}"
)
"""A key or certificate itself. A program that only names the header of one is no secret."""
_MARKS = ("-----BEGIN ", "PuTTY-User-Key-File-", "AGE-SECRET-KEY-1")
"""How a key begins: looked for first, since it costs next to nothing."""


def by_name(path: str) -> str:
    """Why a document at `path` (slashes) counts as secret, or ""."""
    *folders, name = path.lower().split("/")
    if folder := next((folder for folder in folders if folder in FOLDERS), ""):
        return f"it lies in a folder for secrets, {folder}"
    if glob := next((glob for glob in NAMES if fnmatchcase(name, glob)), ""):
        return f"its name says that it holds secrets ({glob})"
    return ""


def by_content(text: str, language: str = "") -> str:
    """Why a document with this text counts as secret, or ""."""
    if language.lower() in LANGUAGES:
        return f"its language says that it holds secrets ({language})"
    if any(_KEY.match(text, at) for mark in _MARKS for at in _places(text, mark)):
        return "it holds a key or a certificate"
    return ""


def may_begin(text: str) -> bool:
    """Whether something like the beginning of a key or certificate stands in a text."""
    return any(mark in text for mark in _MARKS)


def _places(text: str, mark: str) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + 1)
