/* The choice of a node for a planned pod at one moment. */
#pragma once

#include "room.h"

/* VolumeRestrictions: return whether a bound pod has a claim that only one pod at a time may have. */
static int awaits_claim(const Problem *p, const State *s, int64_t activity) {
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++)
        if (p->exclusive[p->claims[i]] && holders_for(p, s, activity, p->claims[i]) > 0) return 1;
    return 0;
}

static inline int is_kept_back(const Problem *p, const State *s, int64_t activity) {
    return p->exclusive_claims > 0 && awaits_claim(p, s, activity);
}

/* NodeResourcesFit, VolumeRestrictions and the static filters. */
ALWAYS_INLINE int fits(const Problem *p, const State *s, int64_t activity, int64_t node) {
    return admits(p, s, s->t->of[activity].shape, node) && !is_kept_back(p, s, activity);
}

/* Return when the inputs are on the node, with direct transfers from the producers' ends. */
static double arrival_seconds(const Problem *p, const State *s, int64_t activity, int64_t node) {
    double latest = 0.0;
    for (int64_t edge = s->t->predecessors_start[activity]; edge < s->t->predecessors_start[activity + 1]; edge++) {
        int64_t producer = s->t->predecessors[edge];
        double arrival = s->of[producer].end;
        if (p->direct && s->of[producer].node != node) arrival += s->t->transfer_seconds[edge];
        if (arrival > latest) latest = arrival;
    }
    return latest;
}

/* Return when the inputs are on a node that has none of them, and mark the nodes that have some. */
static double remote_arrival_seconds(State *s, int64_t activity) {
    double latest = 0.0;
    s->mark += 1;
    for (int64_t edge = s->t->predecessors_start[activity]; edge < s->t->predecessors_start[activity + 1]; edge++) {
        const Progress *producer = s->of + s->t->predecessors[edge];
        latest = later_of(latest, producer->end + s->t->transfer_seconds[edge]);
        if (producer->node >= 0) s->marked[producer->node] = s->mark;
    }
    return latest;
}

/* Return when the activity would end if it were bound to the node now. */
static inline double finish_seconds(const Problem *p, const State *s, int64_t activity, int64_t node, double now,
                                    double remote) {
    double begin = now;
    int64_t image = s->t->of[activity].image;
    if (image >= 0) {
        double there = image_ready_seconds(p, s, activity, image, node);
        begin = isinf(there) ? now + p->image_bytes[image] / p->pull_rate[node] : later_of(now, there);
    }
    if (p->direct) begin = later_of(begin, s->marked[node] == s->mark ? arrival_seconds(p, s, activity, node) : remote);
    return begin + occupied_seconds(p, s->t, activity, node);
}

/* List the nodes with room as the sample, and return their number. A new pod is offered all nodes, others the
 * nodes that got room just now: a pod that no node could take before cannot fit where nothing has ended. */
static int64_t list_fitting(const Problem *p, State *s, int64_t activity, int is_new) {
    const int64_t shape = s->t->of[activity].shape;
    int64_t count = 0;
    if (is_kept_back(p, s, activity)) return 0;
    if (is_new) return list_between(s, fitting(p, s, shape), 0, p->nodes, s->sample);
    for (int64_t i = 0; i < s->touched_count; i++)
        if (admits(p, s, shape, s->touched_nodes[i])) s->sample[count++] = s->touched_nodes[i];
    return count;
}

/* Return the best allowed node with room: least latency excess, then earliest finish, then the fullest, then the
 * lowest number; -1 = none. With a deadline the latest finish is preferred, as long as the activities after it can
 * end in time: so steps with time to spare leave the fast nodes to others (the cheapest node in time of Abrishami,
 * Naghibzadeh, Epema 2013). */
static int64_t choose_by_finish(const Problem *p, State *s, int64_t activity, int is_new, double now,
                                double deadline) {
    const int64_t row = s->t->of[activity].class * p->nodes, gene_row = s->t->of[activity].gene * p->nodes;
    const int64_t count = list_fitting(p, s, activity, is_new);
    int64_t best = -1;
    if (count == 0) return -1;
    double best_excess = INFINITY, best_finish = INFINITY, best_left = INFINITY;
    const double in_time = deadline - s->t->of[activity].least_after;
    const double remote = p->direct ? remote_arrival_seconds(s, activity) : 0.0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t node = s->sample[i];
        double excess = p->latency_excess_ms[row + node];
        if (!p->allowed[gene_row + node] || excess > best_excess) continue;
        double finish = finish_seconds(p, s, activity, node, now, remote);
        if (finish <= in_time) finish = -finish;
        if (best >= 0 && excess == best_excess && finish > best_finish) continue;
        int64_t size = p->allocatable[node * p->resources];
        const int64_t shape = s->t->of[activity].shape;
        double left = (double)(*room_for(p, s, shape, node) - s->t->requests[shape * p->resources]) /
                      (double)(size > 1 ? size : 1);
        int better = excess != best_excess   ? excess < best_excess
                     : finish != best_finish ? finish < best_finish
                     : left != best_left     ? left < best_left
                                             : node < best;
        if (best >= 0 && !better) continue;
        best = node;
        best_excess = excess;
        best_finish = finish;
        best_left = left;
    }
    return best;
}
