"""The configuration: layers of JSON files read into one typed, checked tree."""

from ..errors import ConfigInvalid
from .checking import Fault, visible
from .layers import SYSTEM_FILE, layer_files
from .loading import Loaded, describe, load
from .settings import Grant, Role, Rules, Settings

__all__ = [
    "SYSTEM_FILE",
    "ConfigInvalid",
    "Fault",
    "Grant",
    "Loaded",
    "Role",
    "Rules",
    "Settings",
    "describe",
    "layer_files",
    "load",
    "visible",
]
