"""GeoDiv: how rich and well kept a country looks in images, and how much entities and backgrounds vary."""

__version__ = "2.0"
