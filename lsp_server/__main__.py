"""The command `midfill`: a table subcommand -> function, imported only when it is called.

Knows the names of the functions and nothing of what they do. Importing this module loads nothing heavy.
"""

from __future__ import annotations

# Only what the interpreter has loaded already: anything else could come from the working directory.
import importlib
import os
import sys

COMMANDS: dict[str, tuple[str, str]] = {
    "complete": ("lsp_server.commands.complete:main", "complete at FILE:LINE:COLUMN and print what the model writes"),
    "edit": ("lsp_server.commands.edit:main", "have lines of a file written anew, as an instruction says"),
    "demo": ("lsp_server.commands.demo:main", "watch masked spans in real source files denoise into code"),
    "lsp": ("lsp_server.server:main", "run the language server on standard input and output (editors start this)"),
    "engine": ("lsp_server.commands.engine:main", "start, stop or look at the process that holds the model"),
    "model": ("diffusion.model_command:main", "fetch, quantise, choose and remove models"),
    "settings": ("lsp_server.commands.settings:main", "what there is to set, and what your config.toml sets of it"),
    "why": ("lsp_server.commands.why:main", "why the last completion was shown, or why there was none"),
    "stats": ("lsp_server.commands.stats:main", "what was shown and accepted, by day and language"),
    "doctor": ("lsp_server.commands.doctor:main", "show what is installed, which device and model, where the log is"),
    "bench": ("lsp_server.commands.bench:main", "measure fills and completions on this machine"),
    "eval": ("lsp_server.commands.eval:main", "measure how good a model is, on public problems or your own files"),
    "train": ("diffusion.training.train:main", "train the embedded model"),
}

HELP = f"""\
usage: midfill COMMAND [ARGUMENTS]

midfill completes code in the middle: a text-diffusion model fills the span between what stands before the cursor
and what stands after it. Everything runs on this machine.

commands:
{chr(10).join(f"  {name:<10} {text}" for name, (_, text) in COMMANDS.items())}

first steps:
  midfill demo                       see it work
  midfill complete app.py:12:9       one completion: line 12, column 9, both counted from 1
  midfill doctor                     if something does not work

In an editor: let it start `midfill lsp` as a language server. `midfill COMMAND --help` explains a command.
"""


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand and return its exit code: 0 done, 1 failed, 2 called wrongly, 130 interrupted."""
    _forget_working_directory()
    _open_standard_streams()
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        # The reader went away (`midfill complete ... | head`), or the disk is full. Nothing more can be written there,
        # not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1 if isinstance(error, BrokenPipeError) else _fail(str(error), "", code=1)


def _run(arguments: list[str]) -> int:
    name = arguments[0] if arguments else ""
    if name in ("", "-h", "--help", "help"):
        print(HELP, end="")
        return 0 if name else 2
    if name in ("-V", "--version"):
        print(f"midfill {_version()}")
        return 0
    if name not in COMMANDS:
        return _fail(f"unknown command {name!r}", f"one of: {', '.join(COMMANDS)}", code=2)

    from diffusion.api import EngineError
    from lsp_server.usage import UsageError

    module, _, function = COMMANDS[name][0].partition(":")
    try:
        return int(getattr(importlib.import_module(module), function)(arguments[1:]))
    except UsageError as error:
        return _fail(error.message, error.hint, code=2)
    except EngineError as error:
        return _fail(error.message, error.hint, code=1)


def _fail(message: str, hint: str, *, code: int) -> int:
    line = f"midfill: {message}" + (f" ({hint})" if hint else "")
    # One line, whatever a file name holds: control characters are shown as their pictures.
    print(line.translate({code: 0x2400 + code for code in range(32)}), file=sys.stderr)
    return code


def _version() -> str:
    from importlib.metadata import version

    from diffusion.api import DISTRIBUTION

    return version(DISTRIBUTION)


def _forget_working_directory() -> None:
    """`python -m` puts the working directory first on the path: a workspace could then run code in our process."""
    try:
        here = os.path.realpath(".")
    except FileNotFoundError:  # It has been deleted: nothing can come from there.
        return
    if here != os.path.dirname(os.path.dirname(os.path.realpath(__file__))):  # noqa: PTH120  no pathlib yet
        sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != here]


def _open_standard_streams() -> None:
    """Whoever starts us may have closed some of them; what is opened next would take their place."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != fd:
                os.dup2(nowhere, fd)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(fd, "w" if fd else "r", closefd=False))


if __name__ == "__main__":
    sys.exit(main())
