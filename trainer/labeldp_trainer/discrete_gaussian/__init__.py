"""Discrete Gaussian noise on integers: how much proves (ε, δ), and drawing it."""
