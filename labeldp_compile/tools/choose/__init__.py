"""Which ε, and which mechanism: the least that reaches what private labels must be good for."""
