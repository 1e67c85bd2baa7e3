"""No message tells anybody to install a name that a stranger could publish.

Our own packages are in no registry: they are installed from a clone, by their folder. Other names
must be those of a dependency that some package of ours declares.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = (
    *("labeldp_compile", "runtime", "verifier", "learn", "trainer", "docs", "tests"),
    "benchmarks",
)
PROJECTS = (".", "runtime", "verifier", "learn", "trainer")
OWN = re.compile(r"labeldp([-_.]\w+)*")


def installed(text):
    """What every ``pip install`` of a text names, options and folders left out."""
    for found in re.finditer(r"pip install((?: +[^\s`:;]+)+)", text):
        for word in found[1].split():
            name = word.strip("'\",.()*")
            if not name or name.startswith(("-", ".", "/")) or "/" in name:
                continue
            yield re.split(r"[\[<>=]", name)[0]
            if word[-1] in "'\",.)":
                break


def declared():
    names = {"pyspark"}
    for project in PROJECTS:
        about = tomllib.loads((ROOT / project / "pyproject.toml").read_text("utf-8"))["project"]
        extras = about.get("optional-dependencies", {}).values()
        for requirement in [*about["dependencies"], *(name for extra in extras for name in extra)]:
            names.add(re.split(r"[\[<>=]", requirement)[0])
    return {name for name in names if not OWN.fullmatch(name)}


def texts():
    for folder in FOLDERS:
        for path in sorted({*(ROOT / folder).rglob("*")} - {Path(__file__)}):
            if path.name.endswith((".py", ".md", ".toml", ".html", ".sh", "Dockerfile")):
                yield path, path.read_text("utf-8", errors="replace")


def test_the_search_finds_names():
    text = "say pip install 'labeldp[docs]', or `pip install --user x==1 y` or pip install ./z"
    assert list(installed(text)) == ["labeldp", "x", "y"]


def test_the_compiler_is_installed_with_what_it_needs_of_ours():
    """Alone, pip would look for labeldp-verify, labeldp-runtime and labeldp-learn in a registry."""
    commands = []
    for _, text in texts():
        for found in re.findall(r"pip install ((?:\\\n|[^\n`#])*)", text):
            folders = [re.sub(r"\[.*", "", word.strip("'\",;)")) for word in found.split()]
            if {".", "./labeldp"} & {*folders}:
                commands.append({folder.rpartition("/")[2] for folder in folders})
    assert len(commands) >= 3
    assert all({"verifier", "runtime", "learn"} <= folders for folders in commands), commands


def test_only_names_that_a_clone_or_a_dependency_has():
    known, seen = declared(), 0
    for path, text in texts():
        for name in installed(text):
            assert not OWN.fullmatch(name), f"{path}: pip install {name}"
            if path.suffix == ".py" and "tests" not in path.parts and name.islower():
                assert name in known or name == "FOLDER", f"{path}: pip install {name}"
            seen += 1
    assert seen > 5
