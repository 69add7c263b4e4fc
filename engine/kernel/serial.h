/* Serial decoding: steps in the order of a plan, each as early as room allows, in gaps of the past too.
 *
 * Double justification (Valls, Ballestin, Quintanilla 2005) moves all steps to the right, the last ones
 * first, and then to the left again: the schedule never gets longer, and often shorter (serial schedule
 * generation and its mirror image: Kolisch 1996; Sprecher 2000 shows which schedules it can find). What
 * comes out is an order of starts. Images, claims, loops and drivers are left out: a child is played
 * before it counts. */
#ifndef KFP_PLACEMENT_SERIAL_H
#define KFP_PLACEMENT_SERIAL_H

#include "profile.h"
#include "sorting.h"
#include "state.h"

typedef struct {
    Profile *profiles;         /* [N] */
    double *key, *start, *end; /* [A] */
    double *ready;             /* [A] mirrored: when all after it have ended, and their data is there */
    int64_t *order[2], *spare; /* [A] as last sorted, and mirrored */
    int32_t *place;            /* [A] in the mirrored topological order */
} Serial;

static void serial_free(const Problem *p, Serial *x) {
    profiles_free(p, x->profiles);
    free(x->key);
    free(x->start);
    free(x->end);
    free(x->ready);
    free(x->order[0]);
    free(x->order[1]);
    free(x->spare);
    free(x->place);
}

/* 0 when there is no memory left; what there is must be freed anyway. */
static int serial_open(const Problem *p, const Tables *t, Serial *x) {
    const size_t a = (size_t)p->activities + 1;
    x->profiles = profiles_new(p);
    x->key = calloc(a, sizeof(double));
    x->start = calloc(a, sizeof(double));
    x->end = calloc(a, sizeof(double));
    x->ready = calloc(a, sizeof(double));
    x->order[0] = calloc(a, sizeof(int64_t));
    x->order[1] = calloc(a, sizeof(int64_t));
    x->spare = calloc(a, sizeof(int64_t));
    x->place = calloc(a, sizeof(int32_t));
    if (!x->profiles || !x->key || !x->start || !x->end || !x->ready || !x->order[0] || !x->order[1] || !x->spare ||
        !x->place)
        return 0;
    for (int64_t i = 0; i < p->activities; i++) {
        x->order[0][i] = x->order[1][i] = p->topological[i];
        x->place[i] = (int32_t)p->activities - t->place[i];
    }
    return 1;
}

static inline int64_t planned_node(const Problem *p, const int64_t *genes, int64_t activity) {
    return p->gene[activity] >= 0 ? genes[p->gene[activity]] : -1;
}

/* Between one activity and the next: data has to move unless both are on one node. */
static inline double moving_seconds(const Problem *p, const Tables *t, int64_t edge, int64_t node, int64_t other) {
    return p->direct && (node < 0 || node != other) ? t->transfer_seconds[edge] : 0.0;
}

/* When the activity may start: all before it have ended, and their data is there. */
static double serial_ready(const Problem *p, const Tables *t, const Serial *x, const int64_t *genes, int64_t activity,
                           int64_t node) {
    double ready = p->release_seconds[activity];
    for (int64_t edge = p->predecessors_start[activity]; edge < p->predecessors_start[activity + 1]; edge++) {
        const int64_t other = p->predecessors[edge];
        ready = fmax(ready, x->end[other] + moving_seconds(p, t, edge, planned_node(p, genes, other), node));
    }
    return ready;
}

/* Mirrored, those before it may start once it has ended. */
static void serial_release(const Problem *p, const Tables *t, Serial *x, const int64_t *genes, int64_t activity,
                           int64_t node) {
    for (int64_t edge = p->predecessors_start[activity]; edge < p->predecessors_start[activity + 1]; edge++) {
        const int64_t other = p->predecessors[edge];
        const double arrival = x->end[activity] + moving_seconds(p, t, edge, node, planned_node(p, genes, other));
        x->ready[other] = fmax(x->ready[other], arrival);
    }
}

/* Schedule all activities by key, `mirrored` from the end of the run; returns its length, -1 when there is
 * no memory left. */
static double serial_pass(const Problem *p, const Tables *t, Serial *x, const int64_t *genes, int mirrored) {
    double length = 0.0;
    if (!profiles_clear(p, x->profiles)) return -1.0;
    memset(x->ready, 0, sizeof(double) * (size_t)p->activities);
    const int64_t *order = x->order[mirrored];
    sort_by_key(x->key, mirrored ? x->place : t->place, x->order[mirrored], x->spare, p->activities);
    for (int64_t i = 0; i < p->activities; i++) {
        const int64_t activity = order[i], node = planned_node(p, genes, activity);
        double start = mirrored ? x->ready[activity] : serial_ready(p, t, x, genes, activity, node);
        double seconds = t->of[activity].least_seconds;
        if (node >= 0) {
            const int64_t *request = p->requests + activity * p->resources;
            seconds = occupied_seconds(p, t, activity, node);
            const double gap = earliest_gap(x->profiles + node, request, p->resources, start, seconds);
            if (isfinite(gap)) start = gap;
            if (!take_room(x->profiles + node, request, p->resources, start, start + seconds)) return -1.0;
        }
        x->start[activity] = start;
        x->end[activity] = start + seconds;
        if (mirrored) serial_release(p, t, x, genes, activity, node);
        length = fmax(length, x->end[activity]);
    }
    return length;
}

/* Rewrite keys as the starts of a justified schedule; returns how many schedules that took, -1 when
 * memory runs out. */
static int64_t serial_decode(const Problem *p, const Tables *t, Serial *x, const int64_t *genes, double *keys) {
    memcpy(x->key, keys, sizeof(double) * (size_t)p->activities);
    if (serial_pass(p, t, x, genes, 0) < 0.0) return -1;
    for (int64_t i = 0; i < p->activities; i++) x->key[i] = -x->end[i];
    const double length = serial_pass(p, t, x, genes, 1);
    if (length < 0.0) return -1;
    for (int64_t i = 0; i < p->activities; i++) x->key[i] = length - x->end[i];
    if (serial_pass(p, t, x, genes, 0) < 0.0) return -1;
    memcpy(keys, x->start, sizeof(double) * (size_t)p->activities);
    return 3;
}

#endif
