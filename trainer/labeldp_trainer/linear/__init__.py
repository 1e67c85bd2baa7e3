"""Linear models from sums over all rows, without training steps."""
