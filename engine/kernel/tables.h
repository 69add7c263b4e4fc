/* What follows from a problem alone, worked out once for any number of simulations. */
#pragma once

#include <math.h>
#include <string.h>

#include "memory.h"
#include "problem.h"

/* S = shapes: pods of one shape need the same room, on the same nodes, and get the same scores for it.
 * Kinds: nodes of one kind run, pull and store equally fast. */
typedef struct {
    int32_t class, shape, gene, image, run, fixed_node, iteration, entry_iteration; /* shape: -1 = virtual */
    uint8_t is_virtual, is_running, mounts_volumes;
    double release_seconds;
    double least_seconds;     /* from its start to its end, at least */
    double least_after;       /* from its end to the end of its run, at least */
} Activity;

typedef struct Tables {
    Activity *of;             /* [A] what is read together of an activity is one line of the cache */
    int64_t *requests;        /* [S, R] */
    int64_t *needed;          /* [S, R] the same, INT64_MIN where a pod requests nothing: it fits beside any lack */
    int64_t *scored_requests; /* [S, 2] */
    int64_t *class_of_shape;  /* [S] a class of the shape */
    uint8_t *tells_apart;     /* [K] taints or affinity that kube-scheduler prefers differ between nodes */
    int64_t *kind_of;         /* [N] */
    int64_t *node_of_kind;    /* [kinds] a node of the kind */
    int32_t *predecessors_start, *predecessors; /* [A + 1], [E] as the problem has them, in half the memory */
    int32_t *successors_start, *successors;
    int32_t *place;           /* [A] in the topological order */
    double *occupied;         /* [A, kinds] download, run, upload; [0] if kinds are many */
    double *transfer_seconds; /* [E] between two nodes */
    double *least_completion; /* [runs] end of the run, at least */
    double room, least_work;  /* of the scarcest resource: what is free of it; what all take of it times seconds, at least */
    int64_t scarcest;         /* -1 = room that is taken may be more than there is */
    int32_t *preorder;        /* [N] when a walk of a heap (node, left, right) comes to the slot */
    int32_t *slot_at;         /* [N] the slots in this order, of a heap of all nodes that are scored for a pod */
    int64_t *loop_first, *loop_last; /* [M] iterations of the loop are between them */
    int64_t shapes, kinds, words; /* words: of a set of nodes, 64 in each */
    Memory memory;
} Tables;

enum { MOST_KINDS = 16 }; /* with more kinds of nodes, the table would be larger than what it saves */

/* One instruction, where fmax takes several to see to what is not a number. */
static inline double later_of(double one, double other) { return one > other ? one : other; }

/* Download, run and upload on the node. */
static inline double seconds_on(const Problem *p, int64_t activity, int64_t node) {
    double seconds = p->duration_seconds[activity];
    if (p->scales[activity]) seconds /= p->speed[node];
    return seconds + (p->download_bytes[activity] + p->upload_bytes[activity]) / p->store_rate[node];
}

/* The same, looked up. */
static inline double occupied_seconds(const Problem *p, const Tables *t, int64_t activity, int64_t node) {
    return t->kinds <= MOST_KINDS ? t->occupied[activity * t->kinds + t->kind_of[node]]
                                  : seconds_on(p, activity, node);
}

static void find_shapes(const Problem *p, Tables *t) {
    const int64_t resources = p->resources;
    for (int64_t i = 0; i < p->activities; i++) {
        if (p->is_virtual[i]) continue;
        const int64_t shape = p->shape_of[p->class_of[i]];
        t->class_of_shape[shape] = p->class_of[i];
        memcpy(t->scored_requests + shape * 2, p->scored_requests + i * 2, sizeof(int64_t) * 2);
        for (int64_t resource = 0; resource < resources; resource++) {
            const int64_t request = p->requests[i * resources + resource];
            t->requests[shape * resources + resource] = request;
            t->needed[shape * resources + resource] = request > 0 ? request : INT64_MIN;
        }
    }
}

static int same_kind(const Problem *p, int64_t node, int64_t other) {
    return p->speed[node] == p->speed[other] && p->store_rate[node] == p->store_rate[other] &&
           p->pull_rate[node] == p->pull_rate[other];
}

