"""A process that is copied, and does not notice, never draws what its copy draws.

OpenSSL's generator gives both the same bytes: it looks at the process id alone.
"""

import pytest

from runtime.tests.copied_process import COPIES, assert_unlike
from runtime.tests.helpers import path_of

DRAWS = {
    "a few bytes": "random_bytes(32)",
    "many words": "random_words(70_000, 2)",
}
INTEGERS = path_of("integers")


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("draw", DRAWS)
def test_words_of_a_copy(copying_process, copy, draw):
    imports = "from labeldp_runtime.entropy import random_bytes, random_words"
    assert_unlike(copying_process, copy, imports, DRAWS[draw])


@pytest.mark.parametrize("copy", COPIES)
def test_words_of_a_copy_where_openssl_is_hidden(copying_process, copy):
    imports = "from labeldp_runtime import entropy; entropy._stream = None"
    assert_unlike(copying_process, copy, imports, "entropy.random_words(70_000)")


@pytest.mark.parametrize("copy", COPIES)
def test_private_labels_of_a_copy(copying_process, copy):
    imports = f"from labeldp_runtime import Randomizer; r = Randomizer.load({str(INTEGERS)!r})"
    assert_unlike(copying_process, copy, imports, "r([3] * 64)")
