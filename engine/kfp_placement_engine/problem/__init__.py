"""The placement problem as arrays, and the C kernel that simulates it."""
