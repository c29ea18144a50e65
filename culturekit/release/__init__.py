"""A release: its mistakes found before it is published, and its data card, built and checked."""
