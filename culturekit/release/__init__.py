"""Mistakes of a release, found before it is published, and mended where the file itself says how."""
