"""Objects of Kubernetes as the API server prints them."""
