"""The five distributions as they are shipped, each with what it says it needs and nothing else."""

import os
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PACKAGES = {  # distribution → where it is built, and its package
    "labeldp-verify": ("verifier", "verifier/labeldp_verify"),
    "labeldp-runtime": ("runtime", "runtime/labeldp_runtime"),
    "labeldp-learn": ("learn", "learn/labeldp_learn"),
    "labeldp": (".", "labeldp_compile"),
    "labeldp-trainer": ("trainer", "trainer/labeldp_trainer"),
}
SPEC = ROOT / "specs/health-rating.yaml"


def run(*command, code=0):
    """What a command says, away from this checkout."""
    done = subprocess.run(
        [*map(str, command)],
        cwd="/",
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The wheel of each distribution, built from its source distribution."""
    folder, found = tmp_path_factory.mktemp("wheels"), {}
    for name, (source, _) in PACKAGES.items():
        out = folder / name
        run(sys.executable, "-m", "build", "-n", "-o", out, ROOT / source)
        (found[name],) = out.glob("*.whl")
    return found


def requirements(text, extras):
    """The names that a distribution needs with these extras."""
    for line in text:
        it = Requirement(line)
        if it.marker is None or any(it.marker.evaluate({"extra": e}) for e in (extras or {""})):
            yield canonicalize_name(it.name), frozenset(it.extras)


def needed(wheels, asked):
    """(wheels, installed distributions) that installing this one, with its extras, brings."""
    asked = Requirement(asked)
    ours, theirs, todo = {asked.name}, set(), [(asked.name, frozenset(asked.extras))]
    seen = set(todo)
    while todo:
        name, extras = todo.pop()
        if name in wheels:
            ours.add(name)
            with zipfile.ZipFile(wheels[name]) as file:
                (path,) = (path for path in file.namelist() if path.endswith("/METADATA"))
                lines = file.read(path).decode().splitlines()
            wants = [
                line.removeprefix("Requires-Dist: ")
                for line in lines
                if line.startswith("Requires-Dist: ")
            ]
        else:
            theirs.add(name)
            wants = metadata.distribution(name).requires or []
        new = set(requirements(wants, extras)) - seen
        seen |= new
        todo += new
    return ours, theirs


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    """A function from a distribution to the programs of an environment with it, made once."""
    made = {}

    def programs(name):
        if name not in made:
            made[name] = environment(wheels, name, tmp_path_factory.mktemp(name))
        return made[name]

    return programs


def environment(wheels, name, folder):
    """Wheels are installed; what they need is linked from here, and nothing that they do not."""
    venv.create(folder, symlinks=True)
    python = folder / "bin/python"
    ours, theirs = needed(wheels, name)
    files = [wheels[name] for name in ours]
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", *files)
    site = Path(run(python, "-c", "import site; print(site.getsitepackages()[0])").strip())
    for other in theirs:
        distribution = metadata.distribution(other)
        for top in {path.parts[0] for path in distribution.files} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(distribution.locate_file(top))
    return folder / "bin"


@pytest.mark.parametrize("name", PACKAGES)
def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheels, name):
    package = ROOT / PACKAGES[name][1]
    here = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    if name == "labeldp":  # ``labeldp export --to coq`` brings the theory
        proofs = (ROOT / "proofs").glob("*.v")
        here |= {f"labeldp_compile/export/coq/theory/{path.name}" for path in proofs}
        here.add("labeldp_compile/cli/randhie.parquet")  # the sample table of the tour
    with zipfile.ZipFile(wheels[name]) as file:
        shipped = {path for path in file.namelist() if ".dist-info/" not in path}
    assert shipped == here and f"{package.name}/py.typed" in shipped
    if name == "labeldp":
        assert {Path(path).suffix for path in shipped} >= {
            ".html",
            ".css",
            ".jinja",
            ".typed",
        }


@pytest.fixture(scope="module")
def artifact(installed, tmp_path_factory):
    """An artifact that the installed compiler made."""
    folder = tmp_path_factory.mktemp("made")
    labeldp = installed("labeldp") / "labeldp"
    run(labeldp, "compile", SPEC, "-o", folder)
    return folder / "health-rating.onnx"


def test_the_compiler_compiles_and_reports(installed, artifact):
    page, labeldp = artifact.with_suffix(".html"), installed("labeldp") / "labeldp"
    assert run(labeldp, "--version").startswith("labeldp, version ")
    run(labeldp, "verify", artifact, "--spec", SPEC)
    of_pages = {
        "report": (artifact, "-o", page),
        "sweep": (SPEC, "-o", page),
        "audit": (artifact, "--untrained", SPEC, "--label", "y", "--epsilon", 1, "-o", page),
    }
    for name, options in of_pages.items():
        assert "pip install matplotlib" in run(labeldp, name, *options, code=2)
    run(installed("labeldp[pages]") / "labeldp", "report", artifact, "-o", page)
    assert "<style>" in page.read_text("utf-8")


def test_the_auditor_needs_only_the_verifier(installed, artifact):
    programs = installed("labeldp-verify")
    assert "labeldp-verify" in run(programs / "labeldp-verify", "--help")
    said = run(programs / "labeldp-verify", artifact)
    assert "verified." in said
    absent = ["labeldp_compile", "labeldp_runtime", "opendp", "pyarrow", "scipy", "yaml", "click"]
    script = "import importlib.util, sys; print(*filter(importlib.util.find_spec, sys.argv[1:]))"
    assert run(programs / "python", "-c", script, *absent).split() == []


def test_the_runtime_needs_only_itself(installed, artifact):
    script = (
        "import importlib.util as u, sys; from labeldp_runtime import Randomizer;"
        "print(Randomizer.load(sys.argv[1])(['good'] * 3).shape);"
        "print([n for n in ('labeldp_verify', 'onnx', 'cryptography') if u.find_spec(n)])"
    )
    programs = installed("labeldp-runtime")
    said = run(programs / "python", "-c", script, artifact)
    assert said.split("\n")[:2] == ["(3,)", "[]"]


def test_private_labels_in_other_tools_need_only_the_verifier(installed, artifact):
    script = (
        "import importlib.util as u, sys; from labeldp_learn import PrivateLabels;"
        "print(PrivateLabels(sys.argv[1], ['good'] * 3).targets().shape);"
        "print([n for n in ('labeldp_compile', 'labeldp_runtime', 'pyarrow') if u.find_spec(n)])"
    )
    programs = installed("labeldp-learn")
    said = run(programs / "python", "-c", script, artifact)
    assert said.split("\n")[:2] == ["(3, 4)", "[]"]


def test_the_trainer_is_found_by_the_command(installed):
    programs = installed("labeldp-trainer")
    said = run(programs / "labeldp", "train", "--help")
    assert "--" in said and "labeldp train" in said
    run(programs / "python", "-c", "import labeldp_trainer.run")


def least(wheels, folder):
    """The programs of an environment with the least version of all that these wheels require."""
    venv.create(folder, with_pip=True, symlinks=True)
    bounds = {}
    for wheel in wheels.values():
        with zipfile.ZipFile(wheel) as file:
            (path,) = (path for path in file.namelist() if path.endswith("/METADATA"))
            lines = file.read(path).decode().splitlines()
        for line in lines:
            it = Requirement(line.removeprefix("Requires-Dist: ")) if "Requires-Dist" in line else 0
            extras = str(it.marker) if it and it.marker else "pages"
            chosen = it and ("scikit-learn" in extras or "pages" in extras)
            if chosen and it.name not in wheels:
                (bound,) = it.specifier
                assert bound.operator == ">=", line
                bounds.setdefault(it.name, []).append(Version(bound.version))
    pins = [f"{name}=={max(versions)}" for name, versions in sorted(bounds.items())]
    run(folder / "bin/python", "-m", "pip", "install", "-q", *wheels.values(), *pins)
    return folder / "bin"


def test_the_least_versions_are_enough_to_train(wheels, tmp_path):
    labeldp = least(wheels, tmp_path / "least") / "labeldp"
    rows = "".join(f"{row / 100},{row % 6}\n" for row in range(600))
    for table in ("train", "test"):
        (tmp_path / f"{table}.csv").write_text(f"x,y\n{rows}")
    for kind, more in (
        ("one_release", "label_range: [0, 5]}"),
        ("staged_release", "label_range: [0, 5]}"),
        ("dp_sgd", "clip_norm: 1}\nmodel: {kind: linear}\noptimizer: {kind: sgd, learning_rate: 1}"
        "\ntraining: {epochs: 1, batch_size: 100, seed: 1}"),
    ):  # fmt: skip
        config, folder = tmp_path / f"{kind}.yaml", tmp_path / kind
        config.write_text(
            f"version: 1\nname: low\ndata: {{kind: table, train: {tmp_path}/train.csv, "
            f"test: {tmp_path}/test.csv, label: y, numeric: [x]}}\nloss: squared\n"
            f"method: {{kind: {kind}, epsilon: 1, delta: 1e-5, {more}\n"
        )
        run(labeldp, "train", config, "-o", folder)
        run(labeldp, "predict", folder, tmp_path / "test.csv", "-o", tmp_path / f"{kind}.csv")
        run(labeldp, "export", folder, "--to", "onnx", "-o", tmp_path / f"{kind}.onnx")


def test_the_least_versions_are_enough(wheels, tmp_path):
    ours = {name: wheel for name, wheel in wheels.items() if name != "labeldp-trainer"}
    lowest = least(ours, tmp_path / "least")
    labeldp = lowest / "labeldp"
    table, private = tmp_path / "table.csv", tmp_path / "private.csv"
    table.write_text("id,y\n" + "".join(f"{row},{row % 6}\n" for row in range(600)))
    for kind in ("rr_on_bins", "optimal_unbiased", "optimal_unbiased, outputs: {grid: 9}"):
        spec = tmp_path / "spec.yaml"
        spec.write_text(
            "version: 1\nname: low\nlabel: {column: y, domain: {kind: integer, min: 0, max: 5}}\n"
            f"loss: squared\nprivacy: {{epsilon: 1}}\nprior: {{kind: uniform}}\n"
            f"mechanism: {{kind: {kind}}}\n"
        )
        run(labeldp, "plan", spec)
        run(labeldp, "compile", spec, "-o", tmp_path, "--overwrite")
        run(lowest / "labeldp-verify", tmp_path / "low.onnx")
    file = tmp_path / "low.onnx"
    run(labeldp, "verify", file, "--spec", spec)
    run(labeldp, "report", file, "-o", tmp_path / "page.html")
    run(labeldp, "keygen", tmp_path / "key")
    run(labeldp, "randomize", file, table, "--column", "y", "-o", private)
    run(labeldp, "estimate", file, private)
    run(labeldp, "sweep", spec)
    run(labeldp, "diff", file, file)
    run(labeldp, "ledger", "init", tmp_path / "budget.ledger")
    run(labeldp, "ledger", "show", tmp_path / "budget.ledger")
    listed = "from labeldp_compile.cli import main; print(*main.list_commands(None))"
    for command in run(lowest / "python", "-c", listed).split():
        asked = [str(labeldp), command, "--help"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 2) and "Traceback" not in done.stderr, done.stderr
    names = "import labeldp_learn as face; [getattr(face, name) for name in face.__all__]"
    run(lowest / "python", "-c", names)
