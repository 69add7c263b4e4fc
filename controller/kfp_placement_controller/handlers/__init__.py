"""What follows our few objects with a life of their own: thin adapters of kopf."""
