"""What scripts share with the tests, which may import it; nothing here imports a test."""
