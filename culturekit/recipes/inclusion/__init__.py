"""Geographic inclusion as a recipe."""
