"""The folder of an index: built, appended to, checked and read."""
