"""What follows the few objects of ours that have a life of their own: thin adapters of kopf."""
