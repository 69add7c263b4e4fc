/* Serial decoding: steps in the order of a plan, each as early as room allows, in gaps of the past too.
 *
 * Double justification (Valls, Ballestin, Quintanilla 2005) moves all steps to the right, the last ones
 * first, and then to the left again: the schedule never gets longer, and often shorter (serial schedule
 * generation and its mirror image: Kolisch 1996; Sprecher 2000 shows which schedules it can find). The
 * result is an order of starts. In the last pass some steps may go to other nodes, where they end first, as
 * in HEFT (Topcuoglu, Hariri, Wu 2002). Images, claims, loops and drivers are left out, since every child is
 * simulated before it counts. */
#pragma once

#include "profile.h"
#include "random.h"
#include "sorting.h"
#include "state.h"

#define SERIAL_ARRAYS(FIELD)                                                                              \
    FIELD(double, key, p->activities)                                                                     \
    FIELD(double, start, p->activities)                                                                   \
    FIELD(double, end, p->activities)                                                                     \
    FIELD(double, ready, p->activities)      /* mirrored: all after it have ended, their data is there */ \
    FIELD(int32_t, order, 2 * p->activities) /* as last sorted, and then mirrored */                      \
    FIELD(Ranked, scratch, 2 * p->activities)                                                             \
    FIELD(int32_t, place, p->activities)     /* in the mirrored topological order */

typedef struct {
    Profile *profiles; /* [N] */
    SERIAL_ARRAYS(DECLARE)
    Memory memory;
} Serial;

static void serial_free(const Problem *p, Serial *x) {
    profiles_free(p, x->profiles);
    give_back(&x->memory);
}

/* Return 0 when there is no memory left; the memory so far must be freed anyway. */
static int serial_open(const Problem *p, Serial *own) {
    own->profiles = profiles_new(p);
    SERIAL_ARRAYS(ALLOCATE)
    if (!own->profiles || own->memory.is_short) return 0;
    for (int64_t i = 0; i < p->activities; i++) {
        own->order[i] = own->order[p->activities + i] = (int32_t)p->topological[i];
        own->place[i] = (int32_t)(p->activities - p->tables->place[i]);
    }
    return 1;
}

static inline int64_t planned_node(const Problem *p, const int64_t *genes, int64_t activity) {
    return p->gene[activity] >= 0 ? genes[p->gene[activity]] : -1;
}

/* Return the time of transfer between two activities: data has to move unless both are on one node. */
static inline double moving_seconds(const Problem *p, int64_t edge, int64_t node, int64_t other) {
    return p->direct && (node < 0 || node != other) ? p->tables->transfer_seconds[edge] : 0.0;
}

/* Return when the activity may start: all before it have ended, and their data is there. */
static double serial_ready(const Problem *p, const Serial *x, const int64_t *genes, int64_t activity,
                           int64_t node) {
    const Tables *t = p->tables;
    double ready = p->release_seconds[activity];
    for (int64_t edge = t->predecessors_start[activity]; edge < t->predecessors_start[activity + 1]; edge++) {
        const int64_t other = t->predecessors[edge];
        ready = fmax(ready, x->end[other] + moving_seconds(p, edge, planned_node(p, genes, other), node));
    }
    return ready;
}

/* Let the activities before it start once it has ended, in the mirrored schedule. */
static void serial_release(const Problem *p, Serial *x, const int64_t *genes, int64_t activity,
                           int64_t node) {
    const Tables *t = p->tables;
    for (int64_t edge = t->predecessors_start[activity]; edge < t->predecessors_start[activity + 1]; edge++) {
        const int64_t other = t->predecessors[edge];
        const double arrival = x->end[activity] + moving_seconds(p, edge, node, planned_node(p, genes, other));
        x->ready[other] = fmax(x->ready[other], arrival);
    }
}

