"""What people and vision models say of images."""
