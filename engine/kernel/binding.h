/* Binding a pod to a node: room, volumes, image pull, transfers, and from there its end. */
#ifndef KFP_PLACEMENT_BINDING_H
#define KFP_PLACEMENT_BINDING_H

#include "choice.h"
#include "events.h"

static inline void touch(State *s, int64_t node) {
    if (s->touched[node]) return;
    s->touched[node] = 1;
    s->touched_nodes[s->touched_count++] = node;
}

static inline int mounts_volumes(const Problem *p, int64_t activity) {
    return p->claims_start[activity] < p->claims_start[activity + 1];
}

/* Whether both mount a claim that only one pod at a time may have. */
static int shares_exclusive_claim(const Problem *p, int64_t activity, int64_t other) {
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++) {
        if (!p->exclusive[p->claims[i]]) continue;
        for (int64_t j = p->claims_start[other]; j < p->claims_start[other + 1]; j++)
            if (p->claims[i] == p->claims[j]) return 1;
    }
    return 0;
}

/* Whether no pod on another node has one of the activity's volumes. */
static int volumes_free(const Problem *p, const State *s, int64_t activity) {
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++) {
        int64_t claim = p->claims[i];
        if (s->claim_users[claim] > 0 && s->claim_node[claim] != s->node[activity]) return 0;
    }
    return 1;
}

/* Attach volumes, pull, download, run, upload: from here the end is known. */
static void begin(const Problem *p, State *s, int64_t activity, double now) {
    int64_t node = s->node[activity], image = p->image[activity];
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++) {
        s->claim_node[p->claims[i]] = node;
        s->claim_users[p->claims[i]] += 1;
    }
    double pulled = now;
    if (image >= 0) {
        double *there = s->image_ready_at + image * p->nodes + node;
        if (isinf(*there)) *there = now + p->image_bytes[image] / p->pull_rate[node];
        pulled = fmax(now, *there);
    }
    s->begin[activity] = now;
    s->pull_seconds[activity] = pulled - now;
    if (p->direct) pulled = fmax(pulled, arrival_seconds(p, s, activity, node));
    s->end[activity] = pulled + occupied_seconds(p, activity, node);
    push_event(s, s->end[activity], activity, ENDS);
}

/* Reserve the requests; a pod whose volume is attached elsewhere holds its room and waits for it. */
static void bind(const Problem *p, State *s, int64_t activity, int64_t node, double now) {
    s->start[activity] = now;
    s->node[activity] = node;
    s->ready[activity] = 0;
    if (s->cause[activity] < 0 || s->end[s->cause[activity]] < now) s->cause[activity] = s->last_end[node];
    for (int64_t resource = 0; resource < p->resources; resource++)
        s->free[node * p->resources + resource] -= p->requests[activity * p->resources + resource];
    s->scored[node * 2] += p->scored_requests[activity * 2];
    s->scored[node * 2 + 1] += p->scored_requests[activity * 2 + 1];
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++)
        s->claim_holders[p->claims[i]] += 1;
    if (volumes_free(p, s, activity)) begin(p, s, activity, now);
}

/* A pod that is on its node already, whatever room and volumes are thought to be free there. */
static void go_on(const Problem *p, State *s, int64_t activity, double now) {
    bind(p, s, activity, p->fixed_node[activity], now);
    if (isinf(s->begin[activity])) begin(p, s, activity, now);
}

/* Give room and volumes back; pods that are bound and waited for a volume begin. */
static void leave(const Problem *p, State *s, int64_t activity, double now) {
    int64_t node = s->node[activity];
    for (int64_t resource = 0; resource < p->resources; resource++)
        s->free[node * p->resources + resource] += p->requests[activity * p->resources + resource];
    s->scored[node * 2] -= p->scored_requests[activity * 2];
    s->scored[node * 2 + 1] -= p->scored_requests[activity * 2 + 1];
    s->last_end[node] = activity;
    touch(s, node);
    if (!mounts_volumes(p, activity)) return;
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++) {
        s->claim_users[p->claims[i]] -= 1;
        s->claim_holders[p->claims[i]] -= 1;
    }
    for (int64_t other = 0; other < p->activities; other++)
        if (s->node[other] >= 0 && isinf(s->begin[other]) && volumes_free(p, s, other)) begin(p, s, other, now);
}

#endif
