"""Replies on disk before anybody looks into them, so that none is bought twice: `llm/wire.py` brings them here."""
