"""Files as people give them: YAML and JSON within limits."""
