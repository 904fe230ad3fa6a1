"""The description on a package index: README.md without pictures and relative links.

They would lead nowhere there. The project has no public URL to lead to.
"""

import re
from pathlib import Path

from setuptools import setup

_README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
_RELATIVE = r"\[([^]]+)\]\((?!https?:)[^)]+\)"

setup(
    long_description=re.sub(_RELATIVE, r"\1", re.sub(rf"!{_RELATIVE}\n*", "", _README)),
    long_description_content_type="text/markdown",
)
