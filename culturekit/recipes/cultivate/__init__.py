"""The benchmark CULTIVate as a recipe."""
