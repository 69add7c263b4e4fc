/* What changes while a schedule is simulated; one State serves any number of simulations. */
#ifndef KFP_PLACEMENT_STATE_H
#define KFP_PLACEMENT_STATE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"

typedef struct {
    double *start, *begin, *end;  /* [A] bind; volumes attached; end of the upload; infinite until known */
    int64_t *node;                /* [A], -1 until bound */
    double *pull_seconds;         /* [A] waiting for the image */
    int64_t *cause;               /* [A] whose end let it start, -1 = none */
    int64_t *waiting;             /* [A] predecessors that have not ended */
    double *order;                /* [A] the smaller, the earlier in the queue */
    uint8_t *fresh;               /* [A] not yet offered to every node */
    uint8_t *ready;               /* [A] may start as far as predecessors and releases go */
    int64_t *pending;             /* the queue */
    int64_t *free;                /* [N, R] */
    int64_t *scored;              /* [N, 2] */
    double *image_ready_at;       /* [I, N], infinite = not there */
    int64_t *gene_node;           /* [G] node of a group of volume sharers, -1 = not chosen yet */
    int64_t *claim_node, *claim_users; /* [V] */
    int64_t *claim_holders;       /* [V] bound pods that mount it */
    int64_t *iteration_left, *iteration_blocked; /* [L] */
    uint8_t *iteration_active;    /* [L] */
    int64_t *loop_running;        /* [M] */
    int64_t *sequence, *sequence_start, *head; /* the plan's order by node (ORDERED) */
    uint8_t *touched;             /* [N] got room, or its next step became ready, in this instant */
    int64_t *touched_nodes, *last_end; /* [N] */
    int64_t *everywhere;          /* [N] all nodes, as kube-scheduler lists them */
    int64_t *place_in_list;       /* [N] where it lists each node */
    int64_t *sample, *total;      /* [N] nodes that kube-scheduler scores for one pod, and their scores */
    int64_t *queued, *passed;     /* [K] pods in the queue, and how many of them this round is past */
    int64_t *like;                /* [K] a pod of the class */
    uint8_t *full, *hopeful;      /* [K] no node at all has room; a touched node has */
    double *heap_time;            /* [2A + 2] */
    int64_t *heap_code;
    int64_t *scratch;             /* [2A + N + 2] for sorting */
    int64_t heap_size, pending_count, touched_count, created, unfinished;
    int64_t next_start;           /* where kube-scheduler's next look at the nodes starts */
    int64_t fresh_count;          /* pods in the queue that are fresh */
    int64_t draw;                 /* seed of random ties */
    void *memory;
} State;

#ifndef ALIGNED /* a build that looks for memory errors puts guarded gaps between the arrays */
#define ALIGNED(bytes) (((size_t)(bytes) + 15) & ~(size_t)15)
#endif

