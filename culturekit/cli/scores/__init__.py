"""The commands under `culturekit score`, one module per family of metrics."""
