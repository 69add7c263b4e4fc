"""The store of past runs: what PipelineHistories hold, and what is still to be written there."""
