"""Models that turn pictures and texts into vectors, each behind the encoder protocol."""
