"""Who imports whom: data flows one way, and the verifier and the runtime stand alone."""

import ast
import importlib
import inspect
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from labeldp_runtime import wire
from labeldp_verify import cost

from labeldp_compile.cli.export import target_modules

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "labeldp_verify": ROOT / "verifier/labeldp_verify",
    "labeldp_runtime": ROOT / "runtime/labeldp_runtime",
    "labeldp_learn": ROOT / "learn/labeldp_learn",
    "labeldp_compile": ROOT / "labeldp_compile",
    "labeldp_trainer": ROOT / "trainer/labeldp_trainer",
}
# What each may import at all; what an extra brings is imported inside functions.
OURS = {
    "labeldp_verify": set(),
    "labeldp_runtime": {"labeldp_verify"},
    "labeldp_learn": {"labeldp_verify"},
    "labeldp_compile": {"labeldp_verify", "labeldp_runtime", "labeldp_learn", "labeldp_trainer"},
    "labeldp_trainer": {"labeldp_verify", "labeldp_runtime", "labeldp_learn", "labeldp_compile"},
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
        elif isinstance(child, ast.expr):
            continue  # no expression holds an import
        elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)):
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from imports(child, inside=inside or function)


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def modules(package):
    """(dotted name, its imports) of every file."""
    return list(_modules(package))


def _modules(package):
    folder = PACKAGES[package]
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield name, list(imports(parsed(path)))


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


CORE = ("forms", "decode", "analysis", "graph", "claims", "steps", "kernel", "errors", "execute")
OUTSIDE = ("usefulness", "console", "artifact", "opening", "command", "limits")


def test_what_decides_imports_nothing_of_what_tells():
    """The trusted core of the verifier needs no figure of use, no report and no command."""
    for name, found in modules("labeldp_verify"):
        if name.split(".")[1:2] and name.split(".")[1] in CORE:
            for module, _ in found:
                assert not module.startswith(tuple(f"labeldp_verify.{r}" for r in OUTSIDE)), name


TOOLS = {"estimates", "evaluate", "sweeps", "audits", "check", "diff", "report", "page"}


def test_nothing_that_compiles_needs_a_tool():
    tools = tuple(f"labeldp_compile.{tool}." for tool in TOOLS)
    for name, found in modules("labeldp_compile"):
        if not {*TOOLS, "cli", "api", "export", "serve"} & set(name.split(".")[1:2]):
            assert not any(f"{module}.".startswith(tools) for module, _ in found), name


def test_nothing_else_imports_what_its_folder_deletes():
    deletable = [*target_modules().values(), "labeldp_compile.serve"]
    deletable += ["labeldp_compile.ledger.postgres"]
    assert len(deletable) > 4
    for package in PACKAGES:
        for name, found in modules(package):
            for folder in deletable:
                inside = f"{name}.".startswith(f"{folder}.")
                assert inside or not any(f"{it}.".startswith(f"{folder}.") for it, _ in found), name


def test_the_two_that_stand_alone_walk_over_protobuf_alike():
    for name in ("count_fields", "fields", "_varint"):
        one, other = (inspect.getsource(getattr(place, name)) for place in (cost, wire))
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


# A test of a script in benchmarks imports that script, and no other test imports one.
OF_SCRIPTS = {
    "tests/docs/test_pages.py": (
        "benchmarks.accuracy benchmarks.belief benchmarks.drawings benchmarks.report_pictures"
    ),
    "tests/fuzz/test_random_specs.py": "benchmarks.random_specs",
    "tests/hostile/test_budgets.py": "benchmarks.hostile",
    "tests/test_house.py": "benchmarks.house",
    "tests/training/test_gradient_audit.py": "benchmarks.gradient_audit",
    "tests/training/test_release_audit.py": "benchmarks.one_release_audit",
    "tests/training/test_rivals.py": "benchmarks.training_studies",
    "tests/training/test_staged_audit.py": "benchmarks.staged_release_audit",
}


