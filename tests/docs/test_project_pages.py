"""The pages for contributors name what exists, and the changelog has a section of the version."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = sorted(
    path for path in ROOT.glob("**/pyproject.toml") if not {".venv", "build"} & set(path.parts)
)


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def projects():
    return [tomllib.loads(path.read_text(encoding="utf-8"))["project"] for path in PROJECTS]


def test_the_version_has_a_section_of_the_changelog_and_the_citation_names_it():
    (version,) = {project["version"] for project in projects()}
    changelog = text_of("CHANGELOG.md")
    assert changelog.index("\n## Unreleased\n") < changelog.index(f"\n## {version}\n")
    assert f"\nversion: {version}\n" in text_of("CITATION.cff")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md"])
def test_pages_for_contributors_name_what_exists(page):
    text = text_of(page)
    assert "://" not in text and not re.search(r"\w@\w", text)
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.M))
    assert set(re.findall(r"^    make ([a-z]+)", text, re.M)) <= targets
    named = re.findall(
        r"(?:^|[`\s])((?:tests|labeldp_compile|benchmarks|specs|docs|runtime)/[\w./-]+)", text
    )
    for name in named:
        added = name.endswith(("/noisy_identity.py", "export/certificate.py"))  # examples
        assert added or (ROOT / name).exists(), name
    assert page == "SECURITY.md" or len(named) >= 5


def test_ci_runs_what_make_test_leaves_out():
    makefile, ci = text_of("Makefile"), text_of(".ci/run")
    assert re.findall(r"^make ([a-z-]+)$", ci, re.M) == ["test", "slow", "tools", "test-alone"]
    assert "MARKED := not slow\n" in makefile and "unit MARKED=slow\n" in makefile
    assert "export LABELDP_ALL=1\n" in ci
