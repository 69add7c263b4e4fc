"""Needs of runs that wait in queues, or have waited: worked out, and written in RunRequests."""
