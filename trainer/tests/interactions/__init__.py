"""Tests of models of interactions, learned from releases, private labels and true labels."""
