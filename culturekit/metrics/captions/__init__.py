"""C³: how well a caption fits its original, its image and the objects in it, and which captions to keep."""
