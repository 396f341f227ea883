"""Takes out the markers that models use among themselves, such as <mask> or <|im_end|>, and what follows an end marker.

A document that holds such markers is about models: there, they are code.
"""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import MARKUP

_MAY_HAVE_TAGS = MARKUP | {"markdown", "mdx"}

# <|name|>, <|name>, <name|> are nothing else in any language.
_PIPED = re.compile(r"<\|[A-Za-z_][\w.-]*\|?>|<[A-Za-z_][\w.-]*\|>|<｜[^<>｜\n]{1,40}｜>")
# These could be tags: they are markers only outside of markup.
_PLAIN = re.compile(
    r"</?(?:mask|pad|bos|eos|unk|s|sep|cls|eom|eot|eod|PRE|SUF|MID|EOT|END|fim_prefix|fim_suffix|fim_middle|fim_pad"
    r"|file_sep|filename|reponame|repo_name|start_of_turn|end_of_turn|extra_id_\d+|unused\d+)>"
    r"|\[(?:MASK|PAD|UNK|SEP|CLS|/?INST)\]|<</?SYS>>"
)
_END = re.compile(
    r"<\|?(?:turn\||endoftext|im_end|eot_id|end_of_text|eom_id|file_sep(?:arator)?|end)\|?>|</s>"
    r"|<(?:eos|eot|EOT|end_of_turn)>|<｜end[^<>｜\n]{1,40}｜>"
)
_ROLE = re.compile(
    r"(?:<\|(?:im_start|start_header_id|turn)\|?>|<start_of_turn>)(?:system|user|assistant|model)?\n?"
    r"|<\|(?:system|user|assistant|model)\|>\n?"
)


def special_tokens(text: str, request: FillRequest) -> str:
    if "<" not in text and "[" not in text:
        return text  # All of them begin so.
    around = request.prefix + request.suffix
    patterns = (_PIPED,) if request.language in _MAY_HAVE_TAGS else (_PIPED, _PLAIN)
    if any(pattern.search(around) for pattern in patterns):
        return text

    def is_marker(found: re.Match[str]) -> bool:
        return any(pattern.match(found[0]) for pattern in patterns)

    text = _ROLE.sub(lambda found: "" if is_marker(found) else found[0], text)
    end = next((found for found in _END.finditer(text) if is_marker(found) and text[: found.start()].strip()), None)
    if end:
        text = text[: end.start()]
    for pattern in patterns:
        text = pattern.sub("", text)
    return text
