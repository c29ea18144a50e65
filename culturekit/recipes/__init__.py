"""Stages as data: what each reads, writes and depends on; run, resume and plan; engines."""
