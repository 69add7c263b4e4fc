"""Rules for which nodes suit a step: constraints of Kubernetes, images, latency to its users."""
