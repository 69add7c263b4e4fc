kubectl delete clusterroles,clusterrolebindings kfp-placement-plan-memory
