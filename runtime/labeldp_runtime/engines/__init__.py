"""Engines: each file runs randomizers in one of them, and nothing else imports it."""
