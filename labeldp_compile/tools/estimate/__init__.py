"""Aggregates of the true labels from private ones: histogram, mean, quantiles, with intervals."""
