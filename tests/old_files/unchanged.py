"""What every file of an earlier version must still do."""

import hashlib

from labeldp_compile import spec_match


def require_unchanged(path, entry, outputs):
    """The bytes are those of the manifest's entry, verify, and give its private labels.

    ``outputs`` are those of now. Returns the report.
    """
    assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
    report = spec_match.check_file(path, path.with_suffix(".yaml"))
    assert report.ok, report.checks[-1]
    for words in ("words", "keyed"):
        got = list(map(repr, outputs[words]))  # −0 and 0 differ
        assert got == list(map(repr, entry[words])), words
    return report
