"""Pictures as files: names, formats, reading."""
