"""Diffusion pipelines with weights of their own, run here."""
