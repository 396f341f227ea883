"""The table of languages: which language a document is in, and what is known about that language.

The rows are data (languages.toml). A grammar wheel is imported when it is first needed; one that is missing or does
not fit the installed tree-sitter makes the language plain text, never an error. Knows no documents.
"""

import fnmatch
import functools
import importlib
import importlib.resources
import logging
import posixpath
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import tree_sitter

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class StringRule:
    """One kind of string: `open` is a regex, `close` a literal, `interpolation` what opens code inside ("" if none).
    In a `raw` one a backslash is a backslash."""

    open: str
    close: str
    multiline: bool = False
    interpolation: str = ""
    raw: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ScopeHeader:
    """What a line looks like that opens a scope; `container`: a scope with members, such as a class."""

    pattern: re.Pattern[str]
    container: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    """A row of languages.toml, where the fields are explained. The defaults are those of plain text."""

    id: str
    language_ids: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    grammar: str = ""
    queries: tuple[str, ...] = ()
    block_style: Literal["indent", "braces", "words"] = "braces"
    indent_unit: str = "    "
    line_comment: str = ""
    block_comments: tuple[tuple[str, str], ...] = ()
    strings: tuple[StringRule, ...] = ()
    block_header: re.Pattern[str] | None = None
    finished: re.Pattern[str] | None = None
    scope_headers: tuple[ScopeHeader, ...] = ()
    import_calls: tuple[str, ...] = ()


PLAIN = Language(id="plaintext")


def _row(values: Mapping[str, Any]) -> Language:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    if fields.get("block_style", "braces") not in ("indent", "braces", "words"):
        raise ValueError(f"languages.toml: {fields['id']}: block_style must be indent, braces or words")
    fields["block_comments"] = tuple((opener, closer) for opener, closer in fields.get("block_comments", ()))
    fields["strings"] = tuple(StringRule(**rule) for rule in fields.get("strings", ()))
    fields["scope_headers"] = tuple(
        ScopeHeader(pattern=re.compile(rule["pattern"]), container=rule.get("container", False))
        for rule in fields.get("scope_headers", ())
    )
    for name in ("block_header", "finished"):
        if pattern := fields.get(name):
            fields[name] = re.compile(pattern, re.DOTALL)  # a logical line may span several
    return Language(**fields)


def load(toml: str) -> tuple[Language, ...]:
    """Reads a table of languages. A row with `like = "<id>"` inherits from that earlier row.

    Raises TypeError, KeyError or ValueError for a malformed table: it is part of the program.
    """
    rows: dict[str, dict[str, Any]] = {}
    for row in tomllib.loads(toml)["language"]:
        base = rows[row.pop("like")] if "like" in row else {}
        rows[row["id"]] = {**base, **row}
    return tuple(_row(row) for row in rows.values())


@functools.cache
def languages() -> tuple[Language, ...]:
    """All rows of languages.toml."""
    return load(importlib.resources.files(__package__).joinpath("languages.toml").read_text("utf-8"))


@functools.cache
def _by_id() -> dict[str, Language]:
    return {name: language for language in languages() for name in language.language_ids}


def language_for(language_id: str, path: str = "") -> Language:
    """The language of a document: by its LSP language id, else by its file name, else plain text."""
    if found := _by_id().get(language_id.lower()):
        return found
    name = posixpath.basename(path.replace("\\", "/"))
    for language in languages():
        if any(fnmatch.fnmatchcase(name, glob) for glob in language.globs):
            return language
    return PLAIN


@functools.cache
def grammar(language: Language) -> "tree_sitter.Language | None":
    """The tree-sitter grammar of a language, or None where there is none that works here."""
    if not language.grammar:
        return None
    package, _, function = language.grammar.partition(":")
    try:
        from tree_sitter import Language as Grammar

        return Grammar(getattr(importlib.import_module(package), function)())
    except (ImportError, AttributeError, TypeError, ValueError) as error:  # not installed, another release or ABI
        log.warning("no grammar for %s, it is treated as plain text: %s", language.id, error)
        return None


def query_source(language: Language) -> str:
    """The text of the language's context query."""
    folder = importlib.resources.files(__package__).joinpath("queries")
    return "\n".join(folder.joinpath(name, "context.scm").read_text("utf-8") for name in language.queries)
