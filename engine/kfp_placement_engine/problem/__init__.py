"""The placement problem as arrays, and the C kernel that plays it."""
