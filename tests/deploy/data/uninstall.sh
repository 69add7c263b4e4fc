kubectl placement release                          # pauses, takes all our gates off, names pods to be deleted
kubectl get pods -A --field-selector=spec.schedulerName=kfp-placement,spec.nodeName=,status.phase=Pending    # until none is left
kubectl delete mutatingwebhookconfigurations -l app.kubernetes.io/part-of=kfp-placement
kubectl delete mutatingadmissionpolicybindings,mutatingadmissionpolicies \
    -l app.kubernetes.io/part-of=kfp-placement     # from 1.36 on; below there are none
kubectl delete -k my-overlay --ignore-not-found    # deletes the kinds too, and with them all plans
kubectl delete clusterroles,clusterrolebindings,validatingadmissionpolicybindings,validatingadmissionpolicies,priorityclasses \
    -l app.kubernetes.io/part-of=kfp-placement     # of features that you removed before
