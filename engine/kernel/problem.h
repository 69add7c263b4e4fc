/* The placement problem as the kernel sees it; the fields mirror problem.ProblemArrays, in its order.
 *
 * A = activities, N = nodes, R = resources, K = classes, G = genes, E = edges, I = images,
 * V = claims, L = holders, M = limits, B = branches, C = choices. Matrices are row-major. */
#pragma once

#include <stdint.h>

typedef struct {
    const int64_t *requests;            /* [A, R]; resource 0 is CPU, 1 memory, 2 pods */
    const int64_t *scored_requests;     /* [A, 2] */
    const double *duration_seconds;     /* [A] */
    const uint8_t *scales;              /* [A] */
    const uint8_t *is_virtual;          /* [A] */
    const int64_t *gene;                /* [A], -1 = default scheduler */
    const int64_t *class_of;            /* [A] */
    const int64_t *image;               /* [A], -1 = none */
    const double *download_bytes;       /* [A] */
    const double *upload_bytes;         /* [A] */
    const double *release_seconds;      /* [A] */
    const int64_t *run;                 /* [A] */
    const int64_t *fixed_node;          /* [A], -1 = not fixed */
    const uint8_t *is_running;          /* [A] on its fixed node since before time zero */
    const int64_t *predecessors_start;  /* [A + 1] */
    const int64_t *predecessors;        /* [E] */
    const double *transfer_bytes;       /* [E] */
    const int64_t *successors_start;    /* [A + 1] */
    const int64_t *successors;          /* [E] */
    const int64_t *claims_start;        /* [A + 1] */
    const int64_t *claims;              /* [U] uses of claims */
    const uint8_t *exclusive;           /* [V] one pod at a time */
    const int64_t *holders_start;       /* [A + 1] */
    const int64_t *holders;             /* [H] uses of holders: those that the activity is part of, outermost first */
    const uint8_t *held_together;       /* [H] takes its place only together with the one before */
    const int64_t *holder_limit;        /* [L] */
    const int64_t *holder_size;         /* [L] */
    const uint8_t *holder_started;      /* [L] has had its place since before time zero */
    const int64_t *limit_start;         /* [M + 1] first holder of each limit */
    const int64_t *limit_most;          /* [M] */
    const int64_t *branch;              /* [A] innermost branch around it, -1 = none */
    const int64_t *branch_choice;       /* [B] */
    const int64_t *choice_around;       /* [C] branch around the choice, -1 = none */
    const uint8_t *choice_aside;        /* [C] pods in it take no room of pods outside */
    const uint8_t *after_failure;       /* [A] the end of its run does not wait for it */
    const int64_t *free;                /* [N, R] */
    const int64_t *allocatable;         /* [N, R] */
    const int64_t *scored_used;         /* [N, 2] */
    const double *speed;                /* [N] */
    const double *store_rate;           /* [N] */
    const double *pull_rate;            /* [N] */
    const uint8_t *feasible;            /* [K, N] */
    const int64_t *preferred_taints;    /* [K, N] */
    const int64_t *preferred_weight;    /* [K, N] */
    const int64_t *containers;          /* [K] */
    const uint8_t *scores_affinity;     /* [K] */
    const uint8_t *scores_balance;      /* [K] */
    const double *latency_excess_ms;    /* [K, N] */
    const double *assignment_gain;      /* [K, N] */
    const uint8_t *allowed;             /* [G, N] */
    const uint8_t *sticky;              /* [G] */
    const double *image_bytes;          /* [I] */
    const uint8_t *image_present;       /* [I, N] */
    const uint8_t *image_scored;        /* [K, N] if held there, it has the pod's name for it */
    const double *run_weight;           /* [runs] */
    const int64_t *topological;         /* [A] activities, predecessors first */
    const struct Tables *tables;        /* tables that follow from the other fields, see tables.h */
    double link_rate;
    double end_limit;                   /* COMPLETION: a latest end beyond it counts first; INFINITY = none */
    int64_t direct;                     /* 1: data moves from node to node */
    int64_t version_136;                /* BalancedAllocation as since Kubernetes 1.36 */
    int64_t ties;                       /* way in which kube-scheduler takes one of the best nodes, see below */
    int64_t objective;                  /* 0 completion, 1 packing, 2 paper */
    int64_t exclusive_claims;           /* number of exclusive claims */
    int64_t activities, nodes, resources, classes, genes, images, claim_count;
    int64_t holders_count, limits, runs, branches, choices;
} Problem;

#define TERMS 5 /* terms of the objective, compared one after another */

/* Ways to take one of the best nodes: at random (until 1.34), the top of a heap (since 1.35), or the first. */
enum { RANDOM_TIES = 0, HEAP_TIES = 1, FIRST_TIES = 2 };

/* Policies of the simulation. */
enum {
    KUBE_DEFAULT = 0, /* every pod where kube-scheduler puts it; pods that fit nowhere are skipped */
    STRICT_FIFO = 1,  /* the same, but a pod that fits nowhere blocks all pods created after it */
    READY = 2,        /* bound at once, in order of creation, to the planned node, else the next best */
    ORDERED = 3,      /* the plan's order on each node is kept; pods may wait for room there */
    BACKFILL = 4,     /* planned nodes; all steps that are ready and fit start, most urgent first */
    GREEDY = 5,       /* list scheduling: most urgent first, on the node where it ends first */
    FULLEST = 6       /* each node takes the set of ready steps that fills it most; of a shape, most urgent first */
};
