"""What coding agents write: Claude Code's and Codex's sessions and memories, aider's history."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final

from ...language.speech import without_recalled
from ...memory.messages import spoken_text
from ..entries import SourceEntry, category, project_name, tags_of
from ..memory_md import statements
from ..source import Format, SourcePath

_EXAMINED: Final = 20
_TYPES: Final = frozenset({"user", "assistant"})
# What Claude Code adds as the user: commands and their output.
_MARKUP: Final = re.compile(r"<(?:command-|local-command-|bash-)|\[Request interrupted by user")
_CODEX_SESSIONS: Final = r"rollout-.+\.jsonl"
# What Codex adds to the user's messages.
_ADDED: Final = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTR",
)
_AIDER_HISTORY: Final = ".aider.chat.history.md"
_AIDER_START: Final = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?)")
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_AIDER_USER: Final = "#### "
# Commands of a chat that say something to the model, and all commands.
_QUESTION: Final = re.compile(r"\A/(?:ask|code|architect|help)\s+")
_COMMAND: Final = re.compile(r"[/!][a-z-]+(?:\s|\Z)")


# Claude Code: memory folders and transcripts below `~/.claude/projects`


def _is_claude_code(source: SourcePath) -> bool:
    if not source.is_folder:
        return source.path.suffix == ".jsonl" and _is_transcript(source)
    if source.path.name == ".claude":
        # Without a conversation yet it has its settings alone, and nothing is imported.
        return any((source.path / name).exists() for name in ("projects", "settings.json"))
    transcripts = islice(source.files(r".+\.jsonl"), _EXAMINED)
    return any(_is_transcript(SourcePath(path)) for path in transcripts)


def _is_transcript(source: SourcePath) -> bool:
    return any("sessionId" in line and "type" in line for line in source.first_lines())


def _claude_code(source: SourcePath) -> Iterator[SourceEntry]:
    inside = ("projects",) if (source.path / "projects").is_dir() else ()
    files = source.files(r".+\.(?:jsonl|md)", *inside) if source.is_folder else [source.path]
    for path in files:
        if path.suffix == ".jsonl":
            yield from _transcript(source, path)
        elif path.parent.name == "memory":
            yield from _claude_memory(source, path)


def _transcript(source: SourcePath, path: Path) -> Iterator[SourceEntry]:
    """The turns of a session, without those of tools, subagents and the program itself."""
    builder, position, project = source.builder("claude-code", path), 0, ""
    for number, line in source.lines(path):
        message = line.get("message")
        if str(line.get("type")) not in _TYPES or line.get("isSidechain") or line.get("isMeta"):
            continue
        if not isinstance(message, dict) or line.get("isCompactSummary"):
            continue
        text = without_recalled(spoken_text(message.get("content")))
        if not text.strip() or _MARKUP.match(text.lstrip()):
            continue
        session = str(line.get("sessionId") or path.stem)
        project = project or project_name(line.get("cwd")) or path.parent.name
        yield from builder.turn(
            f"{session}/{line.get('uuid') or number}", text,
            role=message.get("role") or line["type"], group=f"{project}/{session}",
            position=position, tags=tags_of(project), created_at=line.get("timestamp"),
        )  # fmt: skip
        position += 1


def _claude_memory(source: SourcePath, path: Path) -> Iterator[SourceEntry]:
    folder, builder = path.parent.parent.name, source.builder("claude-code", path)
    for _, heading, statement in statements(source.text(path)):
        if path.name == "MEMORY.md" and re.match(r"\[[^\]]+\]\([^)]+\.md\)", statement):
            continue  # The index of the other files.
        names = [] if heading == "general" else heading.split("/")
        yield from builder.memory(
            f"{folder}/{path.name}/{statement}", statement,
            category=category("projects", folder.rsplit("-", 1)[-1], *names),
            subject=path.stem, importance=0.7,
        )  # fmt: skip


# Codex: the memory files and the sessions below `~/.codex`


def _is_codex(source: SourcePath) -> bool:
    if source.is_folder:
        memories = source.path.name == ".codex" and (source.path / "memories").is_dir()
        return memories or next(source.files(_CODEX_SESSIONS), None) is not None
    return any(line.get("type") == "session_meta" for line in source.first_lines())


def _codex(source: SourcePath) -> Iterator[SourceEntry]:
    if not source.is_folder:
        yield from _codex_session(source, source.path)
        return
    for name in ("MEMORY.md", "memory_summary.md"):
        path = source.path / "memories" / name
        if path.exists():
            builder = source.builder("codex", path)
            for _, heading, statement in statements(source.text(path)):
                yield from builder.memory(
                    f"memories/{statement}", statement,
                    category=category("codex", *heading.split("/")), importance=0.7,
                )  # fmt: skip
    for path in source.files(_CODEX_SESSIONS):
        yield from _codex_session(source, path)


def _codex_session(source: SourcePath, path: Path) -> Iterator[SourceEntry]:
    builder, session, project, position = source.builder("codex", path), path.stem, "", 0
    for number, line in source.lines(path):
        payload = line.get("payload")
        if not isinstance(payload, dict):
            continue
        if line.get("type") == "session_meta":
            session = str(payload.get("id") or session)
            project = project_name(payload.get("cwd"))
            continue
        if line.get("type") != "response_item" or payload.get("type") != "message":
            continue
        text = without_recalled(spoken_text(payload.get("content")))
        if not text.strip() or text.lstrip().startswith(_ADDED):
            continue
        for entry in builder.turn(
            f"{session}/{line.get('ordinal', number)}", text,
            group=f"{project}/{session}", role=payload.get("role"), position=position,
            tags=tags_of(project), created_at=line.get("timestamp"),
        ):  # fmt: skip
            yield entry
            position += 1


# aider: the Markdown history of its chats in a project


def _is_aider(source: SourcePath) -> bool:
    if source.is_folder:
        return (source.path / _AIDER_HISTORY).is_file()
    return bool(_AIDER_START.match(source.head.decode(errors="replace").lstrip("\ufeff\n\r ")))


def _aider(source: SourcePath) -> Iterator[SourceEntry]:
    """The turns of each chat, without the program's own output and its commands."""
    path = source.path / _AIDER_HISTORY if source.is_folder else source.path
    builder, project = source.builder("aider", path), path.resolve().parent.name
    for started, turns in _chats(source.text(path)):
        for position, (role, text) in enumerate(turns):
            yield from builder.turn(
                f"{project}/{started}/{position}", text, role=role,
                group=f"{project}/aider {started}", position=position, tags=tags_of(project),
                created_at=datetime.fromisoformat(started).timestamp(),
            )  # fmt: skip


