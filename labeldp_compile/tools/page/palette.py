"""Colours by their role in a page, in the light and in the dark scheme.

Text (ink, soft, accent, mark, good, mind, bad) has a contrast of at least 4.5 to 1 with its
background (page, panel, alarm, amber, best). Lines and marks have at least 3 to 1 with the page.
WCAG 2.2 AA requires this (success criteria 1.4.3 and 1.4.11). Grid lines are decoration.
"""

_COLOURS = {
    "page": ("#ffffff", "#14171a"),
    "panel": ("#f3f5f7", "#1e2328"),
    "ink": ("#1a1a1a", "#e9eaec"),
    "soft": ("#565c63", "#abb2b9"),
    "grid": ("#cfd4d9", "#3d454d"),
    "accent": ("#1f5fa8", "#6fb3f7"),
    "mark": ("#b3470c", "#f2955c"),
    "good": ("#1b6a34", "#74d08e"),
    "mind": ("#7a4700", "#f0bd62"),
    "bad": ("#b0241c", "#ff9389"),
    "alarm": ("#fdeceb", "#3c1a18"),
    "amber": ("#fdf1d8", "#36290f"),
    "best": ("#e4f1e7", "#1d3926"),
}
LIGHT = {name: light for name, (light, _) in _COLOURS.items()}
DARK = {name: dark for name, (_, dark) in _COLOURS.items()}


def css_variables() -> str:
    """CSS rules with one variable per colour; printed pages use the light scheme."""
    light, dark = (
        " ".join(f"--{name}: {colour};" for name, colour in scheme.items())
        for scheme in (LIGHT, DARK)
    )
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )
