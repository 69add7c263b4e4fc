"""kube-scheduler's stock profile, object by object: filters, scores, choice.

An exact model of v1.36.3 without extenders, volumes and dynamic resource claims, checked against
recordings of the real scheduler (`make bench-scheduler`). The planner's default-scheduler baseline
works on arrays but calls the same scores (`kube_scores`) and rules (`model.constraints`).
"""
