kubectl -n kfp-placement rollout status deployment/plan
kubectl get placementpolicy default -o jsonpath='{.spec.actuator}'    # must print extender; if not, something else has set the field
kubectl get pods -A -o 'custom-columns=NAMESPACE:.metadata.namespace,POD:.metadata.name,GATES:.spec.schedulingGates[*].name' \
    | grep kfp-placement.dev/plan    # until none is left
kubectl -n kfp-placement delete cronjobs,serviceaccounts release
kubectl delete mutatingadmissionpolicybindings,mutatingadmissionpolicies kfp-placement-gate    # not with a webhook
kubectl delete mutatingadmissionpolicybindings,mutatingadmissionpolicies kfp-placement-gate-pipelines    # likewise
kubectl delete clusterroles,clusterrolebindings kfp-placement-gates kfp-placement-release
