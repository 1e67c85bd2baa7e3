"""The trainer builds on labeldp by ordinary imports, which readers and tools can follow."""

import ast
import re
from pathlib import Path

import labeldp_trainer
import pytest

TRAINER = Path(labeldp_trainer.__file__).parent
FILES = sorted(TRAINER.rglob("*.py"))
LABELDP = r"\blabeldp_(compile|verify)\b"
DYNAMIC = {"import_module", "__import__", "find_spec", "exec", "eval", "run_module", "run_path"}


def hidden_imports(source):
    """Lines where a module could be loaded by a string, or labeldp's packages are named in one."""
    tree = ast.parse(source)
    bodies = [node.body for node in ast.walk(tree) if hasattr(node, "body")]
    first = (body[0] for body in bodies if isinstance(body, list) and body)
    docstrings = {id(node.value) for node in first if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            if name in DYNAMIC:
                yield node.lineno
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings and re.search(LABELDP, node.value):
            yield node.lineno


@pytest.mark.parametrize(
    "source",
    [
        "import importlib\nimportlib.import_module('x')",
        "from importlib import import_module\nimport_module(f'{a}.b')",
        "x = 1\n__import__('y')",
        "x = 1\nf(f'labeldp_compile.{name}')",
        "x = 1\nsys.modules['labeldp_verify']",
    ],
)
def test_the_test_finds_them(source):
    assert 2 in hidden_imports(source)


def test_only_the_trainers_own_exports_are_loaded_by_name():
    assert len(FILES) > 50
    found = {
        (path.relative_to(TRAINER).as_posix(), line)
        for path in FILES
        for line in hidden_imports(path.read_text(encoding="utf-8"))
    }
    assert sorted(path for path, _ in found) == ["methods/__init__.py"]
    for path, line in found:  # each inside its own package
        text = (TRAINER / path).read_text(encoding="utf-8").splitlines()[line - 1]
        assert 'import_module(f"{__name__}.' in text


def test_what_is_handed_out_by_name_is_the_trainers_own():
    stubs = sorted(TRAINER.rglob("*.pyi"))
    assert TRAINER / "__init__.pyi" in stubs
    for path in stubs:
        for line in ast.parse(path.read_text(encoding="utf-8")).body[1:]:
            assert isinstance(line, ast.ImportFrom)
            assert line.module.startswith("labeldp_trainer."), path
