"""Images mapped to their nearest artifacts."""
