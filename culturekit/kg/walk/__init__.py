"""From the roots of concepts down to candidates."""
