"""The `linguistic` recipe as stages: dialects, neutral prompts and groups, drawn, judged and put right by people."""