/* Return the allowed node where the activity ends first, never farther from its users than its own. */
static int64_t node_of_first_end(const Problem *p, const Serial *x, const int64_t *genes,
                                 int64_t activity, int64_t own) {
    const int64_t *request = p->requests + activity * p->resources, gene = p->gene[activity];
    const double *excess = p->latency_excess_ms + p->tables->of[activity].class * p->nodes;
    int64_t best = own;
    double first = INFINITY;
    for (int64_t i = -1; i < p->nodes; i++) {
        const int64_t node = i < 0 ? own : i;
        if (!p->allowed[gene * p->nodes + node] || excess[node] > excess[own]) continue;
        const double ready = serial_ready(p, x, genes, activity, node), seconds = occupied_seconds(p, p->tables, activity, node);
        if (ready + seconds >= first) continue;
        const double end = earliest_gap(x->profiles + node, request, p->resources, ready, seconds) + seconds;
        if (end >= first) continue;
        first = end;
        best = node;
    }
    return best;
}

/* Return whether a step may leave its node: it does not have to share the node with others. */
static inline int may_move(const Problem *p, int64_t activity) {
    return p->gene[activity] >= 0 && !p->sticky[p->gene[activity]];
}

/* Schedule all activities by key, `mirrored` from the end of the run; returns its length, -1 when there is
 * no memory left. A step may go to another node with the probability `moved`. */
static double serial_pass(const Problem *p, Serial *x, int64_t *genes, int mirrored, double moved,
                          uint64_t *random) {
    double length = 0.0;
    if (!profiles_clear(p, x->profiles)) return -1.0;
    memset(x->ready, 0, sizeof(double) * (size_t)p->activities);
    int32_t *order = x->order + mirrored * p->activities;
    sort_by_key(x->key, mirrored ? x->place : p->tables->place, order, x->scratch, p->activities);
    for (int64_t i = 0; i < p->activities; i++) {
        const int64_t activity = order[i];
        int64_t node = planned_node(p, genes, activity);
        if (moved > 0.0 && may_move(p, activity) && random_unit(random) < moved)
            genes[p->gene[activity]] = node = node_of_first_end(p, x, genes, activity, node);
        double start = mirrored ? x->ready[activity] : serial_ready(p, x, genes, activity, node);
        double seconds = p->tables->of[activity].least_seconds;
        if (node >= 0) {
            const int64_t *request = p->requests + activity * p->resources;
            seconds = occupied_seconds(p, p->tables, activity, node);
            const double gap = earliest_gap(x->profiles + node, request, p->resources, start, seconds);
            if (isfinite(gap)) start = gap;
            if (!p->after_failure[activity] &&
                !take_room(x->profiles + node, request, p->resources, start, start + seconds))
                return -1.0;
        }
        x->start[activity] = start;
        x->end[activity] = start + seconds;
        if (mirrored) serial_release(p, x, genes, activity, node);
        if (!p->after_failure[activity]) length = fmax(length, x->end[activity]);
    }
    return length;
}

/* Rewrite keys as the starts of a justified schedule, and genes where steps have moved; returns how many
 * schedules that took, -1 when memory runs out. */
static int64_t serial_decode(const Problem *p, Serial *x, int64_t *genes, double *keys, double moved,
                             uint64_t *random) {
    memcpy(x->key, keys, sizeof(double) * (size_t)p->activities);
    if (serial_pass(p, x, genes, 0, 0.0, random) < 0.0) return -1;
    for (int64_t i = 0; i < p->activities; i++) x->key[i] = -x->end[i];
    const double length = serial_pass(p, x, genes, 1, 0.0, random);
    if (length < 0.0) return -1;
    for (int64_t i = 0; i < p->activities; i++) x->key[i] = length - x->end[i];
    if (serial_pass(p, x, genes, 0, moved, random) < 0.0) return -1;
    memcpy(keys, x->start, sizeof(double) * (size_t)p->activities);
    return 3;
}
