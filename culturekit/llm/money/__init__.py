"""What questions cost: planned, reserved, counted and summed."""
