"""Our themes; Textual has twenty more."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

DEFAULT_THEME: Final = "thermocline"
# Deep water below, warm light above: the further down, the colder.
THEMES: Final = (
    Theme(
        name=DEFAULT_THEME,
        primary="#4fb3d9",
        secondary="#7d93b2",
        accent="#f2a65a",
        warning="#f2c14e",
        error="#ef6f6c",
        success="#7fc29b",
        foreground="#d8e2ee",
        background="#0c1622",
        surface="#101d2c",
        panel="#17283b",
        dark=True,
        variables={
            "border": "#2c4560",
            "border-blurred": "#22374e",
            "block-cursor-background": "#20506d",
            "block-cursor-foreground": "#ffffff",
            "block-cursor-text-style": "none",
            "block-cursor-blurred-background": "#17324a",
        },
    ),
    Theme(
        name=f"{DEFAULT_THEME}-light",
        primary="#0f6f95",
        secondary="#5a6f8a",
        accent="#b35c00",
        warning="#946200",
        error="#b3261e",
        success="#2f7a4f",
        foreground="#17283b",
        background="#f4f7fa",
        surface="#e9eef4",
        panel="#d8e2ec",
        dark=False,
        variables={
            "border": "#a9bccd",
            "border-blurred": "#c3d1de",
            "block-cursor-background": "#b5d6e6",
            "block-cursor-foreground": "#0c1622",
            "block-cursor-text-style": "none",
            "block-cursor-blurred-background": "#d3e4ee",
        },
    ),
)
