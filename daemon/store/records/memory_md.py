"""The daemon's section of MEMORY.md: the text between its two marker comments.

The rest of the file belongs to its authors and keeps every byte. The functions work on bytes: the
file may have any encoding whose line ends are those of ASCII.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...errors import InvalidInput
from ...runtime import atomic

BEGIN: Final = "<!-- thermocline:begin -->"
END: Final = "<!-- thermocline:end -->"

# Of a file that is edited.
LARGEST: Final = 4_194_304
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


def outside_section(text: str) -> str:
    """A file's text with an empty line for each line of the daemon's section.

    Damaged markers are not repaired by guessing: each whole section and each marker line is left
    out, and everything else counts as written by people.
    """
    content = text.encode(errors="surrogatepass")

    def blank_lines(part: bytes) -> bytes:
        return b"\n" * part.count(b"\n")

    rest, done, begun = b"", 0, None
    for kind, start, end in _markers(content):
        if kind == "end" and begun is not None:
            rest = rest[:begun] + blank_lines(rest[begun:] + content[done:start])
        else:
            rest += content[done:start]
        begun = len(rest) if kind == "begin" else None
        rest += blank_lines(content[start:end])
        done = end
    return (rest + content[done:]).decode(errors="surrogatepass")


def page_in(content: bytes) -> str | None:
    """The page between the markers of a file, with line feeds; None if it has no markers.

    `InvalidInput`: a marker is missing or repeated, or the file is UTF-16.
    """
    span = _span(content)
    if span is None:
        return None
    inner = content[span[1] : span[2]].replace(b"\r\n", b"\n")
    return inner.decode(errors="surrogateescape")


def put(content: bytes, page: str) -> bytes:
    """The file with `page` in the daemon's section, at the end if new; errors as `page_in`."""
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


def without(content: bytes) -> bytes:
    """The file without the daemon's section and the blank line before it; errors as `page_in`."""
    span = _span(content)
    if span is None:
        return content
    before, after = content[: span[0]], content[span[3] :]
    eol = b"\r\n" if before.endswith(b"\r\n") else b"\n"
    return (
        before if after else before.removesuffix(eol) if before.endswith(eol * 2) else before
    ) + after


def take_section_out(path: Path) -> None:
    """Remove the daemon's section from a file; everything else keeps its bytes. Blocking."""
    content, status = atomic.read(path, LARGEST, alone=True)
    owner = status.st_uid, status.st_gid
    new = atomic.Replacement(path, without(content), stat.S_IMODE(status.st_mode), owner)
    atomic.sync([new])
    new.finish()


def same(page: str | None, other: str) -> bool:
    """Whether two pages differ at most in their dates."""
    return page is not None and _DATE.sub("", page) == _DATE.sub("", other)


def beyond(page: str, other: str) -> str:
    """`page` without the lines that another has, apart from headings: those may be forgotten."""
    known = {line for line in other.splitlines() if line and not line.startswith("#")}
    return "".join(
        line for line in page.splitlines(keepends=True) if line.rstrip("\n") not in known
    )


def digest(page: str) -> str:
    """The digest of a page without its date."""
    return hashlib.sha256(page.encode(errors="surrogateescape")).hexdigest()


def _span(content: bytes) -> tuple[int, int, int, int] | None:
    """The bounds of the section, with its markers and without."""
    if content.startswith(_UTF_16):
        raise InvalidInput("it is UTF-16", hint="save it as UTF-8")
    markers = list(_markers(content))
    if not markers:
        return None
    if [kind for kind, *_ in markers] != ["begin", "end"]:
        raise InvalidInput(
            f"it has {len(markers)} marker lines that are not one begin and one end",
            hint=f"leave one line '{BEGIN}' and one line '{END}' below it, or none",
        )
    (_, start, inner), (_, inner_end, end) = markers
    return start, inner, inner_end, end


def _markers(content: bytes) -> Iterator[tuple[str, int, int]]:
    return ((match[1].decode(), *match.span()) for match in _MARKER.finditer(content))
