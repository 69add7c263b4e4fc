/* FULLEST: each node takes the waiting steps that together fill it most (a knapsack of the ready ones).
 *
 * Of sets that fill a node equally, it takes those of shapes with much work left: if small steps were used
 * up first, the last large ones would leave gaps that nothing fills (the same idea as in cutting stock,
 * where patterns are used in proportion to what is still to be cut: Gilmore and Gomory 1961). */
#pragma once

#include "choice.h"
#include "queue.h"

/* Largest numbers of sets that are tried for one node at one moment, and of shapes in them. */
enum { MOST_SETS = 2000, MOST_SHAPES = 32 };

/* Weight of the work that is left, against the room that a set fills. */
static const double WORK_LEFT_WEIGHT = 0.05;

/* The search for one node's set. A set has s->cursor[i] pods of the shape s->live[i]. */
typedef struct {
    const Problem *p;
    State *s;
    int64_t node, resource, shapes;
    int64_t waiting[MOST_SHAPES], best[MOST_SHAPES]; /* pods that wait and would fit alone; pods of the best set */
    double worth[MOST_SHAPES];                       /* value of a unit of room that its pods fill */
    double best_value;
    int64_t sets;
} Filling;

/* Add pods of the shapes from `first` on, which are worth less and less, to the set in every way. */
static void add_pods(Filling *f, int64_t first, double value) {
    State *s = f->s;
    if (value > f->best_value) {
        f->best_value = value;
        memcpy(f->best, s->cursor, sizeof(int64_t) * (size_t)f->shapes);
    }
    for (int64_t i = first; i < f->shapes; i++) {
        const int64_t shape = s->live[i];
        const double left = (double)room_for(f->p, s, shape, f->node)[f->resource];
        if (value + left * f->worth[i] <= f->best_value * (1 + 1e-12) || f->sets <= 0) return;
        if (s->cursor[i] >= f->waiting[i] || !admits(f->p, s, shape, f->node)) continue;
        f->sets -= 1;
        change_free(f->p, s, shape, f->node, 1);
        s->cursor[i] += 1;
        add_pods(f, i, value + f->worth[i] * (double)s->t->requests[shape * f->p->resources + f->resource]);
        s->cursor[i] -= 1;
        change_free(f->p, s, shape, f->node, -1);
    }
}

/* Return the most pods of a queue that the node could take without others. */
static int64_t count_waiting(const Problem *p, const State *s, int64_t shape, int64_t node) {
    int64_t most = INT64_MAX, count = 0;
    const int64_t *request = s->t->requests + shape * p->resources, *room = room_for(p, s, shape, node);
    for (int64_t resource = 0; resource < p->resources; resource++)
        if (request[resource] > 0 && room[resource] / request[resource] < most) most = room[resource] / request[resource];
    for (int64_t activity = s->first[shape]; activity >= 0 && count < most; activity = s->of[activity].later) count += 1;
    return count;
}

/* List the shapes that wait and fit, the most valuable first. */
static void list_shapes(Filling *f) {
    State *s = f->s;
    f->shapes = 0;
    for (int64_t i = 0; i < s->filled_count && f->shapes < MOST_SHAPES; i++) {
        const int64_t shape = s->filled[i];
        if (!admits(f->p, s, shape, f->node)) continue;
        const double all = s->work_left[s->t->shapes];
        const double worth = 1.0 + (all > 0.0 ? WORK_LEFT_WEIGHT * s->work_left[shape] / all : 0.0);
        int64_t at = f->shapes++;
        for (; at > 0 && f->worth[at - 1] < worth; at--) {
            f->worth[at] = f->worth[at - 1];
            s->live[at] = s->live[at - 1];
        }
        f->worth[at] = worth;
        s->live[at] = shape;
    }
    for (int64_t i = 0; i < f->shapes; i++) {
        f->waiting[i] = count_waiting(f->p, s, s->live[i], f->node);
        f->best[i] = s->cursor[i] = 0;
    }
}

/* Return whether the plan and the volumes let the pod go there, if there is room. */
static int may_take(const Problem *p, const State *s, int64_t activity, int64_t node) {
    const int64_t gene = s->t->of[activity].gene;
    if (is_kept_back(p, s, activity)) return 0;
    if (gene < 0) return 1;
    return p->allowed[gene * p->nodes + node] && (!p->sticky[gene] || s->gene_node[gene] < 0 || s->gene_node[gene] == node);
}

static void bind_waiting(const Problem *p, State *s, int64_t activity, int64_t node, double now) {
    const int64_t gene = s->t->of[activity].gene;
    dequeue(s, activity);
    if (gene >= 0 && p->sticky[gene]) s->gene_node[gene] = node;
    s->work_left[s->t->of[activity].shape] -= s->t->of[activity].least_seconds;
    s->work_left[s->t->shapes] -= s->t->of[activity].least_seconds;
    bind(p, s, activity, node, now);
}

/* Bind the first pods of a queue, as many as may go there. */
static void take_pods(const Problem *p, State *s, int64_t queue, int64_t count, int64_t node, double now) {
    for (int64_t activity = s->first[queue], later; activity >= 0 && count > 0; activity = later) {
        later = s->of[activity].later;
        if (!admits(p, s, s->t->of[activity].shape, node)) return;
        if (!may_take(p, s, activity, node)) continue;
        bind_waiting(p, s, activity, node, now);
        count -= 1;
    }
}

/* Fill one node with the best set, and then with other pods that still fit. */
static void fill_node(const Problem *p, State *s, int64_t node, double now) {
    Filling f = {.p = p, .s = s, .node = node, .resource = s->t->scarcest < 0 ? 0 : s->t->scarcest, .sets = MOST_SETS};
    take_pods(p, s, s->t->shapes + node, INT64_MAX, node, now);
    list_shapes(&f);
    if (f.shapes > 1) add_pods(&f, 0, 0.0);
    for (int64_t i = 0; i < f.shapes; i++) take_pods(p, s, s->live[i], f.best[i], node, now);
    for (int64_t i = s->filled_count - 1; i >= 0; i--) take_pods(p, s, s->filled[i], INT64_MAX, node, now);
}

/* Fill nodes in one round: nodes that got room, or all nodes if there are new pods. */
static void dispatch_fullest(const Problem *p, State *s, double now) {
    const int is_any_new = s->fresh_count > 0;
    sort_fresh(s);
    for (int64_t i = 0; i < s->fresh_count; i++) {
        const Activity *of = s->t->of + s->fresh[i];
        enqueue(s, of->fixed_node >= 0 ? s->t->shapes + of->fixed_node : of->shape, s->fresh[i]);
    }
    s->fresh_count = 0;
    for (int64_t i = 0; s->queued_count > 0 && i < (is_any_new ? p->nodes : s->touched_count); i++)
        fill_node(p, s, is_any_new ? i : s->touched_nodes[i], now);
}

/* Begin a simulation, in which all work is left. */
static void count_work(const Problem *p, State *s) {
    memset(s->work_left, 0, sizeof(double) * (size_t)(s->t->shapes + 1));
    for (int64_t activity = 0; activity < p->activities; activity++) {
        const Activity *of = s->t->of + activity;
        if (of->is_virtual || of->is_running) continue;
        s->work_left[of->shape] += of->least_seconds;
        s->work_left[s->t->shapes] += of->least_seconds;
    }
}
