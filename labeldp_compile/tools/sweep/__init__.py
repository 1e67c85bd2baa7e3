"""Mechanisms side by side over a range of ε, each number from a verified artifact."""
