"""The public names: documented, and every example in their docstrings runs as it stands."""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ["labeldp_compile", "labeldp_verify", "labeldp_runtime", "labeldp_learn"]


def public_objects():
    """(dotted name, object) of all functions and classes that the packages hand out."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        assert sorted(set(module.__all__)) == sorted(module.__all__)
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isfunction(found) or inspect.isclass(found):
                yield f"{package}.{name}", found


OBJECTS = dict(public_objects())
FUNCTIONS = {name for name, found in OBJECTS.items() if inspect.isfunction(found)}
# What a service holds in its hands.
CLASSES = {f"labeldp_runtime.{name}" for name in ("Key", "Policy", "Randomizer")}
EXAMPLES = [
    test
    for name, found in OBJECTS.items()
    for test in doctest.DocTestFinder(exclude_empty=True).find(found, name)
    if test.examples
]


@pytest.mark.parametrize("name", sorted(FUNCTIONS | CLASSES))
def test_every_public_function_has_an_example(name):
    assert any(test.name == name or test.name.startswith(f"{name}.") for test in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda test: test.name)
def test_the_example_runs(example, tmp_path, inside):
    (tmp_path / "specs").symlink_to(ROOT / "specs")
    inside(tmp_path)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(example, out=said.append).failed == 0, "".join(said)


@pytest.mark.slow
def test_the_site_has_them_all(site):
    for package in PACKAGES:
        page = (site / f"reference-{package}.html").read_text(encoding="utf-8")
        for name in importlib.import_module(package).__all__:
            constant = f"{package}.{name}" not in OBJECTS
            assert constant or f"<code>{name}</code>" in page, name
        assert page.count("&gt;&gt;&gt;") > 2 and "``" not in page
