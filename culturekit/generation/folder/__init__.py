"""Folders of images that exist already: how they are named, listed, checked and imported."""
