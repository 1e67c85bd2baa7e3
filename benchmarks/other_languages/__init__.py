"""Runs the examples of Node, the browser and C++, and pages, for tests and measurements."""
