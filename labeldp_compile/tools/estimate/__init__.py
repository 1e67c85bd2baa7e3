"""Histogram, mean and quantiles of the true labels from private ones, with intervals."""
