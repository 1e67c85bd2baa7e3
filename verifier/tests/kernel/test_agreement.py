"""The kernel proves of every old file exactly what its certificate states."""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from fractions import Fraction
from pathlib import Path

import pytest
from labeldp_verify import kernel

ROOT = Path(__file__).parents[3]
OLD = sorted((ROOT / "tests/golden").rglob("*.onnx"))
SOURCE = Path(kernel.__file__)
MOST_LINES = 600


def stated(data, field):
    """A fraction of the certificate, read without the verifier; of tables by group, the first."""
    found = re.search(rb'"' + field.encode() + rb'":("[0-9/]+")', data)
    return Fraction(json.loads(found[1]))


@pytest.mark.parametrize("path", OLD, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_files_have_the_stated_ratio_and_epsilon(path):
    data = path.read_bytes()
    ratio = kernel.integers_of(data).ratio()
    assert ratio == stated(data, "realised_ratio")
    assert kernel.epsilon_of(ratio) == stated(data, "epsilon_label_bound")


def test_it_imports_the_standard_library_alone():
    imported = set()
    for node in ast.walk(ast.parse(SOURCE.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module)
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


def test_a_copy_alone_can_be_run(tmp_path):
    copy = tmp_path / "kernel.py"
    copy.write_bytes(SOURCE.read_bytes())
    done = subprocess.run(
        [sys.executable, "-I", "-S", copy, OLD[0]], capture_output=True, text=True, check=True
    )
    assert "ε ≤" in done.stdout
    command = [sys.executable, "-I", "-S", copy, copy]
    refused = subprocess.run(command, capture_output=True, check=False)
    assert refused.returncode == 1
    for files in ([tmp_path / "missing.onnx"], []):
        command = [sys.executable, "-I", "-S", copy, *files]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 2


def code_lines(source):
    """Lines of code: without blank lines, comments and docstrings."""
    kinds = {"MODULE", "COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER"}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if tokenize.tok_name[token.type] not in kinds:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def test_it_can_be_read_in_an_afternoon():
    assert code_lines(SOURCE.read_text("utf-8")) <= MOST_LINES
