"""What the processes watch, what they keep of it, and who is told of changes."""
