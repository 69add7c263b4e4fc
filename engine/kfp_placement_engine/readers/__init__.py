"""What others write -> our nouns: run files to `RunGraph`, cluster files to `Cluster`; pure."""
