"""Asking models, and trusting their answers only as far as they can be checked."""
