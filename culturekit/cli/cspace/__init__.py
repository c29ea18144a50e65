"""`culturekit cspace` and `culturekit prompts`."""
