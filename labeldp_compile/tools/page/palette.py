"""Colours by their part in a page, in the light and in the dark scheme.

Text (ink, soft, accent, mark, good, mind, bad) stands out from what is behind it (page, panel,
alarm, amber, best) by 4.5 to 1, and lines and marks from the page by 3 to 1, as WCAG 2.2 AA asks
(success criteria 1.4.3 and 1.4.11). Grid lines are decoration.
"""

from __future__ import annotations

LIGHT = {
    "page": "#ffffff",
    "panel": "#f3f5f7",
    "ink": "#1a1a1a",
    "soft": "#565c63",
    "grid": "#cfd4d9",
    "accent": "#1f5fa8",
    "mark": "#b3470c",
    "good": "#1b6a34",
    "mind": "#7a4700",
    "bad": "#b0241c",
    "alarm": "#fdeceb",
    "amber": "#fdf1d8",
    "best": "#e4f1e7",
}
DARK = {
    "page": "#14171a",
    "panel": "#1e2328",
    "ink": "#e9eaec",
    "soft": "#abb2b9",
    "grid": "#3d454d",
    "accent": "#6fb3f7",
    "mark": "#f2955c",
    "good": "#74d08e",
    "mind": "#f0bd62",
    "bad": "#ff9389",
    "alarm": "#3c1a18",
    "amber": "#36290f",
    "best": "#1d3926",
}


def css_variables() -> str:
    """The rules that define one variable a colour; paper is light, whatever the screen is."""
    light, dark = (
        " ".join(f"--{name}: {colour};" for name, colour in scheme.items())
        for scheme in (LIGHT, DARK)
    )
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )
