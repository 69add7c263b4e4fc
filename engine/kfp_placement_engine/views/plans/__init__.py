"""What people are shown of a plan."""
