"""Who scores the quality of a picture."""
