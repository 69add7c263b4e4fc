"""The queue that decides by itself: quotas of RunQueues, the room of the cluster, preemption."""
