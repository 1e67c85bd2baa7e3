"""What looks at artifacts and compares them; nothing that compiles an artifact needs it."""
