/* Binding a pod to a node: room, volumes, image pull, transfers, and from there its end. */
#pragma once

#include "choice.h"
#include "cutoff.h"
#include "events.h"

static inline void touch(State *s, int64_t node) {
    if (s->touched[node]) return;
    s->touched[node] = 1;
    s->touched_nodes[s->touched_count++] = node;
}

/* Return whether both mount a claim that only one pod at a time may have. */
static int shares_exclusive_claim(const Problem *p, int64_t activity, int64_t other) {
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++) {
        if (!p->exclusive[p->claims[i]]) continue;
        for (int64_t j = p->claims_start[other]; j < p->claims_start[other + 1]; j++)
            if (p->claims[i] == p->claims[j]) return 1;
    }
    return 0;
}

/* Return whether the activity's volumes are free, or on this node. */
static int volumes_free(const Problem *p, const State *s, int64_t activity) {
    if (!s->t->of[activity].mounts_volumes) return 1;
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++) {
        int64_t claim = p->claims[i];
        if (s->claim_users[claim] > 0 && s->claim_node[claim] != s->of[activity].node) return 0;
    }
    return 1;
}

/* Begin a bound pod: volumes, pull, download, run and upload, which gives its end. */
static void begin(const Problem *p, State *s, int64_t activity, double now) {
    const Activity *a = s->t->of + activity;
    Progress *of = s->of + activity;
    const int64_t node = of->node;
    if (a->mounts_volumes)
        for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++) {
            s->claim_node[p->claims[i]] = node;
            s->claim_users[p->claims[i]] += 1;
        }
    double pulled = now;
    if (a->image >= 0) {
        double there = image_ready_seconds(p, s, activity, a->image, node);
        if (isinf(there)) {
            there = now + p->image_bytes[a->image] / p->pull_rate[node];
            pull_image(p, s, activity, a->image, node, there);
        }
        pulled = later_of(now, there);
    }
    of->begin = now;
    of->pull_seconds = pulled - now;
    if (p->direct) {
        if (of->arrival < 0.0) of->arrival = arrival_seconds(p, s, activity, node);
        pulled = later_of(pulled, of->arrival);
    }
    of->end = pulled + occupied_seconds(p, s->t, activity, node);
    count_end(p, s, activity);
    push_event(s, of->end, activity, ENDS);
}

/* Change the free room of a node by a pod of the shape: one more (times 1) or less (times -1). */
static inline void change_free(const Problem *p, State *s, int64_t shape, int64_t node, int64_t times) {
    const int64_t *request = s->t->requests + shape * p->resources;
    for (int64_t resource = 0; resource < p->resources; resource++)
        s->free[node * p->resources + resource] -= times * request[resource];
}

/* The same for a pod in a branch: free is what the outcome that takes most leaves. */
__attribute__((cold, noinline)) static void reserve_in_branch(const Problem *p, State *s, int64_t shape, int64_t node, int64_t times) {
    const int64_t width = p->resources;
    for (int64_t i = 0; i < width; i++) s->change[i] = times * s->t->requests[shape * width + i];
    for (int64_t i = 0; i < 2; i++) s->change[width + i] = times * s->t->scored_requests[shape * 2 + i];
    change_use(p, s, s->t->branch_of_shape[shape], node);
    for (int64_t i = 0; i < width; i++) s->free[node * width + i] -= s->change[i];
    for (int64_t i = 0; i < 2; i++) s->scored[node * 2 + i] += s->change[width + i];
    count_room(s, s->change, 1);
}

/* Give a pod room on a node (times 1), or take it back (times -1). */
static inline void reserve(const Problem *p, State *s, int64_t activity, int64_t node, int64_t times) {
    const int64_t shape = s->t->of[activity].shape;
    note_change(s, node);
    if (is_in_branch(s, shape)) {
        reserve_in_branch(p, s, shape, node, times);
        return;
    }
    change_free(p, s, shape, node, times);
    s->scored[node * 2] += times * s->t->scored_requests[shape * 2];
    s->scored[node * 2 + 1] += times * s->t->scored_requests[shape * 2 + 1];
    count_room(s, s->t->requests + shape * p->resources, times);
}

/* Let a pod hold its claims (times 1), or give them back (times -1). */
static void hold_claims(const Problem *p, State *s, int64_t activity, int64_t times) {
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++)
        s->claim_holders[p->claims[i]] += change_holders(p, s, p->branch[activity], p->nodes + p->claims[i], times);
}

/* Reserve the requests; a pod whose volume is attached elsewhere holds its room and waits for it. */
static void bind(const Problem *p, State *s, int64_t activity, int64_t node, double now) {
    Progress *of = s->of + activity;
    of->start = now;
    of->node = (int32_t)node;
    of->waiting = 0;
    if (of->cause < 0 || s->of[of->cause].end < now) of->cause = (int32_t)s->last_end[node];
    reserve(p, s, activity, node, 1);
    if (s->t->of[activity].mounts_volumes) hold_claims(p, s, activity, 1);
    if (volumes_free(p, s, activity))
        begin(p, s, activity, now);
    else
        s->attaching += 1;
}

/* Bind a pod that is on its node already, even if room or volumes seem not to be free there. */
static void go_on(const Problem *p, State *s, int64_t activity, double now) {
    bind(p, s, activity, s->t->of[activity].fixed_node, now);
    if (!isinf(s->of[activity].begin)) return;
    s->attaching -= 1;
    begin(p, s, activity, now);
}

/* Give room and volumes back, and begin bound pods that waited for a volume. */
static void leave(const Problem *p, State *s, int64_t activity, double now) {
    int64_t node = s->of[activity].node;
    reserve(p, s, activity, node, -1);
    s->last_end[node] = activity;
    touch(s, node);
    if (!s->t->of[activity].mounts_volumes) return;
    hold_claims(p, s, activity, -1);
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++) s->claim_users[p->claims[i]] -= 1;
    for (int64_t other = 0; s->attaching > 0 && other < p->activities; other++) {
        if (s->of[other].node < 0 || !isinf(s->of[other].begin) || !volumes_free(p, s, other)) continue;
        s->attaching -= 1;
        begin(p, s, other, now);
    }
}
