"""Preferences: pairs of answers, of which somebody likes one better."""
