"""Artifacts that several engines are tested with."""

import base64

from benchmarks.shared.compiled import RESPONSE_SPEC, compile_text
from tests.verify.test_mutations import CATEGORICAL_SPEC

TOO_FAR = 80  # of chi-square with 9 degrees of freedom: a chance of 2e-13
RESPONSE = compile_text(RESPONSE_SPEC)
SMALL = compile_text(RESPONSE_SPEC, word_bits=12)  # whose probabilities are easily counted
TEXT = compile_text(CATEGORICAL_SPEC)


def chi_square(seen, expected, rows):
    """Pearson's statistic of counts {value: count} against weights that sum to 2^12."""
    assert set(seen) <= set(expected) and sum(seen.values()) == rows
    means = {value: rows * weight / 4096 for value, weight in expected.items()}
    return sum((seen.get(value, 0) - mean) ** 2 / mean for value, mean in means.items())


def found_under(folder, secret):
    """Files that hold the secret, as bytes, in hexadecimal or in base64."""
    forms = (secret, secret.hex().encode(), base64.b64encode(secret))
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if any(form in file.read_bytes() for form in forms)]
