kubectl delete runqueues -A --all    # runs that wait begin some seconds later, new ones are not held any more
kubectl get workflows -A -l workflows.argoproj.io/controller-instanceid=kfp-placement-queue    # until none is left
kubectl get workflows -A -l 'kfp-placement.dev/preempted=true,workflows.argoproj.io/completed!=true'    # likewise
kubectl delete mutatingadmissionpolicybindings,mutatingadmissionpolicies kfp-placement-hold    # not with features/queue-webhook
kubectl delete validatingadmissionpolicybindings,validatingadmissionpolicies kfp-placement-hold
kubectl -n kfp-placement delete deployments,services,poddisruptionbudgets queue
kubectl -n kfp-placement delete cronjobs release-runs
kubectl -n kfp-placement delete serviceaccounts,roles,rolebindings queue release-runs
kubectl delete clusterroles,clusterrolebindings kfp-placement-queue kfp-placement-release-runs kfp-placement-plan-queues
kubectl delete validatingadmissionpolicybindings,validatingadmissionpolicies kfp-placement-accounts-workflows
kubectl delete clusterroles kfp-placement-view-queues kfp-placement-operate-queues
kubectl delete customresourcedefinitions runqueues.kfp-placement.dev runrequests.kfp-placement.dev
