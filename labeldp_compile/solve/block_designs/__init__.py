"""Block designs for private sets of classes: a generated catalogue, and the choice from it."""
