"""`culturekit index`: artifacts as vectors, and images mapped to them."""
