"""Block designs for private sets of classes: a generated catalogue, and a choice from it."""
