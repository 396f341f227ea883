"""Exact match of an engine on cuts whose true middle is known: held-out packages, and HumanEval-Infilling.

    python -m diffusion.training.evaluate --data HumanEval-SingleLineInfilling.jsonl.gz
    python -m diffusion.training.evaluate --heldout CORPUS --limit 300

Goes through the engine as every client does. Knows nothing of how it fills.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from diffusion.api import EngineError, FillRequest, Result
from diffusion.engine import ResidentEngine, load
from diffusion.training.dataset import MIX, Corpus
from diffusion.training.examples import rest_of_line


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A place in a file and what stood there. The middle of a single line, without its line end."""

    language: str
    path: str
    prefix: str
    middle: str
    suffix: str


@dataclass(frozen=True, kw_only=True)
class Score:
    """`exact_match` in percent, forwards and milliseconds as means per fill."""

    n: int
    exact_match: float
    forwards: float
    ms: float


def human_eval_infilling(path: Path) -> Iterator[Cut]:
    """The problems of a HumanEval-Infilling file (Bavarian et al. 2022): a line is missing between prompt and suffix.

    The file's middles end in a newline; an editor shows an empty line there, so the newline stays in the suffix.
    """
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            problem = json.loads(line)
            middle = problem["canonical_solution"]
            newline = "\n" if middle.endswith("\n") else ""
            yield Cut(
                language="python",
                path="solution.py",
                prefix=problem["prompt"],
                middle=middle.removesuffix("\n"),
                suffix=newline + problem["suffix"],
            )


def heldout(corpus: Path, count: int, seed: int = 0) -> Iterator[Cut]:
    """`count` rest-of-line cuts in held-out files, the languages in turn, the same ones for the same seed."""
    split, rng = Corpus(corpus, "heldout"), random.Random(seed)
    for index in range(count):
        language = list(MIX)[index % len(MIX)]
        while True:
            source = split.draw(rng, language)
            span = rest_of_line(source.text, rng)
            if span and source.text[span.start : span.end].strip():
                break
        yield Cut(
            language=language,
            path=source.path,
            prefix=source.text[: span.start][-8000:],
            middle=source.text[span.start : span.end],
            suffix=source.text[span.end :][:4000],
        )


def evaluate(engine: ResidentEngine, cuts: Iterable[Cut], oracle_length: bool = False) -> Score:
    """Fill every cut once, greedily, one candidate, no deadline. Middles are compared without trailing blanks."""
    hits: list[bool] = []
    forwards: list[int] = []
    times: list[float] = []
    for index, cut in enumerate(cuts):
        request = FillRequest(
            id=str(index),
            language=cut.language,
            path=cut.path,
            prefix=cut.prefix,
            suffix=cut.suffix,
            length_of=cut.middle if oracle_length else None,
        )
        (result,) = (event for event in engine.fill(request) if isinstance(event, Result))
        text = cut.prefix
        if result.candidates:
            best = result.candidates[0]
            text = cut.prefix[: len(cut.prefix) - best.replace_before] + best.text
        hits.append(text.rstrip() == (cut.prefix + cut.middle).rstrip())
        forwards.append(result.cost.forwards)
        times.append(result.cost.ms)
    if not hits:
        raise EngineError("nothing to evaluate", "the file or folder holds no cuts")
    return Score(
        n=len(hits),
        exact_match=100 * statistics.mean(hits),
        forwards=statistics.mean(forwards),
        ms=statistics.mean(times),
    )


def main(argv: list[str]) -> int:
    """The command line above. Prints one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m diffusion.training.evaluate", description=__doc__.split("\n")[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, help="a HumanEval-Infilling file, .jsonl.gz")
    source.add_argument("--heldout", type=Path, metavar="CORPUS", help="folder of the training corpus")
    parser.add_argument("--profile", default="embedded", help="model profile (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=10_000, help="cuts at most")
    parser.add_argument("--oracle-length", action="store_true", help="tell the model how long the middle is")
    options = parser.parse_args(argv)
    cuts = human_eval_infilling(options.data) if options.data else heldout(options.heldout, options.limit)
    score = evaluate(load(options.profile), islice(cuts, options.limit), options.oracle_length)
    print(json.dumps(vars(score)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
