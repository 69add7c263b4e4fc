"""Writers of plans, gates, releases, the status of the policy, and events."""
