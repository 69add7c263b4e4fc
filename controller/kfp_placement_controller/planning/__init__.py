"""What the planner decides; it calls no API, starts no thread and reads no clock."""
