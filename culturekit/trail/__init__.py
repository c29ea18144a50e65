"""One number walked back to the line of the dump it rests on."""
