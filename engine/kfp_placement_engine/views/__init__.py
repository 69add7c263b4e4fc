"""What people are shown of a plan, a run, a queue or a history, as data that any renderer takes."""
