"""The stages: what each reads, writes and depends on."""
