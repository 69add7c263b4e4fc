"""What writes: plans, gates, releases, the status of the policy, events."""
