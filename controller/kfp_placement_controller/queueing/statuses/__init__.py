"""Statuses of RunQueues and RunRequests: what they must show, and when it is written."""
