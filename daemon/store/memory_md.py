"""The daemon's section of MEMORY.md: the text between its two marker comments.

The rest of the file belongs to its authors and keeps every byte. The functions work on bytes: the
file may have any encoding whose line ends are those of ASCII.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Final

from ..errors import InvalidInput

BEGIN: Final = "<!-- thermocline:begin -->"
END: Final = "<!-- thermocline:end -->"

_BOM: Final = b"\xef\xbb\xbf"
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_MARKER: Final = re.compile(
    rb"(?:^|(?<=\A\xef\xbb\xbf))<!-- thermocline:(begin|end) -->[ \t\r]*(?:\n|\Z)", re.MULTILINE
)
# It changes with every rendering, so a difference in it alone is not written.
_DATE: Final = re.compile(r"^\*Generated: .*\*$", re.MULTILINE)


def section(page: str) -> str:
    """The section as written to the file: a page between the markers."""
    return f"{BEGIN}\n{page}{END}\n"


def outside_section(text: str, *, keep_lines: bool = False) -> str:
    """A file's text without the daemon's section.

    Damaged markers are not repaired by guessing: each whole section and each marker line is left
    out, and everything else counts as written by people.

    Args:
        text: of the file.
        keep_lines: keep an empty line for each line left out, so that line numbers stay.
    """
    content = text.encode(errors="surrogatepass")

    def left_out(part: bytes) -> bytes:
        return b"\n" * part.count(b"\n") if keep_lines else b""

    kept, done, begun = b"", 0, None
    for kind, start, end in _markers(content):
        if kind == "end" and begun is not None:
            kept = kept[:begun] + left_out(kept[begun:] + content[done:start])
        else:
            kept += content[done:start]
        begun = len(kept) if kind == "begin" else None
        kept += left_out(content[start:end])
        done = end
    return (kept + content[done:]).decode(errors="surrogatepass")


def page_in(content: bytes) -> str | None:
    """The page between the markers of a file, with line feeds; None if it has no markers.

    Raises:
        InvalidInput: a marker is missing or repeated, or the file is UTF-16.
    """
    span = _span(content)
    if span is None:
        return None
    inner = content[span[1] : span[2]].replace(b"\r\n", b"\n")
    return inner.decode(errors="surrogateescape")


def put(content: bytes, page: str) -> bytes:
    """The file with `page` in the daemon's section, which is added at the end if missing.

    Raises:
        InvalidInput: as `page_in`.
    """
    span = _span(content)
    eol = b"\r\n" if content.count(b"\r\n") * 2 > content.count(b"\n") else b"\n"
    block = section(page).encode().replace(b"\n", eol)
    if span is not None:
        before, after = content[: span[0]], content[span[3] :]
        if not content[: span[3]].endswith(b"\n"):
            block = block.removesuffix(eol)
        return before + block + after
    if content in {b"", _BOM}:
        return content + block
    return content + (eol if content.endswith(b"\n") else eol + eol) + block


def same(one: str | None, other: str) -> bool:
    """Whether two pages differ at most in their dates."""
    return one is not None and _DATE.sub("", one) == _DATE.sub("", other)


def digest(page: str) -> str:
    """The digest of a page without its date."""
    return hashlib.sha256(page.encode(errors="surrogateescape")).hexdigest()


def _span(content: bytes) -> tuple[int, int, int, int] | None:
    """The bounds of the section, with its markers and without."""
    if content.startswith(_UTF_16):
        raise InvalidInput("it is UTF-16", hint="save it as UTF-8")
    found = list(_markers(content))
    if not found:
        return None
    if [kind for kind, *_ in found] != ["begin", "end"]:
        raise InvalidInput(
            f"it has {len(found)} marker lines that are not one begin and one end",
            hint=f"leave one line '{BEGIN}' and one line '{END}' below it, or none",
        )
    (_, start, inner), (_, inner_end, end) = found
    return start, inner, inner_end, end


def _markers(content: bytes) -> Iterator[tuple[str, int, int]]:
    return ((found[1].decode(), *found.span()) for found in _MARKER.finditer(content))
