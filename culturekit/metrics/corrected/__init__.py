"""Diversity corrected for the errors of the instrument that labelled the images, by a small audit."""
