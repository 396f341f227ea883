"""Takes out the markers that models use among themselves, such as <mask> or <|im_end|>, and what follows an end marker.

A marker that stands in the document already is the document's own: such code is about models.
"""

from __future__ import annotations

import re

from diffusion.api import FillRequest

_MARKUP = frozenset({"html", "xml", "svg", "javascriptreact", "typescriptreact", "vue", "svelte", "markdown", "mdx"})

# <|name|>, <|name>, <name|> are nothing else in any language.
_PIPED = re.compile(r"<\|[A-Za-z_][\w.-]*\|?>|<[A-Za-z_][\w.-]*\|>")
# These could be tags: they are markers only outside of markup.
_PLAIN = re.compile(
    r"</?(?:mask|pad|bos|eos|unk|s|sep|cls|eom|eot|eod|PRE|SUF|MID|EOT|END|fim_prefix|fim_suffix|fim_middle|fim_pad"
    r"|file_sep|filename|reponame|repo_name|start_of_turn|end_of_turn)>|\[MASK\]|\[PAD\]|\[UNK\]"
)
_END = re.compile(
    r"<\|?(?:turn\||endoftext|im_end|eot_id|end_of_text|eom_id|end)\|?>|</s>|<(?:eos|eot|EOT|end_of_turn)>"
)
_ROLE = re.compile(r"(?:<\|(?:im_start|start_header_id|turn)\|?>|<start_of_turn>)(?:system|user|assistant|model)?\n?")


def special_tokens(text: str, request: FillRequest) -> str:
    around = request.prefix + request.suffix

    def own(marker: str) -> bool:
        return marker in around or (request.language in _MARKUP and _PIPED.fullmatch(marker) is None)

    text = _ROLE.sub(lambda match: match[0] if own(match[0]) else "", text)
    for end in _END.finditer(text):
        if not own(end[0]) and text[: end.start()].strip():
            text = text[: end.start()]
            break
    for pattern in (_PIPED, _PLAIN):
        text = pattern.sub(lambda match: match[0] if own(match[0]) else "", text)
    return text
