/* What changes while a schedule is simulated; one State serves any number of simulations. */
#ifndef KFP_PLACEMENT_STATE_H
#define KFP_PLACEMENT_STATE_H

#include "tables.h"

/* How far an activity is. */
typedef struct {
    double start, begin, end;     /* bind; volumes attached; end of the upload; infinite until known */
    double pull_seconds;          /* waiting for the image */
    double arrival;               /* when its inputs are on its node, with direct transfers; -1 = not known yet */
    int32_t node;                 /* -1 until bound */
    int32_t cause;                /* whose end let it start, -1 = none */
    int32_t queue_of;             /* where it waits if no node could take it, -1 = nowhere */
    int32_t sooner, later;        /* its neighbours there, -1 = none */
    uint8_t ready;                /* it may start as far as predecessors and releases go */
} Progress;

typedef struct {
    double time;
    int64_t code;                 /* of the activity and the kind of event */
} Event;

typedef struct {
    const Tables *t;
    Progress *of;                 /* [A] */
    int32_t *waiting;             /* [A] predecessors that have not ended */
    double *order;                /* [A] the smaller, the earlier it is offered a node */
    int32_t *created;             /* [A] how many pods were created before it; decides equal ones */
    int64_t *fresh;               /* [A] pods that are still to be offered to every node */
    int64_t *first, *last;        /* [S + N + 1] of each queue, -1 = empty */
    int64_t *filled, *filled_at;  /* [S + N + 1] queues that are not empty, and the index of each in this list */
    int64_t *live, *cursor;       /* [S + N + 1] queues that this round goes through, and how far it is */
    int64_t *free;                /* [N, R] */
    int64_t *scored;              /* [N, 2] */
    double *image_ready_at;       /* [I, N], infinite = not there */
    int64_t *gene_node;           /* [G] node of a group of volume sharers, -1 = not chosen yet */
    int64_t *claim_node, *claim_users; /* [V] */
    int64_t *claim_holders;       /* [V] bound pods that mount it */
    int64_t *iteration_left, *iteration_blocked; /* [L] */
    uint8_t *iteration_active;    /* [L] */
    int64_t *loop_running;        /* [M] */
    int64_t *in_order;            /* [A] steps with a gene, as the last plan that was played orders them */
    int64_t *sequence, *sequence_start, *head; /* the plan's order by node (ORDERED) */
    uint8_t *touched;             /* [N] got room, or its next step became ready, in this instant */
    int64_t *touched_nodes, *last_end; /* [N] */
    int64_t *everywhere;          /* [N] all nodes, as kube-scheduler lists them */
    int64_t *place_in_list;       /* [N] where it lists each node */
    int64_t *sample, *total;      /* [N] nodes that are looked at for one pod, and their scores */
    int64_t *marked;              /* [N] the last mark that a node got */
    int64_t *changed;             /* [2A + 2] nodes in the order in which their room changed */
    uint64_t *fit;                /* [S, words] places of nodes with room for the shape */
    int64_t *fit_count;           /* [S] how many these are */
    int16_t *score;               /* [S, N] kube-scheduler's for the room, by place */
    int64_t *fit_changes, *score_changes; /* [S] changes that they know of, -1 = not filled */
    uint64_t *first_fit;          /* [S, words] at time zero */
    int64_t *first_fit_count;     /* [S] -1 = not known yet */
    Event *later;                 /* [2A + 2] heap of events after this instant */
    int64_t *now_code;            /* [2A + 2] heap of events of this instant */
    int64_t *scratch;             /* [2A + N + 2] for sorting */
    double *least_completion;     /* [runs] end of each run, at least, by what is known now */
    double least_cost, cost_limit; /* weighted sum of these, and the most that it may be */
    double idle, idle_limit;      /* of the scarcest resource: room times seconds that nobody took, and the most */
    double idle_room, counted_until; /* what is free of it now, and since when */
    double now;                   /* the instant whose events are being played */
    int64_t later_size, now_size, fresh_count, filled_count, touched_count, changed_count, created_count, unfinished;
    int64_t next_start;           /* where kube-scheduler's next look at the nodes starts */
    int64_t draw;                 /* seed of random ties */
    int64_t mark;                 /* of nodes that hold inputs of the pod that is being placed */
    int64_t steps;                /* how many have a gene */
    void *memory;
} State;

