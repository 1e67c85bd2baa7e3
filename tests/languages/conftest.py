"""A page of headless Chromium for the tests that look at one."""

import os

import pytest

from tests.languages.browser import browser_page
from tests.languages.harness import chromium


@pytest.fixture(scope="module")
def tab():
    if chromium() is None:
        if os.environ.get("LABELDP_ALL"):
            pytest.fail("no Chromium: see build/languages/install.log")
        pytest.skip("no Chromium: run tests/languages/install")
    with browser_page() as page:
        yield page
