"""A certificate that a training config names, and that somebody else may have written."""

import json

import pytest
from labeldp_trainer.errors import ArtifactError
from labeldp_trainer.methods import certificate

from trainer.tests.trainer_helpers import INTEGERS, compile_text


def test_no_more_is_read_than_a_certificate_may_have(tmp_path, limit):
    text = json.dumps(compile_text(INTEGERS, tmp_path).certificate.to_json())
    path = tmp_path / "certificate.json"
    path.write_text(text)
    limit(certificate, "_MAX_BYTES", len(path.read_bytes()) - 1)
    with pytest.raises(ArtifactError, match="is not a labeldp certificate"):
        certificate.certificate_source(path)


def test_a_certificate_that_names_something_twice_is_damaged(tmp_path):
    """The last one counted, and a reader can see the first."""
    text = json.dumps(compile_text(INTEGERS, tmp_path).certificate.to_json())
    path = tmp_path / "certificate.json"
    path.write_text(text)
    assert certificate.certificate_source(path).certificate.name
    path.write_text('{"name": "another", ' + text[1:])
    with pytest.raises(ArtifactError, match="is not a labeldp certificate"):
        certificate.certificate_source(path)
