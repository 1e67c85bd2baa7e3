"""Scripts that measure and fuzz, and what they share with the tests."""
