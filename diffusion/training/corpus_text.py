"""What of a source file is worth learning from: filters, near-duplicates and benchmark overlap. Pure functions of text.

Knows nothing of packages, archives or folders; `corpus.py` calls it in order and does the counting.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

EXTENSIONS = {
    ".py": "python",
    ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
    ".ts": "typescript", ".tsx": "typescript", ".mts": "typescript", ".cts": "typescript",
}  # fmt: skip
MIN_CHARACTERS, MAX_CHARACTERS = 200, 200_000
MAX_MEAN_LINE, MAX_LINE = 110, 1000

# Copies of other people's code (whose licence the package's metadata does not state), and tables of data.
SKIPPED_FOLDERS = frozenset(
    {"_vendor", "vendor", "vendors", "vendored", "_vendored", "third_party", "thirdparty", "third-party", "3rdparty"}
    | {"_third_party", "node_modules", "bower_components", "extern", "externals", "external", "bundled"}
    | {"locale", "locales", "generated", "__generated__", "_generated", "gen", "i18n", "__snapshots__", "__pycache__"}
)
# What bundlers and compilers write into a JavaScript package next to its sources.
BUILD_FOLDERS = frozenset(
    {"dist", "build", "umd", "cjs", "amd", "bundle", "bundles", "min", "es5", "commonjs", "_esm", "_cjs", "coverage"}
)

# Declarations, minified files and bundles, protocol buffers, shaders wrapped in a string.
_SKIPPED_NAME = re.compile(
    r"\.d\.[cm]?ts$|[.-]min\.\w+$|\.bundle\.\w+$|_pb2(?:_grpc)?\.py$|[.-](?:glsl|wgsl|frag|vert)\.[jt]s$"
)

_COPYLEFT = re.compile(
    r"GNU\s+(?:\w+\s+){0,2}General\s+Public|\b[AL]?GPL(?:[-\s]?v?[23]|\b)|Mozilla\s+Public\s+Licen[cs]e"
    r"|\bMPL[- /]?[12]\b|CC[- ]BY[- ](?:SA|NC)"
    r"|Server Side Public|Business Source Licen[cs]e|\bBUSL\b|Elastic Licen[cs]e|Commons Clause"
    r"|Eclipse Public Licen[cs]e|\bEPL-[12]|\bCDDL\b"
)
_GENERATED = re.compile(
    r"do\s+not\s+(?:edit|modify)\b|@generated\b|\bauto[- ]?(?:matically[- ])?(?:generated|rebuilt)\b"
    r"|\b(?:file|code|module|class|script) (?:is|was|has been) generated\b|^\W{0,12}generated (?:by|from|with|using)\b"
    r"|\bfile generated\b|\bgenerated file\b|@nolint\b",
    re.IGNORECASE,
)
_COMMENT_LINE = re.compile(r"^\s*(?:#|//|/?\*|<!--|\"\"\"|''')")
_TRANSPILED = re.compile(
    r"__esModule|_interopRequire|[#@]\s*sourceMappingURL|\b__awaiter\b|\b__decorate\b|\b__generator\b|__webpack_|/\*{6,}/"
    r"|\b_classCallCheck\b|\b_createClass\b|\b_objectSpread\b|\b__publicField\b|\b__toESM\b|\b__commonJS\b|@babel/runtime"
    r"|\bregeneratorRuntime\b|from ['\"]tslib['\"]|require\(['\"]tslib['\"]\)|\b__rest\(|\b__spreadArray\b|__esDecorate"
    r"|\$RefreshReg\$|\bvar __extends\b|\b_inheritsLoose\b|\b__privateGet\b|\bvar _excluded = \[|\b_jsxs?\("
)
_FLOW = re.compile(r"^\s*(?:/\*|//|\*).*@flow\b", re.MULTILINE)
_PYTHON_2 = re.compile(
    r"^[ \t]*(?:print[ \t]+[\"'\w%]|exec[ \t]+[\"']|except[ \t]+[\w.]+[ \t]*,[ \t]*\w+[ \t]*:|raise[ \t]+\w+,)",
    re.MULTILINE,
)
_LITERAL_LINE = re.compile(
    r"(?:[-+\d.,:;(){}\[\] \t]|\b(?:None|True|False|null|true|false)\b|0x[0-9a-fA-F]+|\d[eE]"
    r"|[ub]?\"[^\"]*\"|[ub]?'[^']*')+"
)
_LITERAL_START = frozenset("-+0123456789.,:;(){}[]NTFntfub\"'")
_IMPORTS = ("import ", "from ", "export * ", "export {", "export type {")
_JSDOC_TYPES = re.compile(r"@(?:param|type|returns?|typedef|property|this|template)\s*\{|@import\b")


def skipped_path(path: str) -> bool:
    """Whether a file's path inside its package already says that it is not to be read."""
    *folders, name = path.lower().split("/")
    extension = name[name.rfind(".") :] if "." in name else ""
    if extension not in EXTENSIONS or _SKIPPED_NAME.search(name):
        return True
    built = EXTENSIONS[extension] == "javascript" and any(folder in BUILD_FOLDERS for folder in folders)
    return built or any(folder in SKIPPED_FOLDERS or folder.startswith("lib-") for folder in folders)


