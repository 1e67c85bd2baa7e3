"""Private training in the central model (docs/privacy.md, Theorem 7)."""
