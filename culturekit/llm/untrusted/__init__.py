"""Text from outside as data for a model, and keys that never leave."""
