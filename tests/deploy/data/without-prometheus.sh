kubectl -n kfp-placement delete servicemonitors,prometheusrules kfp-placement
