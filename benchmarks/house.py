"""The size of the house: code lines, files, and the files that five commands enter.

    python benchmarks/house.py            # a markdown table
    python benchmarks/house.py importers  # files of the product that one other file imports

A code line is a line that is not blank, not a comment and not part of a docstring. A command enters
a file when it runs one of its functions or class bodies; importing a module alone does not count.
"""

import ast
import json
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = [
    ROOT / "verifier/labeldp_verify",
    ROOT / "runtime/labeldp_runtime",
    ROOT / "learn/labeldp_learn",
    ROOT / "labeldp_compile",
    ROOT / "trainer/labeldp_trainer",
]
SPEC = """version: 1
name: walk
label: {column: y, domain: {kind: integer, min: 0, max: 5}}
loss: squared
privacy: {epsilon: 1, split: auto}
prior: {kind: private, data: table.csv}
mechanism: {kind: optimal_unbiased}
"""
CONFIG = """version: 1
name: walk
data: {kind: table, train: table.csv, test: test.csv, label: y, numeric: [x], categorical: [g]}
loss: squared
method: {kind: staged_release, epsilon: 1, delta: 1e-5, label_range: [0, 5]}
"""
ROWS = [f"{row},{row * row % 977},{'abc'[row % 3]},{row % 6}\n" for row in range(900)]
WALKS = {
    "compile": ["compile", "spec.yaml", "-o", "build"],
    "verify": ["verify", "build/walk.onnx"],
    "randomize": ["randomize", "build/walk.onnx", "table.csv", "--column", "y", "-o", "out.csv"],
    "check": ["check", "build/walk.onnx", "--policy", "policy.yaml"],
    "staged training": ["train", "train.yaml", "-o", "run"],
}


def product():
    """Every Python file of the five packages."""
    return sorted(path for package in PACKAGES for path in package.rglob("*.py"))


def files_of_tests():
    """Every Python file of the tests."""
    folders = ["tests", *(f"{name}/tests" for name in ("verifier", "runtime", "learn", "trainer"))]
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def code_lines(path):
    """Lines that are not blank, not a comment and not part of a docstring."""
    text = path.read_text(encoding="utf-8")
    written = (line.strip() for line in text.splitlines())
    lines, prose = {n for n, line in enumerate(written, 1) if line and line[0] != "#"}, set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant | ast.JoinedStr):  # of several lines, also blank ones
            lines.update(range(node.lineno, node.end_lineno + 1))
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            prose.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines - prose)


def importers():
    """File → the files that import it: a package's ``__init__`` counts, and annotations do."""
    modules = {}
    for path in product():
        parts = path.relative_to(next(p for p in PACKAGES if p in path.parents).parent)
        name = ".".join(parts.with_suffix("").parts).removesuffix(".__init__")
        modules[name] = path
    who = defaultdict(set)
    for path in product():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                it = modules.get(name) or modules.get(name.rpartition(".")[0])
                if it is not None and it != path:
                    who[it].add(path)
    return who


def entered(arguments):
    """The files of the product that a command enters, from a process of its own."""
    files = set()
    packages = tuple(f"{package}/" for package in PACKAGES)

    def hook(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and frame.f_code.co_name != "<module>" and file.startswith(packages):
            files.add(file)

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        from labeldp_compile.cli import main

        main(arguments)
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(files)


def walks():
    """Command → the files that it enters, on made-up data in a temporary folder."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "spec.yaml").write_text(SPEC, encoding="utf-8")
        (place / "train.yaml").write_text(CONFIG, encoding="utf-8")
        (place / "policy.yaml").write_text("version: 1\nmax_epsilon_total: 2\n", encoding="utf-8")
        for name, rows in (("table", ROWS[:600]), ("test", ROWS[600:])):
            text = f"id,x,g,y\n{''.join(rows)}"
            (place / f"{name}.csv").write_text(text, encoding="utf-8")
        for name, arguments in WALKS.items():
            command = [sys.executable, __file__, "walk", *arguments]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{name}: {done.stderr}")
            found[name] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(arguments):
    if arguments[:1] == ["walk"]:
        print(json.dumps(entered(arguments[1:])))
    elif arguments == ["importers"]:
        for path, who in sorted(importers().items()):
            if len(who) == 1 and path.name != "__init__.py":
                print(path.relative_to(ROOT), "←", min(who).relative_to(ROOT))
    else:
        lines = {path: code_lines(path) for path in product()}
        print("| | now |\n|---|---:|")
        print(f"| code lines of the product | {sum(lines.values()):,} |")
        print(f"| files of the product | {len(lines)} |")
        print(f"| files under 30 code lines | {sum(count < 30 for count in lines.values())} |")
        print(f"| code lines of tests | {sum(map(code_lines, files_of_tests())):,} |")
        alone = [path for path, who in importers().items() if len(who) == 1]
        print(f"| files with one importer | {sum(p.name != '__init__.py' for p in alone)} |")
        for name, files in walks().items():
            print(f"| files entered: {name} | {len(files)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
