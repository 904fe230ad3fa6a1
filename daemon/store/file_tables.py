"""The tables that keep the workspace's files in step with the disk."""

from __future__ import annotations

from typing import Final

FILES: Final = (
    # `seen`: by device, the clock of the last edit that this was made from. `agreed`: of a row
    # that was edited here, what others know that it was made from, and of which version that is.
    # `placed`: whether the disk has what the row says; else it shows `shown`. Size and time are
    # those of the file when it was looked at last, -1 where there was none.
    """
    CREATE TABLE files (
        path TEXT PRIMARY KEY,
        content TEXT NOT NULL,
        modified_at REAL NOT NULL,
        seen TEXT NOT NULL,
        agreed TEXT,
        agreed_clock INTEGER NOT NULL,
        agreed_device TEXT NOT NULL,
        placed INTEGER NOT NULL,
        shown TEXT,
        size INTEGER NOT NULL,
        mtime INTEGER NOT NULL,
        clock INTEGER NOT NULL,
        device TEXT NOT NULL
    ) STRICT
    """,
    # Files whose rows are gone, as they stood: they are to be removed.
    """
    CREATE TABLE files_gone (path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime INTEGER NOT NULL)
        STRICT
    """,
    """
    CREATE TRIGGER files_delete AFTER DELETE ON files WHEN OLD.size >= 0
    BEGIN
        INSERT OR REPLACE INTO files_gone VALUES (OLD.path, OLD.size, OLD.mtime);
    END
    """,
)
