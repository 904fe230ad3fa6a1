"""The configuration: layers of JSON files read into one typed, checked tree."""

from ..errors import ConfigInvalid
from .changes import Change, changed, running
from .faults import Fault, visible
from .kinds import Role
from .layers import SYSTEM_FILE, layer_files
from .loading import Loaded, describe, document, load
from .settings import Grant, Settings

__all__ = [
    "SYSTEM_FILE",
    "Change",
    "ConfigInvalid",
    "Fault",
    "Grant",
    "Loaded",
    "Role",
    "Settings",
    "changed",
    "describe",
    "document",
    "layer_files",
    "load",
    "running",
    "visible",
]
