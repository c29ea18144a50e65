"""What people read: finished scores and their evidence as one HTML file."""
