"""AHEaD: what images of activities show, against descriptors of what they should show, and how varied it is."""
