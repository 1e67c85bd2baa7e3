"""What a finished run is for: its predictions, its model as a file, its place among other runs."""
