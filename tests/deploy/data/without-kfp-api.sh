kubectl delete clusterroles,clusterrolebindings kfp-placement-plan-kfp-api
kubectl -n kubeflow delete networkpolicies kfp-placement-plan