/* Kinds beyond the most that are used need not be told apart. */
static void find_kinds(const Problem *p, Tables *t) {
    for (int64_t node = 0; node < p->nodes; node++) {
        int64_t kind = 0;
        while (kind < t->kinds && !same_kind(p, node, t->node_of_kind[kind])) kind += 1;
        t->kind_of[node] = kind;
        if (kind == t->kinds) t->node_of_kind[t->kinds++] = node;
        if (t->kinds > MOST_KINDS) return;
    }
}

static double least_seconds(const Problem *p, const Tables *t, int64_t activity) {
    if (p->is_virtual[activity]) return p->duration_seconds[activity];
    if (t->kinds > MOST_KINDS) return 0.0;
    double least = INFINITY;
    for (int64_t kind = 0; kind < t->kinds; kind++) least = fmin(least, t->occupied[activity * t->kinds + kind]);
    return least;
}

static void gather_activities(const Problem *p, Tables *t) {
    for (int64_t i = 0; i < p->activities; i++) t->place[p->topological[i]] = (int32_t)i;
    for (int64_t i = 0; i < p->activities; i++)
        t->of[i] = (Activity){.class = (int32_t)p->class_of[i],
                              .shape = p->is_virtual[i] ? -1 : (int32_t)p->shape_of[p->class_of[i]],
                              .gene = (int32_t)p->gene[i],
                              .image = (int32_t)p->image[i],
                              .run = (int32_t)p->run[i],
                              .fixed_node = (int32_t)p->fixed_node[i],
                              .iteration = (int32_t)p->iteration[i],
                              .entry_iteration = (int32_t)p->entry_iteration[i],
                              .is_virtual = p->is_virtual[i],
                              .is_running = p->is_running[i],
                              .mounts_volumes = p->claims_start[i] < p->claims_start[i + 1],
                              .release_seconds = p->release_seconds[i]};
}

static void find_least_times(const Problem *p, Tables *t) {
    for (int64_t run = 0; run < p->runs; run++) t->least_completion[run] = 0.0;
    for (int64_t i = p->activities - 1; i >= 0; i--) {
        const int64_t activity = p->topological[i];
        Activity *of = t->of + activity;
        of->least_seconds = least_seconds(p, t, activity);
        of->least_after = 0.0;
        for (int64_t edge = p->successors_start[activity]; edge < p->successors_start[activity + 1]; edge++) {
            const int64_t successor = p->successors[edge];
            of->least_after = fmax(of->least_after, t->of[successor].least_seconds + t->of[successor].least_after);
        }
        double *completion = t->least_completion + p->run[activity];
        *completion = fmax(*completion, of->least_seconds + of->least_after);
    }
}

/* The resource whose work would take longest on all nodes. */
static void find_scarcest(const Problem *p, Tables *t) {
    t->scarcest = -1;
    for (int64_t i = 0; i < p->activities; i++)
        if (p->is_running[i]) return;
    for (int64_t resource = 0; resource < p->resources; resource++) {
        double room = 0.0, work = 0.0;
        for (int64_t node = 0; node < p->nodes; node++) room += fmax(0.0, (double)p->free[node * p->resources + resource]);
        for (int64_t i = 0; i < p->activities; i++)
            if (!p->is_virtual[i]) work += (double)p->requests[i * p->resources + resource] * t->of[i].least_seconds;
        if (room <= 0.0 || (t->scarcest >= 0 && work * t->room <= t->least_work * room)) continue;
        t->scarcest = resource;
        t->room = room;
        t->least_work = work;
    }
}

/* How many feasible nodes kube-scheduler scores: all of fewer than 100, else a share that shrinks with
 * the cluster (numFeasibleNodesToFind with percentageOfNodesToScore unset, schedule_one.go). */
static inline int64_t nodes_to_score(int64_t nodes) {
    if (nodes < 100) return nodes;
    int64_t percentage = 50 - nodes / 125, count = nodes * (percentage < 5 ? 5 : percentage) / 100;
    return count < 100 ? 100 : count;
}

/* The slots of a heap in preorder. In a smaller heap they come in the same order. */
static void walk_heap(int32_t *slots, int64_t size) {
    for (int64_t slot = 0, rank = 0; rank < size; rank++) {
        slots[rank] = (int32_t)slot;
        if (2 * slot + 1 < size) {
            slot = 2 * slot + 1;
            continue;
        }
        while (slot > 0 && (slot % 2 == 0 || slot + 1 >= size)) slot = (slot - 1) / 2;
        slot += 1;
    }
}

