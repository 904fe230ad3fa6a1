"""Sealed replicas: rows that a remote stores and cannot read. Needs PyNaCl; loaded only when on."""

from typing import Final

# Of all sealed rows.
KIND: Final = "sealed"
# A sealed file begins so.
FILE_MAGIC: Final = b"thermocline sealed\n"
# No agent has a name that begins so; nor has a version of a row.
MARK: Final = "="
