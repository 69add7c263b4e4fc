kubectl get runqueues -A    # none with backend kueue is left
kubectl delete admissionchecks kfp-placement
kubectl delete clusterroles,clusterrolebindings kfp-placement-queue-kueue
