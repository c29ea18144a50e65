"""Captions of a culture, from a few seeds to many, and the pairs of captions and images that a model is tuned with."""
