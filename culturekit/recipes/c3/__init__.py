"""The benchmark C3 as a recipe."""
