"""Artifacts of every form, small enough to compile for each session, and their pages."""

from functools import cache

import pytest

from labeldp_compile.page.pictures import inline_svg
from labeldp_compile.report.page import examine, report_page
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.fixtures.specs import spec

REAL_SPEC = spec(
    name="share",
    column="share",
    domain="{kind: real, min: 0.5, max: 3.0, points: 11}",
    mechanism="{kind: laplace, lattice: 0.05}",
)
DRAWN = "labeldp_compile.report.page.inline_svg"
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "$\\frac{1}{0}$",
    "日本",
    "#1a1a1a",
    "]]>",
    "a\u202eb",
    "&amp;",
    '"><script>alert(2)</script>',
    "</script>",
    "a name that goes on and on, much further than any picture has room for",
]
HOSTILE_SPEC = spec(
    name="hostile",
    column='"</title></script><script>alert(3)</script>"',
    values=[name.replace("\u202e", "�") for name in HOSTILE],
    out_of_domain={"default": "日本"},
    epsilon=1.5,
    prior={"kind": "public", "weights": [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]},
    mechanism="rr_with_prior",
)
SPECS = {
    "bins": INTEGER_SPEC,
    "unbiased": INTEGER_SPEC.replace("rr_on_bins", "optimal_unbiased"),
    "table": INTEGER_SPEC.replace("rr_on_bins", "exponential"),
    "additive": REAL_SPEC,
    "clipped": INTEGER_SPEC.replace("rr_on_bins", "staircase, clip: true, lattice: 0.25"),
    "penalty": INTEGER_SPEC.replace("rr_on_bins", "optimal_unbiased, bias: {penalty: 2}"),
    "poisson": INTEGER_SPEC.replace("squared", "poisson").replace(
        "min: 0, max: 9", "min: 1, max: 10"
    ),
    "hostile": HOSTILE_SPEC,
    "users": INTEGER_SPEC.replace("privacy: {", "privacy: {labels_per_user: 20, "),
}


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Paths of the artifacts by name."""
    folder = tmp_path_factory.mktemp("artifacts")
    for name, text in SPECS.items():
        (folder / f"{name}.onnx").write_bytes(compile_text(text).model)
    return {name: folder / f"{name}.onnx" for name in SPECS}


@pytest.fixture(scope="session")
def found(files):
    """What is found in each."""
    return {name: examine(path) for name, path in files.items()}


@pytest.fixture(scope="session")
def pages(found):
    """The page of each, with its pictures, made once."""

    @cache
    def page(name):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DRAWN, inline_svg)
            return report_page(found[name])

    return page


@pytest.fixture(autouse=True)
def words_alone(monkeypatch):
    """Drawing takes most of the time of a page, and most tests read only its words."""
    monkeypatch.setattr(DRAWN, lambda *_: "<svg></svg>")


@pytest.fixture
def with_pictures(words_alone, monkeypatch):
    monkeypatch.setattr(DRAWN, inline_svg)
