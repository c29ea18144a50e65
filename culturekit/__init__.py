"""culturekit measures how well text-to-image models know the world's cultures."""

__version__ = "0.1.0"
