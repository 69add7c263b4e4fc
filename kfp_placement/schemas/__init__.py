"""JSON Schemas of the documents that the commands print."""
