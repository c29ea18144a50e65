"""Files of weights: what they are, whether they are safe, and pickles turned into safetensors."""
