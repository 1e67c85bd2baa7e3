"""``make release``: the same bytes from the same commit, and a list of what they need."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
FOLDERS = ("verifier", "runtime", "learn", ".", "trainer")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def shell(folder, *command, **environment):
    return subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**os.environ, "PYTHON": sys.executable, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A repository with what the distributions are built of, at its first commit."""
    folder = tmp_path_factory.mktemp("clone")
    wanted = [".ci/release", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", ".gitignore"]
    wanted += ["CONTRIBUTING.md", "SECURITY.md", "labeldp_compile", "verifier", "runtime"]
    wanted += ["learn", "trainer", "proofs", "specs/visits.yaml", "specs/data/randhie.parquet"]
    files = shell(ROOT, "git", "ls-files", "-z", "-c", "-o", "--exclude-standard", "--", *wanted)
    names = [name for name in files.stdout.split("\0") if name] or every(wanted)
    for name in sorted(names):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
        target.chmod((ROOT / name).stat().st_mode)
    who = ["-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "first"]):
        done = shell(folder, "git", *command, GIT_COMMITTER_DATE="2026-01-31T12:00:00Z")
        assert done.returncode == 0, done.stderr
    return folder


def every(wanted):
    """The same where there is no git, as in a source distribution."""
    for name in wanted:
        paths = [ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*")
        for path in paths:
            if path.is_file() and path.suffix != ".pyc":
                yield path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def dist(clone):
    """What ``.ci/release build`` writes: it builds twice, and compares."""
    done = shell(clone, ".ci/release", "build", "dist")
    assert done.returncode == 0, done.stderr + done.stdout
    return clone / "dist"


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_release_has_all_distributions_and_their_digests(dist):
    packages = ("labeldp", "labeldp_learn", "labeldp_runtime", "labeldp_trainer", "labeldp_verify")
    names = {f"{name}-{VERSION}-py3-none-any.whl" for name in packages}
    names |= {f"{name}-{VERSION}.tar.gz" for name in packages}
    found = digests(dist)
    lines = (dist / "SHA256SUMS").read_text().splitlines()
    stated = dict(reversed(line.split("  ")) for line in lines)
    assert {*stated} == names and {*found} == {*names, "SHA256SUMS"}
    assert all(found[name] == digest for name, digest in stated.items())


def test_two_builds_that_differ_are_no_release(clone, tmp_path):
    """As if the order, the place or the umask got into them."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build/__init__.py").write_text("")
    (tmp_path / "build/__main__.py").write_text(
        "import os, sys; out = sys.argv[sys.argv.index('--outdir') + 1]\n"
        "os.makedirs(out, exist_ok=True); open(out + '/x.whl', 'w').write(os.getcwd() + out)\n"
    )
    done = shell(clone, ".ci/release", "build", tmp_path / "dist", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1 and "two builds of the same commit differ" in done.stderr
    assert not (tmp_path / "dist").exists()


def test_nothing_is_replaced_and_only_commits_are_released(clone, dist, tmp_path):
    before = digests(dist)
    done = shell(clone, ".ci/release", "build", "dist")
    assert done.returncode == 2 and "exists already" in done.stderr
    (clone / "new.py").write_text("")
    done = shell(clone, ".ci/release", "build", tmp_path / "dist")
    (clone / "new.py").unlink()
    assert done.returncode == 2 and "commit the changes first" in done.stderr
    assert digests(dist) == before and not (tmp_path / "dist").exists()
    assert shell(clone, ".ci/release").returncode == 2


def test_what_is_needed_is_listed_in_cyclonedx(clone, dist, tmp_path):
    """Of a small environment, without what the distributions need."""
    env = tmp_path / "env"
    venv.create(env, symlinks=True)
    wheels = sorted(dist.glob("*.whl"))
    install = [sys.executable, "-m", "pip", "--python", env / "bin/python", "install", "--no-deps"]
    assert shell(clone, *install, "-q", *wheels).returncode == 0
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        done = shell(clone, ".ci/release", "sbom", tmp_path / folder, env / "bin/python")
        assert done.returncode == 0, done.stderr
    name = f"labeldp-{VERSION}.cdx.json"
    text = (tmp_path / "one" / name).read_text("utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    found = json.loads(text)
    assert found["metadata"]["component"]["name"] == "labeldp"
    assert found["metadata"]["component"]["version"] == VERSION
    assert "serialNumber" not in found
    listed = {part["name"]: part["version"] for part in found["components"]}
    for package in ("labeldp-learn", "labeldp-runtime", "labeldp-trainer", "labeldp-verify"):
        assert listed[package] == VERSION
    assert "file:" not in text and str(tmp_path) not in text
    (verifier,) = (part for part in found["components"] if part["name"] == "labeldp-verify")
    (where,) = (ref for ref in verifier["externalReferences"] if ref["type"] == "distribution")
    (wheel,) = dist.glob("labeldp_verify-*.whl")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert where["url"] == f"./{wheel.name}"
    assert where["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert name in (tmp_path / "one/SHA256SUMS").read_text()
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_all_distributions_have_one_version_and_one_license():
    for folder in FOLDERS:
        assert (ROOT / folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
        text = (ROOT / folder / "pyproject.toml").read_text("utf-8")
        assert tomllib.loads(text)["project"]["version"] == VERSION
        assert set(re.findall(r"\"labeldp[\w\[\]-]*==([\w.]+)\"", text)) <= {VERSION}
