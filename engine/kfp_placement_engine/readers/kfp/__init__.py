"""Pipeline packages of Kubeflow Pipelines."""
