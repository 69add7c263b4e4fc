/* The plan's order on each node (ORDERED): a step starts when all before it there have started.
 *
 * Starting the steps of an optimal schedule in the order of its starts, each as early as room allows,
 * starts none later than the schedule does; so orders can express the optimum, idle time included. */
#pragma once

#include "binding.h"
#include "sorting.h"

/* Sort the steps into the plan's order on each node. One plan's order is near the last one's, from which
 * the sort starts; of equal keys predecessors come first. */
static void build_sequences(const Problem *p, State *s, const int64_t *planned, const double *priority, int32_t *order) {
    int64_t *start = s->sequence_start;
    sort_by_key(priority, s->t->place, order, s->scratch, s->steps);
    memset(start, 0, sizeof(int64_t) * (size_t)(p->nodes + 1));
    for (int64_t i = 0; i < s->steps; i++) start[planned[p->gene[order[i]]] + 1] += 1;
    for (int64_t node = 0; node < p->nodes; node++) s->head[node] = start[node + 1] += start[node];
    for (int64_t i = s->steps - 1; i >= 0; i--) s->sequence[--s->head[planned[p->gene[order[i]]]]] = order[i];
}

/* On every touched node start the next steps of its sequence while they are ready and fit. */
static void start_in_order(const Problem *p, State *s, double now) {
    for (int64_t i = 0; i < s->touched_count; i++) {
        int64_t node = s->touched_nodes[i];
        while (s->head[node] < s->sequence_start[node + 1]) {
            int64_t activity = s->sequence[s->head[node]];
            if (s->of[activity].node < 0) {
                if (s->of[activity].waiting != READY_NOW || !fits(p, s, activity, node)) break;
                bind(p, s, activity, node, now);
            }
            s->head[node] += 1;
            if (s->head[node] < s->sequence_start[node + 1]) __builtin_prefetch(s->of + s->sequence[s->head[node]]);
        }
    }
}

/* Return the most urgent step that is ready and fits but is kept back by the order, -1 if none. */
static int64_t first_stalled(const Problem *p, const State *s, const int64_t *planned, const double *priority) {
    int64_t best = -1;
    for (int64_t activity = 0; activity < p->activities; activity++) {
        int64_t gene = s->t->of[activity].gene;
        if (gene < 0 || s->of[activity].waiting != READY_NOW) continue;
        if ((best < 0 || priority[activity] < priority[best]) && fits(p, s, activity, planned[gene])) best = activity;
    }
    return best;
}
