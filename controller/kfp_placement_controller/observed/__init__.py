"""What is kept of pods, nodes and claims; pure."""
