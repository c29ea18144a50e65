"""Captions of a culture, and the pairs of captions and images that a model is tuned with."""
