/* Which node a planned pod gets at one moment. */
#pragma once

#include "room.h"

/* VolumeRestrictions: whether a bound pod has a claim that only one pod at a time may have. */
static int awaits_claim(const Problem *p, const State *s, int64_t activity) {
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++)
        if (p->exclusive[p->claims[i]] && s->claim_holders[p->claims[i]] > 0) return 1;
    return 0;
}

static inline int is_kept_back(const Problem *p, const State *s, int64_t activity) {
    return p->exclusive_claims > 0 && awaits_claim(p, s, activity);
}

/* NodeResourcesFit, VolumeRestrictions and the static filters. */
static inline int fits(const Problem *p, const State *s, int64_t activity, int64_t node) {
    return admits(p, s, s->t->of[activity].shape, node) && !is_kept_back(p, s, activity);
}

/* When the inputs are on the node, with direct transfers from the producers' ends. */
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

/* When the inputs are on a node that has none of them; nodes that have some are marked. */
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

/* When the activity would end if it were bound to the node now. */
static inline double finish_seconds(const Problem *p, const State *s, int64_t activity, int64_t node, double now,
                                    double remote) {
    double begin = now;
    int64_t image = s->t->of[activity].image;
    if (image >= 0) {
        double there = s->image_ready_at[image * p->nodes + node];
        begin = isinf(there) ? now + p->image_bytes[image] / p->pull_rate[node] : later_of(now, there);
    }
    if (p->direct) begin = later_of(begin, s->marked[node] == s->mark ? arrival_seconds(p, s, activity, node) : remote);
    return begin + occupied_seconds(p, s->t, activity, node);
}

/* The allowed one of nodes with room that has least latency excess, then earliest finish, then is the
 * fullest, then has the lowest number; -1 = none. */
static int64_t choose_by_finish(const Problem *p, State *s, int64_t activity, const int64_t *nodes, int64_t count,
                                double now) {
    const int64_t row = s->t->of[activity].class * p->nodes, gene_row = s->t->of[activity].gene * p->nodes;
    int64_t best = -1;
    double best_excess = INFINITY, best_finish = INFINITY, best_left = INFINITY;
    const double remote = p->direct ? remote_arrival_seconds(s, activity) : 0.0;
    for (int64_t i = 0; i < count; i++) {
        int64_t node = nodes[i];
        double excess = p->latency_excess_ms[row + node];
        if (!p->allowed[gene_row + node] || excess > best_excess) continue;
        double finish = finish_seconds(p, s, activity, node, now, remote);
        if (best >= 0 && excess == best_excess && finish > best_finish) continue;
        int64_t size = p->allocatable[node * p->resources];
        double left = (double)(s->free[node * p->resources] - s->t->requests[s->t->of[activity].shape * p->resources]) /
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

/* The same choice of all nodes. */
static int64_t choose_by_finish_everywhere(const Problem *p, State *s, int64_t activity, double now) {
    if (is_kept_back(p, s, activity)) return -1;
    const uint64_t *fit = fitting(p, s, s->t->of[activity].shape);
    return choose_by_finish(p, s, activity, s->sample, list_between(s, fit, 0, p->nodes, s->sample), now);
}

/* The same choice of nodes that got room just now. */
static int64_t choose_by_finish_among(const Problem *p, State *s, int64_t activity, const int64_t *candidates,
                                      int64_t count, double now) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        if (fits(p, s, activity, candidates[i])) s->sample[found++] = candidates[i];
    return choose_by_finish(p, s, activity, s->sample, found, now);
}
