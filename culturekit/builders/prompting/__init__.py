"""From artifacts to prompts."""
