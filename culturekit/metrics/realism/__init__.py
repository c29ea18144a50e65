"""How real generated images look as a set: neighbourhoods, distances of distributions, image and text."""
