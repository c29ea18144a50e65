"""Adapters for diffusion pipelines, trained here on pairs of captions and images."""
