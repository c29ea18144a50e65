"""The `cube` recipe as stages, a module for each part of it."""