def decode(data: bytes) -> str | None:
    """The text with LF line ends and without a byte order mark, or None where it is not UTF-8 text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.replace("\r\n", "\n").replace("\r", "\n")


def rejection(text: str, language: str, *, has_declarations: bool = False) -> str | None:
    """Why the file is left out, as a word for the counts, or None.

    `has_declarations`: a `.d.ts` file stands beside this file, so it may be compiler output.
    """
    if len(text) < MIN_CHARACTERS:
        return "too short"
    if len(text) > MAX_CHARACTERS:
        return "too long"
    lines = text.split("\n")
    if len(text) / len(lines) > MAX_MEAN_LINE or max(map(len, lines)) > MAX_LINE:
        return "minified"
    head = "\n".join(lines[:40])
    if _COPYLEFT.search(head):
        return "licence in header"
    if any(_GENERATED.search(line) for line in lines[:40] if _COMMENT_LINE.match(line)):
        return "generated"
    if language == "python" and _PYTHON_2.search(text):
        return "Python 2"
    if language == "javascript":
        if _TRANSPILED.search(text) or (has_declarations and not _JSDOC_TYPES.search(text)):
            return "transpiled"
        if _FLOW.search(head):
            return "Flow types"
    if _is_data(text, lines):
        return "data"
    return None


def _is_data(text: str, lines: Sequence[str]) -> bool:
    digits = sum(text.count(digit) for digit in "0123456789")
    escapes = text.count("\\x") * 4 + text.count("\\u") * 6
    outside_ascii = 0 if text.isascii() else len(text.encode("ascii", "ignore")) / len(text) < 0.8
    if digits > 0.2 * len(text) or escapes > 0.1 * len(text) or outside_ascii:
        return True
    stripped = [stripped for line in lines if (stripped := line.strip())]
    # Closing brackets alone are literal lines as well; ordinary code, JavaScript above all, has up to a third of them.
    candidates = (line for line in stripped if len(line) > 3 and line[0] in _LITERAL_START)
    literals = sum(1 for line in candidates if _LITERAL_LINE.fullmatch(line))
    imports = sum(1 for line in stripped if line.startswith(_IMPORTS))
    return literals > 0.5 * len(stripped) or literals + imports > 0.8 * len(stripped)


# --- tokens and hashes -------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[^\W\d][\w$]*|\d+|[^\w\s]")
_token_hashes: dict[str, int] = {}


def token_hashes(text: str) -> Hashes:
    """One hash per code token: words, runs of digits, single punctuation marks; white space is dropped. (tokens,)"""
    known = _token_hashes
    tokens = _TOKEN.findall(text)
    for token in tokens:
        if token not in known:
            if len(known) > 4_000_000:
                known.clear()
                return token_hashes(text)
            # Two checksums make 64 bits that are the same in every process, unlike hash().
            raw = token.encode("utf-8", "surrogatepass")
            known[token] = zlib.crc32(raw) << 32 | zlib.adler32(raw)
    return np.fromiter((known[token] for token in tokens), dtype=np.uint64, count=len(tokens))


def grams(tokens: Hashes, size: int) -> Hashes:
    """The hashes of all runs of `size` tokens, in order; one hash of everything where there are fewer. (runs,)"""
    size = min(size, len(tokens))
    if size == 0:
        return np.empty(0, np.uint64)
    count = len(tokens) - size + 1
    rolling = np.zeros(count, np.uint64)
    for offset in range(size):
        rolling = rolling * np.uint64(0x9E3779B97F4A7C15) + tokens[offset : offset + count]
        rolling ^= rolling >> np.uint64(29)
    return rolling * np.uint64(0xBF58476D1CE4E5B9)


class NearDuplicates:
    """Finds texts whose token 5-grams overlap by more than `threshold` (Jaccard) with one seen before.

    MinHash with 125 permutations in 25 bands of 5 (Broder 1997; Leskovec, Rajaraman and Ullman, Mining of Massive
    Datasets, chapter 3): a pair at Jaccard 0.7 shares a band with probability 0.99.
    """

    BANDS, ROWS, SHINGLE = 25, 5, 5

    def __init__(self, threshold: float = 0.7) -> None:
        random = np.random.default_rng(0)
        count = self.BANDS * self.ROWS
        self._factors = random.integers(0, 2**63, count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        self._terms = random.integers(0, 2**63, count, dtype=np.uint64)
        self._threshold = threshold
        self._signatures: list[Hashes] = []
        self._bands: dict[tuple[int, bytes], list[int]] = defaultdict(list)

    def signature(self, tokens: Hashes) -> Hashes:
        shingles = grams(tokens, self.SHINGLE)
        result = np.full(self.BANDS * self.ROWS, np.iinfo(np.uint64).max, np.uint64)
        for start in range(0, len(shingles), 4096):  # bounds the memory of the product below
            block = shingles[None, start : start + 4096]
            hashed = block * self._factors[:, None] + self._terms[:, None]  # (permutations, shingles)
            np.minimum(result, hashed.min(axis=1), out=result)
        return result

    def seen(self, tokens: Hashes) -> bool:
        """Whether something like it was seen before; if not, remembers it."""
        signature = self.signature(tokens)
        keys = [(band, row.tobytes()) for band, row in enumerate(signature.reshape(self.BANDS, self.ROWS))]
        candidates = {index for key in keys for index in self._bands.get(key, ())}
        if any(np.mean(self._signatures[index] == signature) > self._threshold for index in candidates):
            return True
        for key in keys:
            self._bands[key].append(len(self._signatures))
        self._signatures.append(signature)
        return False


# --- overlap with benchmarks -------------------------------------------------------------------------------------

_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|(?:export[ \t]+)?function)[ \t]+(\w+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """What a file shares with the benchmarks: hashes of 13-grams, and names of functions."""

    grams: frozenset[int]
    names: frozenset[str]


class Benchmarks:
    """Decides which files overlap with benchmark problems.

    A file overlaps if it shares a 13-gram of code tokens with a problem or defines a function with a problem's name.
    Runs such as `for i in range(len(s)): for j in range(` and names such as `add` occur everywhere: what occurs in
    `common` packages or more says nothing about where a file comes from, and is not counted.
    """

    SIZE = 13

    def __init__(self, problems: Iterable[tuple[str, str]], *, common: int = 6) -> None:
        """`problems`: pairs of complete text and function name ("" where there is none)."""
        self._names: set[str] = set()
        hashes = [np.empty(0, np.uint64)]
        for text, name in problems:
            self._names |= {name} - {""}
            tokens = token_hashes(text)
            if len(tokens) >= self.SIZE:
                hashes.append(grams(tokens, self.SIZE))
        self._grams = np.unique(np.concatenate(hashes))
        self._common = common

    def overlap(self, text: str, tokens: Hashes) -> Overlap:
        """What one file shares with the problems, common or not."""
        shared: list[int] = []
        if len(tokens) >= self.SIZE and len(self._grams):
            own = grams(tokens, self.SIZE)
            nearest = self._grams[np.minimum(np.searchsorted(self._grams, own), len(self._grams) - 1)]
            shared = own[nearest == own].tolist()
        names = self._names.intersection(_DEFINITION.findall(text)) if self._names else ()
        return Overlap(grams=frozenset(shared), names=frozenset(names))

    def contaminated(self, overlaps: Mapping[int, tuple[str, Overlap]]) -> set[int]:
        """The keys of the files to drop, of all files that share anything: key -> (package, overlap)."""
        packages: dict[int | str, set[str]] = defaultdict(set)
        for package, overlap in overlaps.values():
            shared: set[int | str] = {*overlap.grams, *overlap.names}
            for item in shared:
                packages[item].add(package)
        rare = {item for item, found in packages.items() if len(found) < self._common}
        return {key for key, (_, overlap) in overlaps.items() if rare & overlap.grams or rare & overlap.names}
