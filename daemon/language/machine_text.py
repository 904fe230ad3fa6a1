"""Text that a machine wrote or that is written for one: logs, stack traces, code, queries, data.

Whoever pastes it asks about it; it tells nothing of them.
"""

from __future__ import annotations

import re
from typing import Final

_MARKS: Final = re.compile(
    # Stack traces and what compilers, shells and package managers print.
    r"\bTraceback \(most recent|\bFile \"[^\"\n]+\", line \d|\b[A-Za-z]*(?:Error|Exception): ?\S"
    r"|\b[\w/.-]+\.(?:py|[jt]sx?|go|rs|cc?|cpp|h|java|rb|php|kt|swift|sh|sql|css|vue):\d+"
    r"|\berrno \d|\b(?:npm|yarn|pip|cargo) (?:ERR!|error|warn)|: command not found"
    r"|^[\w-]+: (?:error|Error|fatal)\b"
    r"|^(?:fatal|error|panic|segmentation fault|warning|fehler|erreur)(?:\[\w+\])?: "
    # Lines of logs: a time with seconds, an uptime, a level.
    r"|^\W{0,3}(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d\b|^\W{0,3}\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
    r"|^\[ *\d+\.\d+\] |(?:^|\s|\[)(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE|CRITICAL)\b[:\]\s]"
    # Queries and statements of programs.
    r"|\bSELECT\b.{1,200}\bFROM\b|\b(?:INSERT INTO|DELETE FROM|(?:CREATE|ALTER|DROP) TABLE)\b"
    r"|\b(?:const|let|var|int|auto) \w+ ?=|\b(?:def|function|func|fn|class) \w+ ?[({:]|\) ?\{|\};?$"
    r"|\breturn \w+;|\bimport \w+ from\b|^from [\w.]+ import\b|^#include\b|</\w+>|\{\"\w+\": ?"
    r"|^[-+] ?(?:const|let|var|def|return|import|if)\b|^(?:\w+: ){2,}|^\w+\('|^\$ \S|console\.log"
)
_SYMBOLS: Final = frozenset("{}()[];=<>|&$\\^*+/_")
# A sentence with more of these than its letters bear is a formula or code.
_MOST_SYMBOLS: Final = 0.12


def is_machine_text(text: str) -> bool:
    """Whether a sentence is, or has, text of a machine."""
    if _MARKS.search(text):
        return True
    return sum(letter in _SYMBOLS for letter in text) > _MOST_SYMBOLS * len(text)
