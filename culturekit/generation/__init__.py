"""From prompts to images, by whatever backend."""