static void narrow(const int64_t *from, int32_t *to, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] = (int32_t)from[i];
}

static void fill_tables(const Problem *p, Tables *t) {
    for (int64_t class = 0; class < p->classes; class++) {
        const int64_t *taints = p->preferred_taints + class * p->nodes, *weight = p->preferred_weight + class * p->nodes;
        for (int64_t node = 0; node < p->nodes; node++) t->tells_apart[class] |= taints[node] != 0 || weight[node] != 0;
    }
    for (int64_t i = 0; t->kinds <= MOST_KINDS && i < p->activities; i++)
        for (int64_t kind = 0; kind < t->kinds; kind++)
            t->occupied[i * t->kinds + kind] = seconds_on(p, i, t->node_of_kind[kind]);
    const int64_t edges = p->predecessors_start[p->activities];
    for (int64_t edge = 0; edge < edges; edge++)
        t->transfer_seconds[edge] = p->transfer_bytes[edge] / p->link_rate;
    narrow(p->predecessors_start, t->predecessors_start, p->activities + 1);
    narrow(p->predecessors, t->predecessors, edges);
    narrow(p->successors_start, t->successors_start, p->activities + 1);
    narrow(p->successors, t->successors, edges);
    walk_heap(t->slot_at, p->nodes);
    for (int64_t rank = 0; rank < p->nodes; rank++) t->preorder[t->slot_at[rank]] = (int32_t)rank;
    walk_heap(t->slot_at, nodes_to_score(p->nodes));
    for (int64_t loop = 0; loop < p->loops; loop++) {
        t->loop_first[loop] = p->iterations;
        t->loop_last[loop] = -1;
    }
    for (int64_t iteration = p->iterations - 1; iteration >= 0; iteration--) {
        int64_t loop = p->iteration_loop[iteration];
        t->loop_first[loop] = iteration;
        if (t->loop_last[loop] < 0) t->loop_last[loop] = iteration;
    }
}

void tables_free(Tables *t) {
    if (!t) return;
    give_back(&t->memory);
    free(t);
}

/* NULL when there is no memory left. */
Tables *tables_new(const Problem *p) {
    Tables *t = calloc(1, sizeof(Tables));
    if (!t) return NULL;
    Memory *memory = &t->memory;
    const int64_t a = p->activities, n = p->nodes, k = p->classes, edges = p->predecessors_start[a];
    for (int64_t class = 0; class < k; class++)
        if (p->shape_of[class] >= t->shapes) t->shapes = p->shape_of[class] + 1;
    t->words = (n + 63) / 64;
    t->of = ARRAY(memory, Activity, a);
    t->requests = ARRAY(memory, int64_t, t->shapes * p->resources);
    t->needed = ARRAY(memory, int64_t, t->shapes * p->resources);
    t->scored_requests = ARRAY(memory, int64_t, t->shapes * 2);
    t->class_of_shape = ARRAY(memory, int64_t, t->shapes);
    t->tells_apart = ARRAY(memory, uint8_t, k);
    t->kind_of = ARRAY(memory, int64_t, n);
    t->node_of_kind = ARRAY(memory, int64_t, n);
    t->predecessors_start = ARRAY(memory, int32_t, a + 1);
    t->predecessors = ARRAY(memory, int32_t, edges);
    t->successors_start = ARRAY(memory, int32_t, a + 1);
    t->successors = ARRAY(memory, int32_t, edges + 1);
    t->place = ARRAY(memory, int32_t, a);
    t->transfer_seconds = ARRAY(memory, double, edges);
    t->least_completion = ARRAY(memory, double, p->runs);
    t->preorder = ARRAY(memory, int32_t, n);
    t->slot_at = ARRAY(memory, int32_t, n);
    t->loop_first = ARRAY(memory, int64_t, p->loops);
    t->loop_last = ARRAY(memory, int64_t, p->loops);
    if (!memory->is_short) find_kinds(p, t);
    if (t->kinds <= MOST_KINDS) t->occupied = ARRAY(memory, double, a * t->kinds);
    if (memory->is_short) {
        tables_free(t);
        return NULL;
    }
    find_shapes(p, t);
    fill_tables(p, t);
    gather_activities(p, t);
    find_least_times(p, t);
    find_scarcest(p, t);
    return t;
}
