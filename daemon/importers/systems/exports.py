"""The exports of ChatGPT and claude.ai: conversations in a zip, its folder, or the file in it."""

from __future__ import annotations

import codecs
import contextlib
import json
import re
import zipfile
import zlib
from collections.abc import Generator, Iterator
from functools import partial
from typing import Any, BinaryIO, Final, TypeAlias

from ...memory.messages import spoken_text
from ...memory.records import Json
from ..entries import EntryBuilder, SourceEntry
from ..source import Format, SourcePath, open_file
from ..values import reason, seconds

_FILES: Final = re.compile(r"conversations(?:-\d+)?\.json")
ZIP: Final = b"PK\x03\x04"
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
# The place of its file, its number there, and its fields.
Conversation: TypeAlias = tuple[str, int, dict[str, Any]]
# More than any export has: a larger file is an attack.
_MOST_BYTES: Final = 32 << 30
# Texts shrink to a tenth: a large file that unpacks to this many times its size holds none.
_MOST_TIMES: Final = 200
_MANY_BYTES: Final = 256 << 20
_PIECE: Final = 1 << 20
_LONGEST: Final = 64 << 20
_GAP: Final = re.compile(r"[ \t\r\n,]*")
_SPOKEN: Final = frozenset({"text", "multimodal_text"})


# ChatGPT


def _chatgpt(source: SourcePath) -> Iterator[SourceEntry]:
    """What user and assistant said, along the branch that was shown last."""
    for place, number, conversation in _conversations(source):
        builder = EntryBuilder(source.fault, "chatgpt", place, source.stat.st_mtime)
        mapping = conversation.get("mapping")
        if not isinstance(mapping, dict):
            builder.fault(f"conversation {number}: it has no mapping")
            continue
        branch, why = _branch(mapping, conversation.get("current_node"))
        if why:
            builder.fault(f"conversation {number}: {why}")
        group = str(
            conversation.get("conversation_id") or conversation.get("id") or f"{place} {number}"
        )
        for position, key in enumerate(branch):
            message = mapping[key]["message"]
            yield from builder.turn(
                f"{group}/{message.get('id') or key}", _text(message),
                role=_field(message, "author", "role"), group=group, position=position,
                subject=conversation.get("title"),
                created_at=seconds(message.get("create_time"), conversation.get("create_time")),
                updated_at=seconds(message.get("update_time")),
            )  # fmt: skip


def _branch(mapping: dict[str, Any], current: Json) -> tuple[list[str], str]:
    """The keys of the messages from the first to the last shown one, and a fault or ""."""
    key = current if isinstance(current, str) and current in mapping else _newest_leaf(mapping)
    path: dict[str, bool] = {}
    why = ""
    while isinstance(key, str) and isinstance(node := mapping.get(key), dict):
        if key in path:
            why = "its messages follow each other in a circle"
            break
        path[key] = isinstance(node.get("message"), dict)
        key = node.get("parent")
    branch = [key for key, has_message in path.items() if has_message][::-1]
    texts = sum(isinstance(n, dict) and bool(_text(n.get("message"))) for n in mapping.values())
    left_out = texts - sum(bool(_text(mapping[key]["message"])) for key in branch)
    if left_out > 0 and not why:
        why = f"{left_out} messages of other branches are left out"
    return branch, why


def _newest_leaf(mapping: dict[str, Any]) -> str | None:
    leaves = {
        key: seconds(_field(node, "message", "create_time")) or 0.0
        for key, node in mapping.items()
        if isinstance(node, dict) and not node.get("children")
    }
    return max(leaves, key=lambda key: leaves[key], default=next(iter(mapping), None))


def _text(message: Json) -> str:
    """The text of a message; empty if it was hidden, a thought, or for a tool."""
    if not isinstance(message, dict):
        return ""
    hidden = _field(message, "metadata", "is_visually_hidden_from_conversation")
    role, content = _field(message, "author", "role"), message.get("content")
    if hidden or message.get("recipient", "all") != "all" or role not in ("user", "assistant"):
        return ""
    if not isinstance(content, dict) or str(content.get("content_type")) not in _SPOKEN:
        return ""
    return spoken_text(content.get("parts")).strip()


