"""How evenly the images of a prompt spread over what they could show, after GeoDiv."""

__version__ = "1.0"
