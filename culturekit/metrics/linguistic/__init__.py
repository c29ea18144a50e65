"""Linguistic and cultural biases: skin tones, dialects, neutral prompts against groups, question pairs, ratings."""
