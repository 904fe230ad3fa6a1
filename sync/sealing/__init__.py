"""Sealed replicas: rows that a remote stores and cannot read. Needs PyNaCl; loaded only when on."""

from typing import Final

# Of all sealed rows.
KIND: Final = "sealed"
# A sealed file begins so.
FILE_MAGIC: Final = b"thermocline sealed\n"
