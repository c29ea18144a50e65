"""Portraits and places: what prompts of the recipe `linguistic` ask for, drawn by models of known bias."""
