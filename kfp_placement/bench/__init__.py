"""What `kfp-placement bench NAME` runs: published tables and checks, reproduced from data."""
