"""The benchmark CUBE as a recipe."""
