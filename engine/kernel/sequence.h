/* The plan's order on each node (ORDERED): a step starts when all before it there have started.
 *
 * Starting the steps of an optimal schedule in the order of its starts, each as early as room allows,
 * starts none later than the schedule does; so orders can express the optimum, idle time included. */
#ifndef KFP_PLACEMENT_SEQUENCE_H
#define KFP_PLACEMENT_SEQUENCE_H

#include "binding.h"

/* Stable merge sort of indexes by key; `items` and `spare` hold `count` indexes each. */
static void sort_by_key(const double *key, int64_t *items, int64_t *spare, int64_t count) {
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t low = 0; low < count; low += 2 * width) {
            int64_t middle = low + width < count ? low + width : count;
            int64_t high = low + 2 * width < count ? low + 2 * width : count;
            int64_t left = low, right = middle;
            for (int64_t slot = low; slot < high; slot++)
                spare[slot] = left < middle && (right >= high || key[items[left]] <= key[items[right]])
                                  ? items[left++]
                                  : items[right++];
        }
        memcpy(items, spare, sizeof(int64_t) * (size_t)count);
    }
}

static void build_sequences(const Problem *p, State *s, const int64_t *planned, const double *priority) {
    int64_t *items = s->scratch, *spare = s->scratch + p->activities, *filled = s->scratch + 2 * p->activities;
    int64_t count = 0;
    memset(s->sequence_start, 0, sizeof(int64_t) * (size_t)(p->nodes + 1));
    for (int64_t i = 0; i < p->activities; i++) {
        int64_t activity = p->topological[i]; /* of equal keys (no run time) predecessors come first */
        if (p->gene[activity] < 0) continue;
        items[count++] = activity;
        s->sequence_start[planned[p->gene[activity]] + 1] += 1;
    }
    sort_by_key(priority, items, spare, count);
    for (int64_t node = 0; node < p->nodes; node++) {
        s->sequence_start[node + 1] += s->sequence_start[node];
        s->head[node] = filled[node] = s->sequence_start[node];
    }
    for (int64_t i = 0; i < count; i++) s->sequence[filled[planned[p->gene[items[i]]]]++] = items[i];
}

/* On every touched node start the next steps of its sequence while they are ready and fit. */
static void start_in_order(const Problem *p, State *s, double now) {
    for (int64_t i = 0; i < s->touched_count; i++) {
        int64_t node = s->touched_nodes[i];
        while (s->head[node] < s->sequence_start[node + 1]) {
            int64_t activity = s->sequence[s->head[node]];
            if (s->node[activity] < 0) {
                if (!s->ready[activity] || !fits(p, s, activity, node)) break;
                bind(p, s, activity, node, now);
            }
            s->head[node] += 1;
        }
    }
}

/* The most urgent step that is ready and fits but is kept back by the order, -1 if none. */
static int64_t first_stalled(const Problem *p, const State *s, const int64_t *planned, const double *priority) {
    int64_t best = -1;
    for (int64_t activity = 0; activity < p->activities; activity++) {
        int64_t gene = p->gene[activity];
        if (gene < 0 || !s->ready[activity]) continue;
        if ((best < 0 || priority[activity] < priority[best]) && fits(p, s, activity, planned[gene])) best = activity;
    }
    return best;
}

#endif
