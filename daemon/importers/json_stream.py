"""The elements of a JSON list one after the other, however long the list is."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import BinaryIO, Final

from ..memory.records import Json

_PIECE: Final = 1 << 20
LONGEST: Final = 64 << 20


class CutOff(ValueError):
    """The list ends early, or something in it is not JSON; the message says where."""


def elements(file: BinaryIO, longest: int = LONGEST) -> Iterator[Json]:
    """Each element of the list; memory is needed for the longest one only.

    Raises:
        CutOff: the file is no list, ends before its end, or an element is longer than `longest`
            bytes.
    """
    decoder, text = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8-sig")("replace")
    buffer, number, begun = "", 0, False
    while True:
        piece = file.read(max(_PIECE, len(buffer)))
        buffer += text.decode(piece, not piece)
        if not begun:
            buffer = buffer.lstrip()
            if buffer and not buffer.startswith("["):
                raise CutOff("it is not a list")
            begun, buffer = bool(buffer), buffer[1:]
        at = 0
        while True:
            at = _skipped(buffer, at)
            if buffer[at : at + 1] == "]":
                return
            try:
                element, end = decoder.raw_decode(buffer, at)
            except RecursionError as error:
                raise CutOff(f"element {number + 1} is nested too deep") from error
            except ValueError:
                break
            if end == len(buffer) and piece:
                break  # A number may go on.
            yield element
            number, at = number + 1, end
        buffer = buffer[at:]
        if not piece:
            raise CutOff(f"it is cut off, or not JSON, after {number} elements")
        if len(buffer) > longest:
            raise CutOff(f"element {number + 1} is not JSON, or longer than {longest:,} bytes")


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at
