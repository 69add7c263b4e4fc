kubectl delete clusterroles,clusterrolebindings kfp-placement-plan-workflow-templates
