"""Ledgers in PostgreSQL. Deleting this folder deletes the feature: only ``store.py`` names it."""
