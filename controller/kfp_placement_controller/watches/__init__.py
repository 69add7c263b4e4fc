"""What the processes watch, what they keep from it, and who is notified of changes."""
