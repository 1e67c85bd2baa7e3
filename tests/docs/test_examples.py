"""The public names: documented, and every example in their docstrings runs as it stands."""

import ast
import doctest
import importlib
import inspect
import re
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


def test_the_functions_are_functions_whatever_was_imported_before():
    for module in ("build.plan", "sweeps", "estimates", "audits", "cli.plan"):
        importlib.import_module(f"labeldp_compile.{module}")
    assert {name for name in FUNCTIONS if name.startswith("labeldp_compile.")} == {
        f"labeldp_compile.{name}"
        for name in (
            *("audit", "choose", "compile_spec", "estimate", "load_spec", "plan", "sweep"),
            "verify",
        )
    }


@pytest.mark.parametrize("name", sorted(FUNCTIONS | CLASSES))
def test_every_public_function_has_an_example(name):
    assert any(test.name == name or test.name.startswith(f"{name}.") for test in EXAMPLES)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_signatures_are_typed(name):
    annotations = [str(kind) for kind in OBJECTS[name].__annotations__.values()]
    assert len(annotations) == len(inspect.signature(OBJECTS[name]).parameters) + 1
    assert not any("Any" in kind for kind in annotations)


def public_functions(node):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from public_functions(child)
        elif isinstance(child, ast.FunctionDef) and (child.name[0] != "_" or "__" in child.name):
            yield child


@pytest.mark.parametrize(
    "file",
    [
        *("randomizer.py", "keys.py", "policy.py"),
        *("engines/polars.py", "engines/duckdb.py", "engines/spark.py"),
    ],
)
def test_the_runtime_says_what_it_takes_and_gives(file):
    tree = ast.parse((ROOT / "runtime/labeldp_runtime" / file).read_text(encoding="utf-8"))
    lists = (
        it
        for it in tree.body
        if isinstance(it, ast.Assign) and ast.unparse(it.targets[0]) == "__all__"
    )
    handed_out = next((ast.literal_eval(it.value) for it in lists), None)
    found = [it for it in public_functions(tree) if not handed_out or it.name in handed_out]
    assert found
    for function in found:
        signature = ast.unparse(function.args) + ast.unparse(function.returns)
        assert not re.search(r"\bAny\b", signature), function.name


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
