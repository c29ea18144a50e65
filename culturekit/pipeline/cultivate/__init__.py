"""The `cultivate` recipe as stages: activities, what pictures of them should show, and what they show."""
