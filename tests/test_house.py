"""The house does not grow, and commands enter few files: benchmarks/house.py counts."""

import pytest

from benchmarks.house import code_lines, files_of_tests, importers, product, walks

MOST = {"files": 361, "code lines": 61_220, "code lines of tests": 43_060, "one importer": 58}
MOST_ENTERED = {
    "compile": 117,
    "verify": 62,
    "randomize": 90,
    "check": 64,
    "staged training": 118,
}


def test_the_house_does_not_grow():
    alone = [path for path, who in importers().items() if len(who) == 1]
    counts = {
        "files": len(product()),
        "code lines": sum(map(code_lines, product())),
        "code lines of tests": sum(map(code_lines, files_of_tests())),
        "one importer": sum(path.name != "__init__.py" for path in alone),
    }
    assert {name: count for name, count in counts.items() if count > MOST[name]} == {}


@pytest.mark.slow
def test_commands_enter_few_files():
    counts = {name: len(files) for name, files in walks().items()}
    assert counts.keys() == MOST_ENTERED.keys()
    assert {name: n for name, n in counts.items() if n > MOST_ENTERED[name]} == {}
