"""What takes one table says so of a file with a table for each group."""

import pytest
from labeldp_verify.opening import open_artifact, table_of

from labeldp_compile.errors import InputError
from runtime.tests.helpers import path_of


def test_commands_that_take_no_groups_say_so():
    path = path_of("groups, codes")
    with pytest.raises(InputError, match="has a table for each group"):
        table_of(open_artifact(path), path, None)
