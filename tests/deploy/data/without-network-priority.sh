kubectl -n kfp-placement delete networkpolicies kfp-placement
kubectl delete priorityclasses kfp-placement