def _field(value: Json, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


# claude.ai


def _claude(source: SourcePath) -> Iterator[SourceEntry]:
    for name in _other_files(source):
        if name in ("projects.json", "memories.json"):
            source.fault(source.path, f"{name} is not read")
    for place, number, conversation in _conversations(source):
        builder = EntryBuilder(source.fault, "claude", place, source.stat.st_mtime)
        messages = conversation.get("chat_messages")
        if not isinstance(messages, list):
            builder.fault(f"conversation {number}: it has no messages")
            continue
        group = str(conversation.get("uuid") or f"{place} {number}")
        for position, message in enumerate(messages):
            if not isinstance(message, dict):
                builder.fault(f"conversation {number}: message {position + 1} is not an object")
                continue
            yield from builder.turn(
                f"{group}/{message.get('uuid') or position}",
                spoken_text(message.get("content")) or spoken_text(message.get("text")),
                role=message.get("sender"), group=group, position=position,
                subject=conversation.get("name"),
                created_at=message.get("created_at") or conversation.get("created_at"),
                updated_at=message.get("updated_at"),
            )  # fmt: skip


def _other_files(source: SourcePath) -> list[str]:
    if source.head.startswith(ZIP):
        with contextlib.suppress(*_DAMAGED, OSError), zipfile.ZipFile(source.path) as archive:
            return [name.rsplit("/", 1)[-1] for name in archive.namelist()]
    return [path.name for path in source.path.iterdir()] if source.is_folder else []


# Both


def _conversations(source: SourcePath) -> Generator[Conversation, None, None]:
    """Each conversation with the place of its file and its number there.

    A member of a zip is read as a stream, and never written anywhere, whatever its name.
    """
    if source.head.startswith(ZIP):
        yield from _zipped(source)
        return
    paths = [source.path]
    if source.is_folder:
        paths = sorted(path for path in source.path.iterdir() if _FILES.fullmatch(path.name))
    for path in paths:
        try:
            with open_file(path, path.parent) as file:
                yield from _listed(source, file, str(path))
        except OSError as error:
            source.fault(path, reason(error, path))


def _zipped(source: SourcePath) -> Iterator[Conversation]:
    path = source.path
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = member.filename.rsplit("/", 1)[-1]
                if not _FILES.fullmatch(name):
                    continue
                size, packed = member.file_size, max(1, member.compress_size)
                if size > _MOST_BYTES or (size > _MANY_BYTES and size // packed > _MOST_TIMES):
                    source.fault(f"{path}: {name}", f"unpacks from {packed:,} to {size:,} bytes")
                    continue
                with archive.open(member) as file:
                    yield from _listed(source, file, f"{path}: {name}")  # type: ignore[arg-type]
    except (*_DAMAGED, OSError) as error:
        source.fault(path, f"is damaged ({error})")


def _listed(source: SourcePath, file: BinaryIO, place: str) -> Iterator[Conversation]:
    number = 0
    try:
        for number, conversation in enumerate(_elements(file), 1):
            if isinstance(conversation, dict):
                yield place, number, conversation
            else:
                source.fault(place, f"conversation {number} is not an object")
    except _CutOff as error:
        source.fault(place, str(error))
    except _DAMAGED as error:
        source.fault(place, f"damaged after {number} conversations ({error})")


class _CutOff(ValueError):
    """The list ends early, or something in it is not JSON; the message says where."""


def _elements(file: BinaryIO) -> Iterator[Json]:
    """Each element of a JSON list of any length, in memory one by one; `_CutOff` where it ends."""
    decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
    buffer, number = decode(file.read(_PIECE)).lstrip(), 0
    if not buffer.startswith("["):
        raise _CutOff("it is not a list")
    buffer, is_whole = buffer[1:], False
    while True:
        at = 0
        for element, end in _complete(buffer, is_whole=is_whole):
            yield element
            number, at = number + 1, end
        buffer = buffer[_skip_gap(buffer, at) :]
        if buffer.startswith("]"):
            return
        if is_whole:
            raise _CutOff(f"it is cut off, or not JSON, after {number} elements")
        if len(buffer) > _LONGEST:
            why = f"is not JSON, or longer than {_LONGEST:,} characters"
            raise _CutOff(f"element {number + 1} {why}")
        # At least doubled: an incomplete element is read again from its start.
        piece = file.read(max(_PIECE, len(buffer)))
        is_whole = not piece
        buffer += decode(piece, is_whole)


def _complete(text: str, *, is_whole: bool) -> Iterator[tuple[Json, int]]:
    """The complete elements, each with the position of its end."""
    decoder, at = json.JSONDecoder(), 0
    while True:
        try:
            element, at = decoder.raw_decode(text, _skip_gap(text, at))
        except RecursionError as error:
            raise _CutOff("an element is nested too deep") from error
        except ValueError:
            return
        if at == len(text) and not is_whole:
            return  # A number may go on.
        yield element, at


def _skip_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap is not None else at


def _detect(field: str, source: SourcePath) -> bool:
    begins = (ZIP, b"[", b"\xef\xbb\xbf[", b" ", b"\n")
    if not source.is_folder and not source.head.startswith(begins):
        return False
    with contextlib.closing(_conversations(source)) as conversations:
        first = next(conversations, None)
    return first is not None and field in first[2]


_NEEDS: Final = "the export: a zip, a folder, or conversations.json, a list of objects with '{}'"
CHATGPT: Final = Format("chatgpt", partial(_detect, "mapping"), _chatgpt, _NEEDS.format("mapping"))
CLAUDE: Final = Format(
    "claude", partial(_detect, "chat_messages"), _claude, _NEEDS.format("chat_messages")
)
