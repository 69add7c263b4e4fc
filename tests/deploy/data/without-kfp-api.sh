kubectl delete clusterroles,clusterrolebindings kfp-placement-plan-kfp-api
