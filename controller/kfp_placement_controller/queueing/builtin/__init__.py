"""The built-in backend: quotas of RunQueues, the room of the cluster, preemption, forecasts."""
