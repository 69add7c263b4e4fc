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
    int64_t *order[2], *spare; /* [A] as last sorted, and mirrored */
    int32_t *place;            /* [A] in the mirrored topological order */
    int64_t *transfer_edge;    /* [E] the edge of predecessors that an edge of successors is */
} Serial;

static void serial_free(const Problem *p, Serial *x) {
    profiles_free(p, x->profiles);
    free(x->key);
    free(x->start);
    free(x->end);
    free(x->order[0]);
    free(x->order[1]);
    free(x->spare);
    free(x->place);
    free(x->transfer_edge);
}

/* 0 when there is no memory left; what there is must be freed anyway. */
static int serial_open(const Problem *p, const Tables *t, Serial *x) {
    const size_t a = (size_t)p->activities + 1;
    x->profiles = profiles_new(p);
    x->key = calloc(a, sizeof(double));
    x->start = calloc(a, sizeof(double));
    x->end = calloc(a, sizeof(double));
    x->order[0] = calloc(a, sizeof(int64_t));
    x->order[1] = calloc(a, sizeof(int64_t));
    x->spare = calloc(a, sizeof(int64_t));
    x->place = calloc(a, sizeof(int32_t));
    x->transfer_edge = calloc((size_t)p->successors_start[p->activities] + 1, sizeof(int64_t));
    if (!x->profiles || !x->key || !x->start || !x->end || !x->order[0] || !x->order[1] || !x->spare || !x->place ||
        !x->transfer_edge)
        return 0;
    for (int64_t i = 0; i < p->activities; i++) {
        x->order[0][i] = x->order[1][i] = p->topological[i];
        x->place[i] = (int32_t)p->activities - t->place[i];
        for (int64_t edge = p->successors_start[i]; edge < p->successors_start[i + 1]; edge++) {
            const int64_t successor = p->successors[edge];
            for (int64_t back = p->predecessors_start[successor]; back < p->predecessors_start[successor + 1]; back++)
                if (p->predecessors[back] == i) x->transfer_edge[edge] = back;
        }
    }
    return 1;
}

/* When the activity may start: all before it have ended, and their data is there. Mirrored: all after it. */
static double serial_ready(const Problem *p, const Tables *t, const Serial *x, const int64_t *genes, int64_t activity,
                           int64_t node, int mirrored) {
    const int64_t *start = mirrored ? p->successors_start : p->predecessors_start;
    const int64_t *others = mirrored ? p->successors : p->predecessors;
    double ready = mirrored ? 0.0 : p->release_seconds[activity];
    for (int64_t edge = start[activity]; edge < start[activity + 1]; edge++) {
        const int64_t other = others[edge], gene = p->gene[other];
        double arrival = x->end[other];
        if (p->direct && (gene < 0 || genes[gene] != node))
            arrival += t->transfer_seconds[mirrored ? x->transfer_edge[edge] : edge];
        ready = fmax(ready, arrival);
    }
    return ready;
}

/* Schedule all activities by key, `mirrored` from the end of the run; returns its length, -1 when there is
 * no memory left. */
static double serial_pass(const Problem *p, const Tables *t, Serial *x, const int64_t *genes, int mirrored) {
    double length = 0.0;
    if (!profiles_clear(p, x->profiles)) return -1.0;
    const int64_t *order = x->order[mirrored];
    sort_by_key(x->key, mirrored ? x->place : t->place, x->order[mirrored], x->spare, p->activities);
    for (int64_t i = 0; i < p->activities; i++) {
        const int64_t activity = order[i], gene = p->gene[activity], node = gene >= 0 ? genes[gene] : -1;
        double start = serial_ready(p, t, x, genes, activity, node, mirrored);
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
