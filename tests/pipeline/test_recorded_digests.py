"""Specs whose integers depend on no solver of floats compile to the same integers as ever.

The digests were recorded before the redesign of version 0.3. A solver's output values, and the
means of bins, differ from one processor to another in the last digit of a float: no digest of such
specs is kept here.
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main

SPECS = Path(__file__).parents[2] / "specs"
DIGESTS = {
    "health-rating": "41497b7b4b49401d6aed5ccd40b0da167e05a9e654fbd437b5458e41394f8d18",
    "hours-per-week": "30f6f7b2c648a9eb040a7a1ca56480b1363db7bcfe8e121d6cf3679d9438ac34",
    "visits-and-health": "f4018cd0be2d09509a6b2c1546d6367bd3ca3f17eda7f5a51be15e63ad470fbc",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_the_integers_are_those_that_were_recorded(name, tmp_path):
    spec = SPECS / f"{name}.yaml"
    options = ["compile", str(spec), "-o", str(tmp_path), "--insecure-test-seed", "7"]
    result = CliRunner().invoke(main, options)
    assert result.exit_code == 0, result.output
    certificate = json.loads((tmp_path / f"{name}.certificate.json").read_text(encoding="utf-8"))
    assert certificate["digests"]["tables"] == DIGESTS[name]
