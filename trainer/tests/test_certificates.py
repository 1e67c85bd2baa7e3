"""A certificate that a training config names, and that somebody else may have written."""

import contextlib
import json
import os
import threading

import pytest
from labeldp_trainer.errors import ArtifactError
from labeldp_trainer.methods import certificate

from trainer.tests.trainer_helpers import INTEGERS, compile_text


def test_no_more_is_read_than_a_certificate_may_have(tmp_path, limit):
    """A device or a pipe has no size before it is read."""
    text = json.dumps(compile_text(INTEGERS, tmp_path).certificate.to_json())
    pipe = tmp_path / "certificate.json"
    os.mkfifo(pipe)

    def read():
        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        try:
            return certificate.certificate_source(pipe)
        finally:
            thread.join()

    def write():
        with contextlib.suppress(BrokenPipeError):
            pipe.write_text(text)

    assert read().certificate.name
    limit(certificate, "_MAX_BYTES", len(text) - 1)
    with pytest.raises(ArtifactError, match="is not a labeldp certificate"):
        read()


def test_a_certificate_that_names_something_twice_is_damaged(tmp_path):
    """The last one counted, and a reader can see the first."""
    text = json.dumps(compile_text(INTEGERS, tmp_path).certificate.to_json())
    path = tmp_path / "certificate.json"
    path.write_text(text)
    assert certificate.certificate_source(path).certificate.name
    path.write_text('{"name": "another", ' + text[1:])
    with pytest.raises(ArtifactError, match="is not a labeldp certificate"):
        certificate.certificate_source(path)
