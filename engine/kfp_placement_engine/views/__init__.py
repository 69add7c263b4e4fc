"""Views of plans, runs, queues and histories for people, as data that any renderer takes."""