def _chats(text: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    started, turns = "", list[tuple[str, list[str]]]()
    fence, entering = "", False
    for line in [*text.splitlines(), None]:
        start = _AIDER_START.match(line) if line is not None and not fence else None
        if line is None or start:
            if started:
                texts = [(role, _turn_text(lines)) for role, lines in turns]
                yield started, [(role, text) for role, text in texts if text]
            started, turns = start[1] if start else "", []
            continue
        mark = _FENCE.match(line)
        if mark and (not fence or (mark[1].startswith(fence) and not line.strip(" `~"))):
            fence = "" if fence else mark[1]
        elif not fence and line.startswith(">"):
            continue  # Printed by the program: files added, edits applied, tokens and costs.
        user = not fence and not mark and line.startswith(_AIDER_USER)
        role = "user" if user else "assistant"
        # A blank line ends what was entered at once.
        if not turns or turns[-1][0] != role or (user and not entering):
            if not line.strip():
                entering = False
                continue
            turns.append((role, []))
        entering = user
        turns[-1][1].append((line.removeprefix(_AIDER_USER) if user else line).rstrip())


def _turn_text(lines: list[str]) -> str:
    """The text of a turn; "" for a command such as /add."""
    text = _QUESTION.sub("", "\n".join(lines).strip())
    return "" if _COMMAND.match(text) else text


CLAUDE_CODE: Final = Format(
    "claude-code", _is_claude_code, _claude_code, "~/.claude, or a project or session below it"
)
CODEX: Final = Format("codex", _is_codex, _codex, "~/.codex, or a session below it")
AIDER: Final = Format("aider", _is_aider, _aider, f"a project with {_AIDER_HISTORY}, or that file")
