/* All assignments and, for ordered dispatch, all orders that respect the precedences. */
#pragma once

#include "fitness.h"
#include "loop.h"

typedef struct {
    const Problem *p;
    State *state;
    int policy;
    int64_t *deciders;   /* activities with a gene */
    int64_t count;
    uint64_t *ancestors; /* [count] deciders that must come before, as bits */
    int64_t *genes, *best_genes;
    double *keys, *best_keys, *best_terms;
    int64_t played;
} Exhaustion;

static void play_one(Exhaustion *x) {
    const Problem *p = x->p;
    Decision decision = {.policy = x->policy, .planned = x->genes, .priority = x->keys, .limit = INFINITY};
    double terms[TERMS];
    play(p, x->state, &decision);
    cost_terms(p, x->state, terms);
    if (x->played++ > 0 && compare_terms(terms, x->best_terms) >= 0) return;
    memcpy(x->best_terms, terms, sizeof(terms));
    memcpy(x->best_genes, x->genes, sizeof(int64_t) * (size_t)p->genes);
    memcpy(x->best_keys, x->keys, sizeof(double) * (size_t)p->activities);
}

static void each_assignment(Exhaustion *x, int64_t gene) {
    if (gene == x->p->genes) {
        play_one(x);
        return;
    }
    for (int64_t node = 0; node < x->p->nodes; node++) {
        if (!x->p->allowed[gene * x->p->nodes + node]) continue;
        x->genes[gene] = node;
        each_assignment(x, gene + 1);
    }
}

static void each_order(Exhaustion *x, uint64_t placed, int64_t position) {
    if (position == x->count) {
        each_assignment(x, 0);
        return;
    }
    for (int64_t i = 0; i < x->count; i++) {
        uint64_t bit = (uint64_t)1 << i;
        if ((placed & bit) || (x->ancestors[i] & ~placed)) continue;
        x->keys[x->deciders[i]] = (double)position;
        each_order(x, placed | bit, position + 1);
    }
}

/* Which deciders precede each decider; `reach` holds one set for each activity. */
static void find_ancestors(Exhaustion *x, uint64_t *reach) {
    const Problem *p = x->p;
    for (int64_t i = 0; i < p->activities; i++) {
        int64_t activity = p->topological[i];
        reach[activity] = 0;
        for (int64_t e = p->predecessors_start[activity]; e < p->predecessors_start[activity + 1]; e++) {
            int64_t before = p->predecessors[e];
            reach[activity] |= reach[before];
            for (int64_t d = 0; d < x->count; d++)
                if (x->deciders[d] == before) reach[activity] |= (uint64_t)1 << d;
        }
    }
    for (int64_t d = 0; d < x->count; d++) x->ancestors[d] = reach[x->deciders[d]];
}

/* Best genes, keys and terms; returns the number of plans played, -1 when there is no memory left or
 * more than 62 activities must be ordered. */
int64_t brute_force(const Problem *p, int64_t ordered, int64_t *best_genes, double *best_keys, double *best_terms) {
    Exhaustion x = {.p = p, .policy = ordered ? ORDERED : READY, .best_genes = best_genes, .best_keys = best_keys,
                    .best_terms = best_terms, .state = state_new(p)};
    Memory memory = {0};
    x.deciders = ARRAY(&memory, int64_t, p->activities);
    x.ancestors = ARRAY(&memory, uint64_t, 64);
    x.genes = ARRAY(&memory, int64_t, p->genes);
    x.keys = ARRAY(&memory, double, p->activities);
    uint64_t *reach = ARRAY(&memory, uint64_t, p->activities);
    int is_possible = x.state && !memory.is_short;
    for (int64_t activity = 0; is_possible && activity < p->activities; activity++)
        if (p->gene[activity] >= 0) x.deciders[x.count++] = activity;
    is_possible = is_possible && (!ordered || x.count <= 62);
    if (is_possible && ordered) {
        find_ancestors(&x, reach);
        each_order(&x, 0, 0);
    } else if (is_possible) {
        each_assignment(&x, 0);
    }
    state_free(x.state);
    give_back(&memory);
    return is_possible ? x.played : -1;
}
