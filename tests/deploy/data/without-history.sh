kubectl delete clusterroles,clusterrolebindings kfp-placement-plan-history
kubectl delete clusterroles kfp-placement-view-history kfp-placement-edit-history
kubectl delete customresourcedefinitions pipelinehistories.kfp-placement.dev    # deletes all histories too
