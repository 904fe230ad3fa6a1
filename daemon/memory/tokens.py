"""How many tokens a text is likely to be."""

from __future__ import annotations

import re
from math import ceil
from typing import Final

_CHARS_PER_TOKEN: Final = 4.0
_UNSPACED_CHARS_PER_TOKEN: Final = 1.5
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uff00-\uffef\U00020000-\U0003ffff]"
)


def estimated_tokens(text: str) -> int:
    """An estimate without a tokenizer: a character of Chinese and its like is 1/1.5, others 1/4.

    Within a fifth of what most tokenizers count for English prose; code, and scripts such as
    Cyrillic, take up to half as many again.
    """
    unspaced = 0 if text.isascii() else len(_UNSPACED.findall(text))
    spaced = len(text) - unspaced
    return ceil(spaced / _CHARS_PER_TOKEN + unspaced / _UNSPACED_CHARS_PER_TOKEN)