def test_tests_import_no_script_but_those_that_they_test():
    found = defaultdict(set)
    for folder in ("tests", "trainer/tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for module, _ in imports(ast.parse(text)) if "benchmarks" in text else ():
                if module.startswith("benchmarks."):
                    found[path.relative_to(ROOT).as_posix()].add(".".join(module.split(".")[:2]))
    assert found == {path: {*scripts.split()} for path, scripts in OF_SCRIPTS.items()}


# Their tests run with nothing but their own wheel, what it requires, their own folder and files
# that are kept.
@pytest.mark.parametrize("folder", ["verifier", "runtime", "learn", "trainer"])
def test_tests_of_a_distribution_import_no_others(folder):
    own = (f"{folder}.tests.", "tests.golden.")
    files = sorted((ROOT / folder / "tests").rglob("*.py"))
    for path in (path for path in files if path.name != "write.py"):  # what wrote kept files
        for module, _ in imports(parsed(path)):
            ours = module.split(".")[0] in ("verifier", "runtime", "learn", "trainer", "tests")
            assert not ours or f"{module}.".startswith(own), f"{path}: {module}"


# What others may import of the verifier: the names that these packages list, and what is one file
# of its own that no room hands out.
FACES = ("", ".forms", ".analysis", ".graph", ".claims", ".decode")
ALONE = {
    *("artifact", "budget", "command", "errors", "kernel", "limits", "opening", "printable"),
    *("public_names", "rounded", "signature", "strict"),
    *(f"console.{name}" for name in ("attestation", "interrupts", "report")),
    *(f"usefulness.{name}" for name in ("estimates", "figures", "shortcomings")),
}
MODULES = {"cost", "steps"}  # of which limits are read when they are needed


def test_others_see_only_the_face_of_the_verifier():
    listed = {
        f"labeldp_verify{room}": set(importlib.import_module(f"labeldp_verify{room}").__all__)
        for room in FACES
    }
    listed["labeldp_verify"] |= MODULES
    alone = {f"labeldp_verify.{module}" for module in ALONE}
    for package in PACKAGES.keys() - {"labeldp_verify"}:
        for path in sorted(PACKAGES[package].rglob("*.py")):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.Import):
                    names = {a.name for a in node.names if a.name.startswith("labeldp_verify.")}
                    assert not names, (path, names)
                elif isinstance(node, ast.ImportFrom) and node.module.startswith("labeldp_verify"):
                    names = {alias.name for alias in node.names}
                    known = node.module in alone or names <= listed.get(node.module, set())
                    assert known, (path, node.module, names)


# Of the compiler the trainer imports one module, which lists names.
TRAINER_FACES = {
    *("labeldp_compile.toolkit", "labeldp_learn.toolkit"),
    *("labeldp_runtime", "labeldp_runtime.whole_file"),
    *(f"labeldp_verify{room}" for room in ("", ".analysis", ".claims", ".decode", ".forms")),
    *(f"labeldp_verify.{name}" for name in ("artifact", "errors", "opening", "printable")),
    *(
        f"labeldp_verify.{name}"
        for name in ("public_names", "rounded", "strict", "console.interrupts")
    ),
}


def test_the_trainer_sees_only_faces():
    assert len(TRAINER_FACES) <= 20
    names = set()
    for path in sorted(PACKAGES["labeldp_trainer"].rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom):
                ours = node.module.split(".")[0] in PACKAGES.keys() - {"labeldp_trainer"}
                assert not ours or node.module in TRAINER_FACES, (path, node.module)
                if node.module == "labeldp_compile.toolkit":
                    names |= {alias.name for alias in node.names}
    face = importlib.import_module("labeldp_compile.toolkit")
    assert sorted(names) == sorted(face.__all__)  # and nothing is there that it does not use
    for name in names:
        getattr(face, name)
