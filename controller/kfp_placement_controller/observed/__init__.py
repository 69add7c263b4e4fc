"""What is kept from pods, nodes and claims; pure."""
