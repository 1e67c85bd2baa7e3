"""The usefulness of private labels, from verified integers. It decides nothing about privacy."""
