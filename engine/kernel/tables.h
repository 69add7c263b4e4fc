/* Tables that follow from a problem, for any number of simulations; the fields mirror those of
 * kernel_tables.ProblemTables, in its order, which says what they mean. S = shapes. */
#pragma once

#include <math.h>
#include <string.h>

#include "memory.h"
#include "problem.h"

/* The fields of an activity that are read together, on one line of the cache. */
typedef struct {
    int32_t class, shape, gene, image, run, fixed_node, holders_start, holders_end; /* shape: -1 = virtual */
    uint8_t is_virtual, is_running, mounts_volumes;
    double release_seconds;
    double least_seconds; /* least time from its start to its end */
    double least_after;   /* least time from its end to the end of its run */
} Activity;

typedef struct Tables {
    Activity *of;                       /* [A] */
    const int64_t *requests;            /* [S, R] */
    const int64_t *needed;              /* [S, R] INT64_MIN where a pod requests nothing */
    const int64_t *scored_requests;     /* [S, 2] */
    const int64_t *class_of_shape;      /* [S] */
    const int64_t *branch_of_shape;     /* [S] -1 = none */
    const int64_t *branch_of_holder;    /* [L] -1 = none */
    const uint8_t *tells_apart;         /* [K] */
    const int64_t *kind_of;             /* [N] */
    const int32_t *predecessors_start;  /* [A + 1] */
    const int32_t *predecessors;        /* [E] */
    const int32_t *successors_start;    /* [A + 1] */
    const int32_t *successors;          /* [E + 1] */
    const int32_t *place;               /* [A] in the topological order */
    const double *occupied;             /* [A, kinds] download, run, upload */
    const double *transfer_seconds;     /* [E] */
    const int32_t *preorder;            /* [N] of the slots of a heap */
    const int32_t *slot_at;             /* [nodes_scored] */
    double *least_completion;           /* [runs] */
    double room, least_work;            /* of the scarcest resource */
    int64_t scarcest, shapes;
    int64_t kinds;                      /* 0 = too many for a table */
    int64_t nodes_scored;
    int64_t words;                      /* of a set of nodes, 64 in each */
    int64_t uses;                       /* a power of two, see branches.h; 0 = no pod is in a branch */
} Tables;

/* One instruction, where fmax takes several to see to what is not a number. */
static inline double later_of(double one, double other) { return one > other ? one : other; }

/* Return the time of download, run and upload on the node. */
static inline double seconds_on(const Problem *p, int64_t activity, int64_t node) {
    double seconds = p->duration_seconds[activity];
    if (p->scales[activity]) seconds /= p->speed[node];
    return seconds + (p->download_bytes[activity] + p->upload_bytes[activity]) / p->store_rate[node];
}

/* Look up the time of download, run and upload on the node. */
static inline double occupied_seconds(const Problem *p, const Tables *t, int64_t activity, int64_t node) {
    return t->kinds ? t->occupied[activity * t->kinds + t->kind_of[node]] : seconds_on(p, activity, node);
}

/* Find the longest path behind each activity, and the earliest end of each run. */
void find_least_times(const Problem *p) {
    const Tables *t = p->tables;
    for (int64_t i = p->activities - 1; i >= 0; i--) {
        const int64_t activity = p->topological[i];
        const Activity *of = t->of + activity;
        if (p->after_failure[activity]) continue;
        const double least = of->least_seconds + of->least_after;
        t->least_completion[of->run] = later_of(t->least_completion[of->run], least);
        for (int32_t edge = t->predecessors_start[activity]; edge < t->predecessors_start[activity + 1]; edge++) {
            Activity *before = t->of + t->predecessors[edge];
            before->least_after = later_of(before->least_after, least);
        }
    }
}
