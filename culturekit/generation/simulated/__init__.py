"""A text-to-image model with known bias: what it chooses, and how it draws."""
