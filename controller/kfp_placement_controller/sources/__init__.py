"""Where runs come from: the objects of a workflow engine, read as runs."""
