"""The expansion of a task tree to steps and groups, with what each of them is given."""
