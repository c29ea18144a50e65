"""From the graph to the cultural space, prompts, captions and descriptors."""
