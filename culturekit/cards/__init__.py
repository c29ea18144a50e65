"""Data cards: written by hand where only a person knows, generated from the data where the data know, and checked."""
