"""Scorers of single pictures, and measures of how unlike pictures are."""
