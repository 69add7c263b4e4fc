"""What past runs tell of a run that is planned: run times, widths of loops, ends, memory."""
