"""Captions of a culture: expanded from a few seeds, sampled, counted, translated, and the objects they are about."""
