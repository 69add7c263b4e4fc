"""Plan where the steps of a Kubeflow Pipelines run go, before it starts."""
