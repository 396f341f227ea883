"""What midfill wants from the hub, and its errors as sentences. Knows huggingface_hub and no models."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import http_get
from huggingface_hub.utils._headers import build_hf_headers

from diffusion.api import EngineError

FAILURES: tuple[type[Exception], ...] = (OSError, RuntimeError, HFValidationError, *HfHubHTTPError.__bases__)
"""What a request may raise: also the errors of the hub's HTTP library, which is another one in each of its versions."""
AGAIN = "repeat `midfill model pull`: what has been fetched is kept, and it goes on from there"


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A file in a repository. `sha256` is known for large files only."""

    name: str
    size: int
    sha256: str


def files(repository: str, revision: str | None, wanted: re.Pattern[str]) -> tuple[str, list[Remote]]:
    """The commit that a revision (None: the newest) stands for, and its files of wanted names. Raises EngineError."""
    try:
        info = HfApi().model_info(repository, revision=revision, files_metadata=True)
    except FAILURES as error:
        raise _told(repository, error) from error
    found = [
        Remote(name=file.rfilename, size=file.size or 0, sha256=file.lfs.sha256 if file.lfs else "")
        for file in info.siblings or []
        if wanted.fullmatch(file.rfilename)
    ]
    return str(info.sha), found


def fetch(repository: str, commit: str, file: Remote, folder: Path) -> None:
    """Fetch one file into a folder, with a progress bar, or the rest of one that was begun. Raises EngineError.

    The hub's own function for that starts a file anew after a crash; here shards of gigabytes go on where they were.
    """
    partial = partly(commit, file, folder)
    try:
        with partial.open("ab") as opened:
            if opened.tell() > file.size:
                opened.truncate(0)
            http_get(
                hf_hub_url(repository, file.name, revision=commit), opened, resume_size=opened.tell(),
                headers=build_hf_headers(), expected_size=file.size, displayed_filename=file.name,
            )  # fmt: skip
        partial.replace(folder / file.name)
    except FAILURES as error:
        raise _told(f"{file.name} of {repository}", error) from error


def partly(commit: str, file: Remote, folder: Path) -> Path:
    """Where a file lies while it is not complete."""
    return folder / f"{file.name}.{commit[:12]}.partial"


def _told(what: str, error: Exception) -> EngineError:
    if isinstance(error, GatedRepoError):
        hint = "accept its licence on its page, then log in with `hf auth login` or set HF_TOKEN"
        return EngineError(f"access to {what} is restricted", hint)
    if isinstance(error, RepositoryNotFoundError | HFValidationError):
        return EngineError(f"there is no {what} on the hub", "is the name right? Private ones need HF_TOKEN")
    if isinstance(error, RevisionNotFoundError):
        return EngineError(f"{what} has no such revision", "leave out --revision for the newest")
    if isinstance(error, OfflineModeIsEnabled):
        return EngineError("the hub may not be asked: HF_HUB_OFFLINE is set", "unset it, or pull --from a folder")
    said = next(iter(str(error).splitlines()), "") or type(error).__name__
    return EngineError(f"{what} cannot be fetched: {said}", AGAIN)
