"""Replies on disk before anybody looks into them, so that none is bought twice."""
