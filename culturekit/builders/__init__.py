"""From the graph to the cultural space, its prompts and their like."""
