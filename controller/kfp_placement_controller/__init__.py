"""The in-cluster part of kfp-placement."""
