/* The state of a simulation; one State serves any number of simulations, one after another. */
#pragma once

#include "sorting.h"
#include "tables.h"

/* The progress of an activity, on one line of the cache. */
typedef struct {
    double start, begin, end;     /* bind; volumes attached; end of the upload; infinite until known */
    double pull_seconds;          /* time of waiting for the image */
    double arrival;               /* when its inputs are on its node, with direct transfers; -1 = not known yet */
    int32_t node;                 /* -1 until bound */
    int32_t cause;                /* activity whose end let it start, -1 = none */
    int32_t queue_of;             /* queue in which it waits if no node could take it, -1 = none */
    int32_t sooner, later;        /* its neighbours in the queue, -1 = none; later: the next that waits for a holder */
    int32_t waiting;              /* predecessors that have not ended; READY_NOW: waits only for a node */
} Progress;

enum { READY_NOW = -1 };

typedef struct {
    uint64_t due;                 /* its time, as `ordinal_of` has it */
    int64_t code;                 /* number of the activity and the kind of event */
} Event;

/* What the pods inside a branch or a choice take of a place at present. */
typedef struct {
    int64_t key;                  /* 0 = nothing is there */
    int32_t first;                /* of a choice: its first branch in use, -1 = none */
    int32_t next, previous;       /* of a branch in use: its neighbours in this list, -1 = none */
} Use;

/* The arrays of a State, each with its number of elements. */
#define STATE_ARRAYS(FIELD)                                                                                        \
    FIELD(Progress, of, p->activities)                                                                             \
    FIELD(double, order, p->activities)                  /* the smaller, the earlier it is offered a node */       \
    FIELD(int32_t, created, p->activities)               /* pods created before it, which decides equal ones */    \
    FIELD(int32_t, fresh, p->activities)                 /* pods that are still to be offered to every node */     \
    FIELD(int64_t, first, t->shapes + p->nodes + 1)      /* of each queue, -1 = empty */                           \
    FIELD(int64_t, last, t->shapes + p->nodes + 1)                                                                 \
    FIELD(int64_t, filled, t->shapes)                    /* of shapes those that are not empty */                  \
    FIELD(int64_t, filled_at, t->shapes)                 /* the index of each in this list */                      \
    FIELD(int64_t, live, t->shapes + p->nodes + 1)       /* queues that this round goes through */                 \
    FIELD(int64_t, cursor, t->shapes + p->nodes + 1)     /* how far it is in each */                               \
    FIELD(int64_t, free, p->nodes * p->resources)                                                                  \
    FIELD(int64_t, scored, p->nodes * 2)                                                                           \
    FIELD(double, image_ready_at, p->images * p->nodes)  /* infinite = not there */                                \
    FIELD(int64_t, gene_node, p->genes)                  /* node of a group of volume sharers, -1 = none yet */    \
    FIELD(int64_t, claim_node, p->claim_count)                                                                     \
    FIELD(int64_t, claim_users, p->claim_count)                                                                    \
    FIELD(int64_t, claim_holders, p->claim_count)        /* bound pods that mount it */                            \
    FIELD(int64_t, holder_left, p->holders_count)        /* activities of it that have not ended */                \
    FIELD(int64_t, holder_waiting, p->holders_count)     /* first of those that wait for its place, -1 = none */   \
    FIELD(uint8_t, holder_active, p->holders_count)      /* has its place */                                       \
    FIELD(int64_t, called, p->holders_count)             /* that find a place which was given back */              \
    FIELD(int64_t, limit_taken, p->limits)               /* its places that holders have */                        \
    FIELD(int64_t, limit_next, p->limits)                /* no holder before this one waits */                     \
    FIELD(int32_t, in_order, p->activities)              /* steps with a gene, as the last simulation has them  */ \
    FIELD(int32_t, sequence, p->activities)              /* the plan's order by node (ORDERED) */                  \
    FIELD(int64_t, sequence_start, p->nodes + 1)                                                                   \
    FIELD(int64_t, head, p->nodes)                                                                                 \
    FIELD(uint8_t, touched, p->nodes)                    /* got room, or its next step became ready, just now */   \
    FIELD(int64_t, touched_nodes, p->nodes)                                                                        \
    FIELD(int64_t, last_end, p->nodes)                                                                             \
    FIELD(int64_t, everywhere, p->nodes)                 /* all nodes, as kube-scheduler lists them */             \
    FIELD(int64_t, place_in_list, p->nodes)              /* where it lists each node */                            \
    FIELD(int64_t, sample, p->nodes)                     /* nodes that are looked at for one pod */                \
    FIELD(int64_t, total, p->nodes)                      /* their scores */                                        \
    FIELD(int64_t, marked, p->nodes)                     /* the last mark that a node got */                       \
    FIELD(int64_t, changed, 2 * p->activities + 2)       /* nodes in the order in which their room changed */      \
    FIELD(uint64_t, fit, t->shapes * t->words)           /* places of nodes with room for the shape */             \
    FIELD(int64_t, fit_count, t->shapes)                 /* how many these are */                                  \
    FIELD(Use, use, t->uses)                             /* of places by branches and choices, see branches.h */   \
    FIELD(int64_t, used, t->uses * (p->resources + 2))   /* their amounts */                                       \
    FIELD(int64_t, seen, p->resources + 2)               /* room as pods of a branch see it, and scored amounts */ \
    FIELD(int64_t, change, p->resources + 2)             /* of amounts in use */                                   \
    FIELD(int16_t, score, t->shapes * p->nodes)          /* kube-scheduler's for the room, by place */             \
    FIELD(int64_t, fit_changes, t->shapes)               /* changes that these know of, -1 = not filled */         \
    FIELD(int64_t, score_changes, t->shapes)                                                                       \
    FIELD(Event, later, 2 * p->activities + 2)           /* heap of events after this instant */                   \
    FIELD(Event, now, 2 * p->activities + 2)             /* heap of events of this instant */                      \
    FIELD(Ranked, scratch, 2 * p->activities)            /* for sorting */                                         \
    FIELD(double, work_left, t->shapes + 1)              /* of pods to be bound, by shape, and of all (FULLEST) */ \
    FIELD(double, least_completion, p->runs)             /* end of each run, at least, by what is known now */     \
    FIELD(double, sums, p->nodes + p->runs)              /* for adding up the terms of the objective */

