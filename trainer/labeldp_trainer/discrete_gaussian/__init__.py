"""Discrete Gaussian noise on integers: how much is needed for (ε, δ), with proof, and drawing
it."""
