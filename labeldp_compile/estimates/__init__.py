"""Histogram, mean and quantiles of the true labels from private ones, with intervals.

The mathematics are those of ``labeldp_learn``; here tables are read, and numbers are written.
"""
