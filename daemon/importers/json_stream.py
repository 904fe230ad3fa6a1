"""The elements of a JSON list, one after another, however long the list is."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import BinaryIO, Final

from ..memory.records import Json

_PIECE: Final = 1 << 20
_LONGEST: Final = 64 << 20
_BETWEEN: Final = " \t\r\n,"


class CutOff(ValueError):
    """The list ends early, or something in it is not JSON; the message says where."""


def elements(file: BinaryIO) -> Iterator[Json]:
    """Each element of the list; memory is only needed for the longest one.

    Raises:
        CutOff: the file is not a list, is incomplete, or an element is longer than 64 MiB.
    """
    decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
    buffer, number = decode(file.read(_PIECE)).lstrip(), 0
    if not buffer.startswith("["):
        raise CutOff("it is not a list")
    buffer, is_whole = buffer[1:], False
    while True:
        at = 0
        for element, end in _whole(buffer, is_whole=is_whole):
            yield element
            number, at = number + 1, end
        buffer = buffer[at:].lstrip(_BETWEEN)
        if buffer.startswith("]"):
            return
        if is_whole:
            raise CutOff(f"it is cut off, or not JSON, after {number} elements")
        if len(buffer) > _LONGEST:
            why = f"is not JSON, or longer than {_LONGEST:,} characters"
            raise CutOff(f"element {number + 1} {why}")
        # At least doubled: an incomplete element is read again from its start.
        piece = file.read(max(_PIECE, len(buffer)))
        is_whole = not piece
        buffer += decode(piece, is_whole)


def _whole(text: str, *, is_whole: bool) -> Iterator[tuple[Json, int]]:
    """The complete elements, each with the position of its end."""
    decoder, at = json.JSONDecoder(), 0
    while True:
        while at < len(text) and text[at] in _BETWEEN:
            at += 1
        try:
            element, at = decoder.raw_decode(text, at)
        except RecursionError as error:
            raise CutOff("an element is nested too deep") from error
        except ValueError:
            return
        if at == len(text) and not is_whole:
            return  # A number may go on.
        yield element, at
