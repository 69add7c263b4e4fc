/* What follows from a problem alone, worked out once for any number of simulations. */
#ifndef KFP_PLACEMENT_TABLES_H
#define KFP_PLACEMENT_TABLES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

typedef struct {
    Activity *of;             /* [A] what is read together of an activity is stored together */
    int64_t *requests;        /* [S, R] */
    int64_t *scored_requests; /* [S, 2] */
    int64_t *class_of_shape;  /* [S] a class of the shape */
    int64_t *shape_of;        /* [K] */
    uint8_t *tells_apart;     /* [K] taints or affinity that kube-scheduler prefers differ between nodes */
    int64_t *kind_of;         /* [N] */
    int64_t *node_of_kind;    /* [kinds] a node of the kind */
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
    void *memory;
} Tables;

enum { MOST_KINDS = 16 }; /* with more kinds of nodes, the table would be larger than what it saves */

#ifndef ALIGNED /* a build that looks for memory errors puts guarded gaps between the arrays */
#define ALIGNED(bytes) (((size_t)(bytes) + 15) & ~(size_t)15)
#endif

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

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count) {
    const uint8_t *next = bytes;
    uint64_t word;
    for (; count >= sizeof(word); count -= sizeof(word), next += sizeof(word)) {
        memcpy(&word, next, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    for (; count > 0; count--) hash = (hash ^ *next++) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

static uint64_t shape_hash(const Problem *p, int64_t pod) {
    const int64_t class = p->class_of[pod];
    uint64_t hash = hash_bytes(p->scores_balance[class], p->requests + pod * p->resources,
                               sizeof(int64_t) * (size_t)p->resources);
    hash = hash_bytes(hash, p->scored_requests + pod * 2, sizeof(int64_t) * 2);
    return hash_bytes(hash, p->feasible + class * p->nodes, (size_t)p->nodes);
}

static int has_shape(const Problem *p, const Tables *t, int64_t pod, int64_t shape) {
    const int64_t class = p->class_of[pod], other = t->class_of_shape[shape];
    const size_t resources = (size_t)p->resources;
    return p->scores_balance[class] == p->scores_balance[other] &&
           !memcmp(p->requests + pod * p->resources, t->requests + shape * p->resources, sizeof(int64_t) * resources) &&
           !memcmp(p->scored_requests + pod * 2, t->scored_requests + shape * 2, sizeof(int64_t) * 2) &&
           !memcmp(p->feasible + class * p->nodes, p->feasible + other * p->nodes, (size_t)p->nodes);
}

static void add_shape(const Problem *p, Tables *t, int64_t pod) {
    const int64_t shape = t->shapes++;
    t->class_of_shape[shape] = p->class_of[pod];
    memcpy(t->requests + shape * p->resources, p->requests + pod * p->resources, sizeof(int64_t) * (size_t)p->resources);
    memcpy(t->scored_requests + shape * 2, p->scored_requests + pod * 2, sizeof(int64_t) * 2);
}

/* Give each class its shape; `slots` is a hash table of `mask` + 1 shapes, -1 = free. */
static void find_shapes(const Problem *p, Tables *t, int64_t *slots, int64_t mask) {
    int64_t *pod_of_class = t->shape_of;
    for (int64_t slot = 0; slot <= mask; slot++) slots[slot] = -1;
    for (int64_t class = 0; class < p->classes; class++) pod_of_class[class] = -1;
    for (int64_t i = 0; i < p->activities; i++)
        if (!p->is_virtual[i]) pod_of_class[p->class_of[i]] = i;
    for (int64_t class = 0; class < p->classes; class++) {
        const int64_t pod = pod_of_class[class];
        if (pod < 0) continue;
        int64_t slot = (int64_t)(shape_hash(p, pod) & (uint64_t)mask);
        while (slots[slot] >= 0 && !has_shape(p, t, pod, slots[slot])) slot = (slot + 1) & mask;
        if (slots[slot] < 0) {
            slots[slot] = t->shapes;
            add_shape(p, t, pod);
        }
        t->shape_of[class] = slots[slot];
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
                              .shape = p->is_virtual[i] ? -1 : (int32_t)t->shape_of[p->class_of[i]],
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

static void fill_tables(const Problem *p, Tables *t) {
    for (int64_t class = 0; class < p->classes; class++) {
        const int64_t *taints = p->preferred_taints + class * p->nodes, *weight = p->preferred_weight + class * p->nodes;
        t->tells_apart[class] = 0;
        for (int64_t node = 0; node < p->nodes; node++) t->tells_apart[class] |= taints[node] != 0 || weight[node] != 0;
    }
    for (int64_t i = 0; t->kinds <= MOST_KINDS && i < p->activities; i++)
        for (int64_t kind = 0; kind < t->kinds; kind++)
            t->occupied[i * t->kinds + kind] = seconds_on(p, i, t->node_of_kind[kind]);
    for (int64_t edge = 0; edge < p->predecessors_start[p->activities]; edge++)
        t->transfer_seconds[edge] = p->transfer_bytes[edge] / p->link_rate;
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

/* Lay out all arrays in one block; with memory == NULL only count the bytes. */
static size_t lay_out_tables(Tables *t, const Problem *p, char *memory) {
    size_t used = 0;
    const size_t a = (size_t)p->activities, n = (size_t)p->nodes, k = (size_t)p->classes;
#define ARRAY(field, type, count)                        \
    do {                                                 \
        if (memory) t->field = (type *)(memory + used);  \
        used += ALIGNED(sizeof(type) * (count));         \
    } while (0)
    ARRAY(of, Activity, a);
    ARRAY(requests, int64_t, k * (size_t)p->resources);
    ARRAY(scored_requests, int64_t, k * 2);
    ARRAY(class_of_shape, int64_t, k);
    ARRAY(shape_of, int64_t, k);
    ARRAY(tells_apart, uint8_t, k);
    ARRAY(kind_of, int64_t, n);
    ARRAY(node_of_kind, int64_t, n);
    ARRAY(place, int32_t, a);
    ARRAY(transfer_seconds, double, (size_t)p->predecessors_start[a]);
    ARRAY(least_completion, double, (size_t)p->runs);
    ARRAY(preorder, int32_t, n);
    ARRAY(slot_at, int32_t, n);
    ARRAY(loop_first, int64_t, (size_t)p->loops);
    ARRAY(loop_last, int64_t, (size_t)p->loops);
#undef ARRAY
    return used;
}

static void tables_free(Tables *t) {
    if (!t) return;
    free(t->memory);
    free(t->occupied);
    free(t);
}

/* NULL when there is no memory left. */
static Tables *tables_new(const Problem *p) {
    Tables *t = calloc(1, sizeof(Tables));
    int64_t slots_count = 1;
    while (slots_count < 2 * p->classes) slots_count *= 2;
    int64_t *slots = malloc(sizeof(int64_t) * (size_t)slots_count);
    if (t) t->memory = malloc(lay_out_tables(t, p, NULL) + 16);
    if (!slots || !t || !t->memory) {
        free(slots);
        tables_free(t);
        return NULL;
    }
    lay_out_tables(t, p, t->memory);
    t->words = (p->nodes + 63) / 64;
    find_shapes(p, t, slots, slots_count - 1);
    free(slots);
    find_kinds(p, t);
    if (t->kinds <= MOST_KINDS) t->occupied = malloc(sizeof(double) * (size_t)(p->activities * t->kinds) + 16);
    if (t->kinds <= MOST_KINDS && !t->occupied) {
        tables_free(t);
        return NULL;
    }
    fill_tables(p, t);
    gather_activities(p, t);
    find_least_times(p, t);
    find_scarcest(p, t);
    return t;
}

#endif
