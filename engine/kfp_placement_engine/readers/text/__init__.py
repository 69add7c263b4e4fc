"""Reading of text to typed values: YAML and JSON within limits, fields, places of errors."""
