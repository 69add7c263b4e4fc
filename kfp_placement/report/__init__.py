"""A plan as text, JSON, YAML and HTML; everything here reads `Plan` and writes strings."""
