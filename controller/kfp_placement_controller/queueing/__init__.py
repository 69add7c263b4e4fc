"""Admission of whole runs: decides when they start; calls no API, reads no clock, has no thread."""