/* Lay out all arrays in one block; with memory == NULL only count the bytes. */
static size_t lay_out(State *state, const Problem *p, char *memory) {
    size_t used = 0;
    const size_t a = (size_t)p->activities, n = (size_t)p->nodes;
#define ARRAY(field, type, count)                               \
    do {                                                        \
        if (memory) state->field = (type *)(memory + used);     \
        used += ALIGNED(sizeof(type) * (count));                \
    } while (0)
    ARRAY(start, double, a);
    ARRAY(begin, double, a);
    ARRAY(end, double, a);
    ARRAY(node, int64_t, a);
    ARRAY(pull_seconds, double, a);
    ARRAY(cause, int64_t, a);
    ARRAY(waiting, int64_t, a);
    ARRAY(order, double, a);
    ARRAY(fresh, uint8_t, a);
    ARRAY(ready, uint8_t, a);
    ARRAY(pending, int64_t, a);
    ARRAY(free, int64_t, n * (size_t)p->resources);
    ARRAY(scored, int64_t, n * 2);
    ARRAY(image_ready_at, double, (size_t)p->images * n);
    ARRAY(gene_node, int64_t, (size_t)p->genes);
    ARRAY(claim_node, int64_t, (size_t)p->claim_count);
    ARRAY(claim_users, int64_t, (size_t)p->claim_count);
    ARRAY(claim_holders, int64_t, (size_t)p->claim_count);
    ARRAY(iteration_left, int64_t, (size_t)p->iterations);
    ARRAY(iteration_blocked, int64_t, (size_t)p->iterations);
    ARRAY(iteration_active, uint8_t, (size_t)p->iterations);
    ARRAY(loop_running, int64_t, (size_t)p->loops);
    ARRAY(sequence, int64_t, a);
    ARRAY(sequence_start, int64_t, n + 1);
    ARRAY(head, int64_t, n);
    ARRAY(touched, uint8_t, n);
    ARRAY(touched_nodes, int64_t, n);
    ARRAY(last_end, int64_t, n);
    ARRAY(everywhere, int64_t, n);
    ARRAY(place_in_list, int64_t, n);
    ARRAY(sample, int64_t, n);
    ARRAY(total, int64_t, n);
    ARRAY(queued, int64_t, (size_t)p->classes);
    ARRAY(passed, int64_t, (size_t)p->classes);
    ARRAY(like, int64_t, (size_t)p->classes);
    ARRAY(full, uint8_t, (size_t)p->classes);
    ARRAY(hopeful, uint8_t, (size_t)p->classes);
    ARRAY(heap_time, double, 2 * a + 2);
    ARRAY(heap_code, int64_t, 2 * a + 2);
    ARRAY(scratch, int64_t, 2 * a + n + 2);
#undef ARRAY
    return used;
}

/* NULL when there is no memory left. */
static State *state_new(const Problem *p) {
    State *state = calloc(1, sizeof(State));
    if (!state) return NULL;
    state->memory = malloc(lay_out(state, p, NULL) + 16);
    if (!state->memory) {
        free(state);
        return NULL;
    }
    lay_out(state, p, state->memory);
    return state;
}

static void state_free(State *state) {
    if (!state) return;
    free(state->memory);
    free(state);
}

static void state_reset(State *s, const Problem *p) {
    const int64_t a = p->activities, n = p->nodes;
    for (int64_t i = 0; i < a; i++) {
        s->start[i] = s->begin[i] = s->end[i] = INFINITY;
        s->node[i] = s->cause[i] = -1;
        s->pull_seconds[i] = 0.0;
        s->fresh[i] = s->ready[i] = 0;
        s->waiting[i] = p->predecessors_start[i + 1] - p->predecessors_start[i];
    }
    memcpy(s->free, p->free, sizeof(int64_t) * (size_t)(n * p->resources));
    memcpy(s->scored, p->scored_used, sizeof(int64_t) * (size_t)(n * 2));
    for (int64_t i = 0; i < p->images * n; i++) s->image_ready_at[i] = p->image_present[i] ? 0.0 : INFINITY;
    for (int64_t gene = 0; gene < p->genes; gene++) s->gene_node[gene] = -1;
    for (int64_t claim = 0; claim < p->claim_count; claim++) {
        s->claim_node[claim] = -1;
        s->claim_users[claim] = s->claim_holders[claim] = 0;
    }
    for (int64_t iteration = 0; iteration < p->iterations; iteration++) {
        s->iteration_left[iteration] = p->iteration_size[iteration];
        s->iteration_blocked[iteration] = -1;
        s->iteration_active[iteration] = p->iteration_started[iteration];
    }
    for (int64_t loop = 0; loop < p->loops; loop++) s->loop_running[loop] = 0;
    for (int64_t iteration = 0; iteration < p->iterations; iteration++)
        s->loop_running[p->iteration_loop[iteration]] += p->iteration_started[iteration];
    for (int64_t node = 0; node < n; node++) {
        s->touched[node] = 0;
        s->last_end[node] = -1;
    }
    memset(s->queued, 0, sizeof(int64_t) * (size_t)p->classes);
    memset(s->hopeful, 1, (size_t)p->classes);
    s->next_start = s->fresh_count = 0;
    s->heap_size = s->pending_count = s->touched_count = s->created = 0;
    s->unfinished = a;
}

#endif
