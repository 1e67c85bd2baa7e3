"""Which ε and which mechanism: the smallest ε that reaches the targets."""
