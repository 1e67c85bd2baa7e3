"""The trainer counts no rows for an artifact whose unit is a person: it does not draw with it."""

import re

import pytest
from labeldp_trainer.errors import ArtifactError
from labeldp_trainer.methods.privatized import load_randomizer

from trainer.tests.trainer_helpers import INTEGERS, compile_text


def test_an_artifact_with_a_rule_about_persons_draws_nothing_here(tmp_path):
    unit = "{epsilon: 1, unit: person, person_column: id, labels_per_person: 2}"
    text = re.sub(r"privacy: .*", f"privacy: {unit}", INTEGERS)
    path = compile_text(text, tmp_path).write(tmp_path)
    with pytest.raises(ArtifactError, match=r"at most 2 rows.*train on its output"):
        load_randomizer(path)
