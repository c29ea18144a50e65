"""The stages that score one family of metrics each: they read tables and folders, and hand arrays on."""