/* Lay out all arrays in one block; with memory == NULL only count the bytes. */
static size_t lay_out(State *state, const Problem *p, char *memory) {
    size_t used = 0;
    const size_t a = (size_t)p->activities, n = (size_t)p->nodes, shapes = (size_t)state->t->shapes;
    const size_t words = (size_t)state->t->words, queues = shapes + n + 1;
#define ARRAY(field, type, count)                               \
    do {                                                        \
        if (memory) state->field = (type *)(memory + used);     \
        used += ALIGNED(sizeof(type) * (count));                \
    } while (0)
    ARRAY(of, Progress, a);
    ARRAY(waiting, int32_t, a);
    ARRAY(order, double, a);
    ARRAY(created, int32_t, a);
    ARRAY(fresh, int64_t, a);
    ARRAY(first, int64_t, queues);
    ARRAY(last, int64_t, queues);
    ARRAY(filled, int64_t, queues);
    ARRAY(filled_at, int64_t, queues);
    ARRAY(live, int64_t, queues);
    ARRAY(cursor, int64_t, queues);
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
    ARRAY(in_order, int64_t, a);
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
    ARRAY(marked, int64_t, n);
    ARRAY(changed, int64_t, 2 * a + 2);
    ARRAY(fit, uint64_t, shapes * words);
    ARRAY(fit_count, int64_t, shapes);
    ARRAY(score, int16_t, shapes * n);
    ARRAY(fit_changes, int64_t, shapes);
    ARRAY(score_changes, int64_t, shapes);
    ARRAY(first_fit, uint64_t, shapes * words);
    ARRAY(first_fit_count, int64_t, shapes);
    ARRAY(later, Event, 2 * a + 2);
    ARRAY(now_code, int64_t, 2 * a + 2);
    ARRAY(scratch, int64_t, 2 * a + n + 2);
    ARRAY(least_completion, double, (size_t)p->runs);
#undef ARRAY
    return used;
}

/* NULL when there is no memory left. */
static State *state_new(const Problem *p, const Tables *t) {
    State *state = t ? calloc(1, sizeof(State)) : NULL;
    if (!state) return NULL;
    state->t = t;
    state->memory = malloc(lay_out(state, p, NULL) + 16);
    if (!state->memory) {
        free(state);
        return NULL;
    }
    lay_out(state, p, state->memory);
    for (int64_t shape = 0; shape < t->shapes; shape++) state->first_fit_count[shape] = -1;
    memset(state->marked, 0, sizeof(int64_t) * (size_t)p->nodes);
    for (int64_t i = 0; i < p->activities; i++)
        if (p->gene[p->topological[i]] >= 0) state->in_order[state->steps++] = p->topological[i];
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
        s->of[i] = (Progress){.start = INFINITY, .begin = INFINITY, .end = INFINITY, .arrival = -1.0,
                              .node = -1, .cause = -1, .queue_of = -1};
        s->waiting[i] = (int32_t)(p->predecessors_start[i + 1] - p->predecessors_start[i]);
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
    for (int64_t queue = 0; queue < s->t->shapes + n + 1; queue++) s->first[queue] = s->last[queue] = -1;
    for (int64_t shape = 0; shape < s->t->shapes; shape++) s->fit_changes[shape] = s->score_changes[shape] = -1;
    s->next_start = s->fresh_count = s->filled_count = s->changed_count = 0;
    s->later_size = s->now_size = s->touched_count = s->created_count = 0;
    s->now = -INFINITY;
    s->unfinished = a;
}

#endif
