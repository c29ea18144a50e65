"""The way from tables to scores, one module per family."""
