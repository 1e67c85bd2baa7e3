"""Who imports whom: data flows one way, and the verifier and the runtime stand alone."""

import ast
import subprocess
import sys
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "labeldp_verify": ROOT / "verifier/labeldp_verify",
    "labeldp_runtime": ROOT / "runtime/labeldp_runtime",
    "labeldp_compile": ROOT / "labeldp_compile",
    "labeldp_trainer": ROOT / "trainer/labeldp_trainer",
}
# What each may import at all; what an extra brings is imported inside functions.
OURS = {
    "labeldp_verify": set(),
    "labeldp_runtime": {"labeldp_verify"},
    "labeldp_compile": {"labeldp_verify", "labeldp_runtime", "labeldp_trainer"},
    "labeldp_trainer": {"labeldp_verify", "labeldp_runtime", "labeldp_compile"},
}
THEIRS = {
    "labeldp_verify": {"numpy", "onnx", "onnxruntime", "cryptography"},
    "labeldp_runtime": {"numpy", "onnxruntime"},
}


def imports(node, *, inside=False):
    """(module, whether a function imports it), without what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, inside) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are absolute"
            yield child.module, inside
            yield from ((f"{child.module}.{alias.name}", inside) for alias in child.names)
        elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)):
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(child, inside=inside or function)


def modules(package):
    """(dotted name, its imports) of every file."""
    folder = PACKAGES[package]
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield name, list(imports(ast.parse(path.read_text(encoding="utf-8"))))


def room(module):
    """A package and the folder (or file) in it, each tool for itself: where a thing lives."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[1:2] == ["tools"] else 2])


@pytest.mark.parametrize("package", PACKAGES)
def test_distributions_depend_in_one_direction(package):
    for name, found in modules(package):
        for module, inside in found:
            top = module.split(".")[0]
            if top in PACKAGES and top != package:
                assert top in OURS[package], (name, module)
                # What an extra brings, and the trainer behind ``labeldp train``, is asked for late.
                late = {"labeldp_runtime": "labeldp_verify", "labeldp_compile": "labeldp_trainer"}
                assert inside or late.get(package) != top, (name, module)


@pytest.mark.parametrize("package", THEIRS)
def test_the_verifier_and_the_runtime_need_nothing_else(package):
    code = f"import {package}, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {module.split(".")[0] for module in loaded.stdout.split()}
    others = {"pyarrow", "pandas", "scipy", "opendp", "pydantic", "click", "yaml", "clarabel"}
    others |= {"mpmath", "matplotlib", "jax", "onnx", "cryptography", *PACKAGES}
    assert not loaded & (others - THEIRS[package] - {package})


def test_the_verifier_imports_nothing_else_anywhere():
    for name, found in modules("labeldp_verify"):
        for module, _ in found:
            top = module.split(".")[0]
            known = top in sys.stdlib_module_names or top in THEIRS["labeldp_verify"]
            assert known or top == "labeldp_verify", (name, module)


def test_nothing_that_compiles_needs_a_tool():
    for name, found in modules("labeldp_compile"):
        if name.split(".")[1:2] not in (["tools"], ["cli"], ["api"]):
            assert not any(module.startswith("labeldp_compile.tools") for module, _ in found), name


def test_the_two_that_stand_alone_walk_over_protobuf_alike():
    one, other = ((PACKAGES[p] / "wire.py").read_bytes() for p in THEIRS)
    assert one == other


@pytest.mark.parametrize("package", PACKAGES)
def test_no_import_goes_in_a_circle(package):
    every = dict(modules(package))
    files, rooms = defaultdict(set), defaultdict(set)
    for name, found in every.items():
        for module, inside in found:
            if not inside and module in every and module != name:
                files[name].add(module)
                if room(module) != room(name) and package not in (room(module), room(name)):
                    rooms[room(name)].add(room(module))
    # A package's own __init__ hands out names of its files: that is no circle.
    for name, needs in files.items():
        files[name] = {m for m in needs if not name.startswith(f"{m}.")}
    TopologicalSorter(files).prepare()
    TopologicalSorter(rooms).prepare()


def test_benchmarks_import_no_test():
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        for module, _ in imports(ast.parse(path.read_text(encoding="utf-8"))):
            assert module.split(".")[0] != "tests", (path, module)
