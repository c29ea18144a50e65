"""What naming a country does to images, after CuRe."""

__version__ = "1.0"
