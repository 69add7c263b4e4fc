/* What changes while a schedule is simulated; one State serves any number of simulations. */
#pragma once

#include "sorting.h"
#include "tables.h"

/* How far an activity is: one line of the cache. */
typedef struct {
    double start, begin, end;     /* bind; volumes attached; end of the upload; infinite until known */
    double pull_seconds;          /* waiting for the image */
    double arrival;               /* when its inputs are on its node, with direct transfers; -1 = not known yet */
    int32_t node;                 /* -1 until bound */
    int32_t cause;                /* whose end let it start, -1 = none */
    int32_t queue_of;             /* where it waits if no node could take it, -1 = nowhere */
    int32_t sooner, later;        /* its neighbours there, -1 = none */
    int32_t waiting;              /* predecessors that have not ended; READY_NOW: waits for a node alone */
} Progress;

enum { READY_NOW = -1 };

typedef struct {
    uint64_t due;                 /* its time, as `ordinal_of` has it */
    int64_t code;                 /* of the activity and the kind of event */
} Event;

typedef struct {
    const Tables *t;              /* of the problem */
    Progress *of;                 /* [A] */
    double *order;                /* [A] the smaller, the earlier it is offered a node */
    int32_t *created;             /* [A] how many pods were created before it; decides equal ones */
    int32_t *fresh;               /* [A] pods that are still to be offered to every node */
    int64_t *first, *last;        /* [S + N + 1] of each queue, -1 = empty */
    int64_t *filled, *filled_at;  /* [S] of shapes those that are not empty, and the index of each in this list */
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
    int32_t *in_order;            /* [A] steps with a gene, as the last plan that was played orders them */
    int32_t *sequence;
    int64_t *sequence_start, *head; /* the plan's order by node (ORDERED) */
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
    Event *later;                 /* [2A + 2] heap of events after this instant */
    int64_t *now_code;            /* [2A + 2] heap of events of this instant */
    Ranked *scratch;              /* [2A] for sorting */
    double *work_left;            /* [S + 1] of pods that wait or come, by shape, and of all (FULLEST) */
    double *least_completion;     /* [runs] end of each run, at least, by what is known now */
    double least_cost, cost_limit; /* weighted sum of these, and the most that it may be */
    double idle, idle_limit;      /* of the scarcest resource: room times seconds that nobody took, and the most */
    double idle_room, counted_until; /* what is free of it now, and since when */
    uint64_t due;                 /* the instant whose events are being played, as `ordinal_of` has it */
    int64_t later_size, now_size, fresh_count, queued_count, filled_count, touched_count, changed_count, created_count;
    int64_t unfinished;           /* activities that have not ended */
    int64_t next_start;           /* where kube-scheduler's next look at the nodes starts */
    int64_t draw;                 /* seed of random ties */
    int64_t mark;                 /* of nodes that hold inputs of the pod that is being placed */
    int64_t steps;                /* how many have a gene */
    double *sums;                 /* [max(N, runs)] for adding up the terms of the objective */
    Memory memory;
} State;

static void state_free(State *state) {
    if (!state) return;
    give_back(&state->memory);
    free(state);
}

/* NULL when there is no memory left. */
static State *state_new(const Problem *p) {
    State *state = calloc(1, sizeof(State));
    if (!state) return NULL;
    Memory *memory = &state->memory;
    const Tables *t = state->t = p->tables;
    const int64_t a = p->activities, n = p->nodes, shapes = t->shapes, queues = shapes + n + 1;
    state->of = ARRAY(memory, Progress, a);
    state->order = ARRAY(memory, double, a);
    state->created = ARRAY(memory, int32_t, a);
    state->fresh = ARRAY(memory, int32_t, a);
    state->first = ARRAY(memory, int64_t, queues);
    state->last = ARRAY(memory, int64_t, queues);
    state->filled = ARRAY(memory, int64_t, shapes);
    state->filled_at = ARRAY(memory, int64_t, shapes);
    state->live = ARRAY(memory, int64_t, queues);
    state->cursor = ARRAY(memory, int64_t, queues);
    state->free = ARRAY(memory, int64_t, n * p->resources);
    state->scored = ARRAY(memory, int64_t, n * 2);
    state->image_ready_at = ARRAY(memory, double, p->images * n);
    state->gene_node = ARRAY(memory, int64_t, p->genes);
    state->claim_node = ARRAY(memory, int64_t, p->claim_count);
    state->claim_users = ARRAY(memory, int64_t, p->claim_count);
    state->claim_holders = ARRAY(memory, int64_t, p->claim_count);
    state->iteration_left = ARRAY(memory, int64_t, p->iterations);
    state->iteration_blocked = ARRAY(memory, int64_t, p->iterations);
    state->iteration_active = ARRAY(memory, uint8_t, p->iterations);
    state->loop_running = ARRAY(memory, int64_t, p->loops);
    state->in_order = ARRAY(memory, int32_t, a);
    state->sequence = ARRAY(memory, int32_t, a);
    state->sequence_start = ARRAY(memory, int64_t, n + 1);
    state->head = ARRAY(memory, int64_t, n);
    state->touched = ARRAY(memory, uint8_t, n);
    state->touched_nodes = ARRAY(memory, int64_t, n);
    state->last_end = ARRAY(memory, int64_t, n);
    state->everywhere = ARRAY(memory, int64_t, n);
    state->place_in_list = ARRAY(memory, int64_t, n);
    state->sample = ARRAY(memory, int64_t, n);
    state->total = ARRAY(memory, int64_t, n);
    state->marked = ARRAY(memory, int64_t, n);
    state->changed = ARRAY(memory, int64_t, 2 * a + 2);
    state->fit = ARRAY(memory, uint64_t, shapes * t->words);
    state->fit_count = ARRAY(memory, int64_t, shapes);
    state->score = ARRAY(memory, int16_t, shapes * n);
    state->fit_changes = ARRAY(memory, int64_t, shapes);
    state->score_changes = ARRAY(memory, int64_t, shapes);
    state->later = ARRAY(memory, Event, 2 * a + 2);
    state->now_code = ARRAY(memory, int64_t, 2 * a + 2);
    state->scratch = ARRAY(memory, Ranked, 2 * a);
    state->work_left = ARRAY(memory, double, t->shapes + 1);
    state->least_completion = ARRAY(memory, double, p->runs);
    state->sums = ARRAY(memory, double, n > p->runs ? n : p->runs);
    if (memory->is_short) {
        state_free(state);
        return NULL;
    }
    for (int64_t i = 0; i < a; i++)
        if (p->gene[p->topological[i]] >= 0) state->in_order[state->steps++] = (int32_t)p->topological[i];
    return state;
}

/* Ask for the lines of an activity before they are read: in a large run they are far from the processor. */
static inline void fetch_ahead(const State *s, int64_t activity) {
    __builtin_prefetch(s->of + activity);
    __builtin_prefetch(s->t->of + activity);
}

static void state_reset(State *s, const Problem *p) {
    const int64_t a = p->activities, n = p->nodes;
    for (int64_t i = 0; i < a; i++)
        s->of[i] = (Progress){.start = INFINITY, .begin = INFINITY, .end = INFINITY, .arrival = -1.0,
                              .node = -1, .cause = -1, .queue_of = -1,
                              .waiting = s->t->predecessors_start[i + 1] - s->t->predecessors_start[i]};
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
    s->next_start = s->fresh_count = s->queued_count = s->filled_count = s->changed_count = 0;
    s->later_size = s->now_size = s->touched_count = s->created_count = 0;
    s->due = 0;
    s->unfinished = a;
}
