"""What everything else is about: runs, clusters, pods, plans, reasons."""
