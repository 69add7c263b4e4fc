kubectl -n kubeflow delete networkpolicies kfp-placement-plan
