"""Activities of countries: pages that name them, what a model finds there, and prompts that ask for each."""
