"""Artifacts that several engines are tested with."""

from runtime.tests.helpers import file

RESPONSE, TEXT = file("response"), file("text")
SMALL = "response, 12 bits"  # whose probabilities are easily counted
