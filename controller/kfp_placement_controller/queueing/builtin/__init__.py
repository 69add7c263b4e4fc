"""The queue that decides on its own: quotas of RunQueues, the room of the cluster, preemption."""