typedef struct {
    const Tables *t;              /* of the problem */
    STATE_ARRAYS(DECLARE)
    double least_cost, cost_limit; /* weighted sum of these, and the most that it may be */
    double idle, idle_limit;      /* of the scarcest resource: room times seconds that nobody took, and the most */
    double idle_room, counted_until; /* what is free of it now, and since when */
    uint64_t due;                 /* the instant whose events are being simulated, as `ordinal_of` has it */
    int64_t later_size, now_size, fresh_count, queued_count, filled_count, touched_count, changed_count, created_count;
    int64_t unfinished;           /* activities that have not ended */
    int64_t attaching;            /* bound pods that wait for a volume */
    int64_t next_start;           /* where kube-scheduler's next look at the nodes starts */
    int64_t draw;                 /* seed of random ties */
    int64_t mark;                 /* of nodes that hold inputs of the pod that is being placed */
    int64_t steps;                /* how many have a gene */
    Memory memory;
} State;

static void state_free(State *state) {
    if (!state) return;
    give_back(&state->memory);
    free(state);
}

/* NULL when there is no memory left. */
static State *state_new(const Problem *p) {
    const Tables *t = p->tables;
    State *own = calloc(1, sizeof(State));
    if (!own) return NULL;
    STATE_ARRAYS(ALLOCATE)
    if (own->memory.is_short) {
        state_free(own);
        return NULL;
    }
    own->t = t;
    for (int64_t i = 0; i < p->activities; i++)
        if (p->gene[p->topological[i]] >= 0) own->in_order[own->steps++] = (int32_t)p->topological[i];
    return own;
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
    for (int64_t limit = 0; limit < p->limits; limit++) {
        s->limit_taken[limit] = 0;
        s->limit_next[limit] = p->limit_start[limit + 1];
    }
    for (int64_t holder = 0; holder < p->holders_count; holder++) {
        s->holder_left[holder] = p->holder_size[holder];
        s->holder_waiting[holder] = -1;
        s->holder_active[holder] = p->holder_started[holder];
    }
    for (int64_t node = 0; node < n; node++) {
        s->touched[node] = 0;
        s->last_end[node] = -1;
    }
    for (int64_t queue = 0; queue < s->t->shapes + n + 1; queue++) s->first[queue] = s->last[queue] = -1;
    for (int64_t shape = 0; shape < s->t->shapes; shape++) s->fit_changes[shape] = s->score_changes[shape] = -1;
    s->next_start = s->fresh_count = s->queued_count = s->filled_count = s->changed_count = 0;
    s->later_size = s->now_size = s->touched_count = s->created_count = 0;
    for (int64_t slot = 0; slot < s->t->uses; slot++) s->use[slot].key = 0;
    s->due = 0;
    s->attaching = 0;
    s->unfinished = a;
}
