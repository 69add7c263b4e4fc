"""Forecasts for a planned run by past runs: run times, widths of loops, ends and memory."""
