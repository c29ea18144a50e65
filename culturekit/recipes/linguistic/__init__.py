"""Dialects, skin tones and old places as a recipe."""
