kubectl delete mutatingwebhookconfigurations kfp-placement
kubectl -n kfp-placement delete certificates.cert-manager.io,issuers.cert-manager.io webhook
kubectl -n kfp-placement delete services webhook
kubectl -n kfp-placement delete secrets kfp-placement-webhook
