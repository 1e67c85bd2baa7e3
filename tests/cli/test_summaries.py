"""A command prints at most 15 lines, the verdict last; --verbose prints everything."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main

ROOT = Path(__file__).parents[2]
MOST_LINES = 15


def labeldp(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(spec, artifact, private table) of the sample data, and of groups."""
    folder = tmp_path_factory.mktemp("summaries")
    table = folder / "visits.parquet"
    shutil.copy(ROOT / "specs" / "data" / "randhie.parquet", table)
    found = {}
    ways = {"one": [], "groups": ["--groups", "hlthp"], "labels": ["--goal", "labels"]}
    for name, options in ways.items():
        spec = folder / f"{name}.yaml"
        labeldp(
            *("init", table, "--column", "mdvis", "--range", "0..24", "--epsilon", "2"),
            *("--yes", "-o", spec, *options),
        )
        labeldp("compile", spec, "-o", folder / name, "--quiet")
        (artifact,) = (folder / name).glob("*.onnx")
        private = folder / f"{name}.parquet"
        labeldp("randomize", artifact, table, "-o", private, "--quiet")
        found[name] = spec, artifact, private
    return folder, found


COMMANDS = {
    "plan": (lambda spec, artifact, private: ("plan", spec), "labeldp compile "),
    "verify": (lambda spec, artifact, private: ("verify", artifact), ": verified."),
    "estimate": (lambda spec, artifact, private: ("estimate", artifact, private), " of mdvis: "),
}


@pytest.mark.parametrize("name", ["one", "groups", "labels"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_summary_is_short_and_ends_with_the_verdict(made, command, name):
    words, verdict = COMMANDS[command]
    words = words(*made[1][name])
    short = labeldp(*words).stdout.splitlines()
    assert len(short) <= MOST_LINES, short
    assert verdict in short[-1]
    long = labeldp(*words, "--verbose").stdout.splitlines()
    assert len(long) > 0 and long != short


@pytest.mark.parametrize("name", ["one", "groups", "labels"])
def test_compile_prints_a_short_summary(made, name):
    folder, found = made
    said = {}
    for verbose in ([], ["--verbose"]):
        out = folder / f"again-{name}{len(verbose)}"
        said[len(verbose)] = labeldp("compile", found[name][0], "-o", out, *verbose).stderr
    own = [line for line in said[0].splitlines() if not line.startswith("labeldp: ")]
    assert len(own) <= MOST_LINES, own
    assert own[-1].startswith("compiled: check it with labeldp verify ")
    assert "ε per label" in said[0] and "(proved" in said[0]
    assert len(said[1].splitlines()) > len(said[0].splitlines())


def test_a_failed_check_is_always_printed(made):
    _, artifact, _ = made[1]["one"]
    done = CliRunner().invoke(main, ["verify", str(artifact), "--max-epsilon", "0.5"])
    assert done.exit_code == 1
    assert (
        "FAILED limits" in done.stdout and "NOT WITHIN THE LIMITS" in done.stdout.splitlines()[-1]
    )
