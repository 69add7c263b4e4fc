/* The memetic search: plans that improve by moves and exchange parts by crossover.
 *
 * Slot 0 of the population is the best of it. A child replaces its parent unless it is worse. It is
 * always rewritten as the plan that its simulated schedule shows: nodes, and starts as order. */
#pragma once

#include "fitness.h"
#include "loop.h"
#include "random.h"
#include "serial.h"

typedef struct {
    double crossover_rate;  /* share of children that mix two parents */
    double window_share;    /* share of mixed children that take all of a stretch of time from the second parent */
    double serial_share;    /* share of children decoded serially and justified (ordered dispatch) */
    double moved_share;     /* share of serial children whose steps may go to other nodes, each with a drawn probability */
    double greedy_share;    /* share of the others decoded by list scheduling (ordered dispatch) */
    double deadline_share;  /* share of children with steps placed again for a deadline (ready dispatch) */
    double most_moves;      /* largest number of moves per child */
} SearchParameters;

typedef struct {
    int64_t *genes;   /* [size, G] */
    double *keys;     /* [size, A] starts, which are the order of the plan */
    double *terms;    /* [size, TERMS] */
    uint64_t *random; /* [4] */
    int64_t *schedules; /* [1] number of simulated schedules, including those that were given up */
    int64_t size;
} Population;

static const double EARLIEST_DEADLINE = 0.4, LATEST_DEADLINE = 1.1; /* x the completion of the parent */

enum { SERIAL = -1 }; /* beside the policies: decoded serially, then simulated in order */

typedef struct {
    const Problem *p;
    Population *population;
    const SearchParameters *parameters;
    State *state;
    Serial serial;
    int ordered;
    int64_t *genes;    /* [G] the child */
    double deadline;   /* deadline of its steps that are placed again */
    double *keys;      /* [A] */
    int64_t *deciders; /* activities with a gene */
    int32_t *orders;   /* [size, A] order of the last child of each slot */
    int32_t *order;    /* [A] order of the child's parent */
    int64_t decider_count;
    Memory memory;
} Search;

static int64_t random_decider(Search *search) {
    return search->deciders[random_index(search->population->random, search->decider_count)];
}

/* Draw another allowed node, uniformly; on large clusters a few draws may all be refused. */
static void move_to_node(Search *search, int64_t activity) {
    const Problem *p = search->p;
    int64_t gene = p->gene[activity];
    for (int attempt = 0; attempt < 24; attempt++) {
        int64_t node = random_index(search->population->random, p->nodes);
        if (node != search->genes[gene] && p->allowed[gene * p->nodes + node]) {
            search->genes[gene] = node;
            return;
        }
    }
}

static void swap_nodes(Search *search, int64_t activity, int64_t other) {
    const Problem *p = search->p;
    int64_t gene = p->gene[activity], swapped = p->gene[other];
    int64_t node = search->genes[gene], other_node = search->genes[swapped];
    if (!p->allowed[gene * p->nodes + other_node] || !p->allowed[swapped * p->nodes + node]) return;
    search->genes[gene] = other_node;
    search->genes[swapped] = node;
}

/* Draw a key between the latest predecessor's place in the order and its own. */
static void move_earlier(Search *search, int64_t activity) {
    const Tables *t = search->p->tables;
    double low = 0.0, *keys = search->keys;
    for (int64_t edge = t->predecessors_start[activity]; edge < t->predecessors_start[activity + 1]; edge++)
        low = fmax(low, keys[t->predecessors[edge]]);
    keys[activity] = low + random_unit(search->population->random) * (keys[activity] - low);
}

static void swap_order(Search *search, int64_t activity, int64_t other) {
    double key = search->keys[activity];
    search->keys[activity] = search->keys[other];
    search->keys[other] = key;
}

static void mutate(Search *search) {
    uint64_t *random = search->population->random;
    for (int64_t moves = 0; moves < (int64_t)search->parameters->most_moves; moves++) {
        int64_t activity = random_decider(search);
        /* Under ready dispatch there is no order, and on one node no choice. */
        double kind = search->ordered ? random_unit(random) : 0.5 * random_unit(random);
        if (search->ordered && search->p->nodes == 1) kind = 0.5 + 0.5 * kind;
        if (kind < 0.35) {
            move_to_node(search, activity);
        } else if (kind < 0.5) {
            swap_nodes(search, activity, random_decider(search));
        } else if (kind < 0.8) {
            move_earlier(search, activity);
        } else {
            swap_order(search, activity, random_decider(search));
        }
        if (random_unit(random) < 0.5) return;
    }
}

static int lies_between(double key, double one, double other) { return key >= fmin(one, other) && key <= fmax(one, other); }

/* Place the steps between the starts of two steps again, each on the slowest node where it is in time for a drawn
 * deadline. Steps will have to wait for room, so the deadline is mostly earlier than the end of the parent. */
static void place_again(Search *search, int64_t slot) {
    const Problem *p = search->p;
    uint64_t *random = search->population->random;
    const double completion = search->population->terms[slot * TERMS + completion_term(p)] / p->run_weight[0];
    const double one = search->keys[random_decider(search)], other = search->keys[random_decider(search)];
    search->deadline = completion * (EARLIEST_DEADLINE + (LATEST_DEADLINE - EARLIEST_DEADLINE) * random_unit(random));
    for (int64_t i = 0; i < search->decider_count; i++) {
        const int64_t activity = search->deciders[i];
        if (lies_between(search->keys[activity], one, other)) search->genes[p->gene[activity]] = UNDECIDED;
    }
}

static double latest_key(const Search *search, const double *keys) {
    double latest = 0.0;
    for (int64_t i = 0; i < search->decider_count; i++) {
        const double key = keys[search->deciders[i]];
        if (key < 1e299 && key > latest) latest = key;
    }
    return latest;
}

/* Mix with a second parent: each gene, with the places of its activities in the order, from either one; or
 * all that the second one starts in a stretch of time (in the spirit of the peak crossover of Valls,
 * Ballestin, Quintanilla 2008). */
static void cross(Search *search, int64_t mate) {
    const Problem *p = search->p;
    uint64_t *random = search->population->random;
    const int64_t *genes = search->population->genes + mate * p->genes;
    const double *keys = search->population->keys + mate * p->activities;
    const double window_share = search->parameters->window_share;
    const int by_window = window_share > 0.0 && random_unit(random) < window_share;
    const double latest = by_window ? latest_key(search, keys) : 1.0;
    const double one = random_unit(random) * latest, other = by_window ? random_unit(random) * latest : 0.0;
    for (int64_t i = 0; i < search->decider_count; i++) {
        const int64_t activity = search->deciders[i];
        const int is_taken = by_window ? lies_between(keys[activity], one, other) : random_unit(random) < one;
        if (!is_taken) continue;
        search->genes[p->gene[activity]] = genes[p->gene[activity]];
        search->keys[activity] = keys[activity];
    }
}

/* Raise keys so that no activity comes before a predecessor in the order. */
static void respect_precedences(const Problem *p, double *keys) {
    const Tables *t = p->tables;
    for (int64_t i = 0; i < p->activities; i++) {
        const int64_t activity = p->topological[i];
        double key = keys[activity];
        for (int32_t edge = t->predecessors_start[activity]; edge < t->predecessors_start[activity + 1]; edge++)
            key = later_of(key, keys[t->predecessors[edge]]);
        keys[activity] = key;
    }
}

/* Simulate the child as it is; return 0 if it costs more than the limit, and the simulation stopped early. */
static int simulate_child(Search *search, int policy, double limit, double *terms) {
    Decision decision = {.policy = policy, .planned = search->genes, .priority = search->keys, .order = search->order,
                         .limit = limit, .deadline = search->deadline};
    *search->population->schedules += 1;
    if (!simulate_decision(search->p, search->state, &decision)) return 0;
    cost_terms(search->p, search->state, terms);
    return 1;
}

/* Rewrite the child as the plan that its schedule shows; steps without a node keep that of the parent. */
static void rewrite_child(Search *search, const int64_t *parent) {
    const Problem *p = search->p;
    const State *s = search->state;
    for (int64_t i = 0; i < search->decider_count; i++) {
        const int64_t activity = search->deciders[i], gene = p->gene[activity];
        if (s->of[activity].node >= 0)
            search->genes[gene] = s->of[activity].node;
        else if (search->genes[gene] == UNDECIDED)
            search->genes[gene] = parent[gene];
    }
    for (int64_t activity = 0; activity < p->activities; activity++) {
        const Progress *of = s->of + activity;
        double start = of->start;
        /* Under ORDERED a step takes its place when its data is there; under other policies it may be before. */
        if (p->direct && search->ordered && isfinite(start))
            start = fmax(start, of->arrival >= 0.0 ? of->arrival : arrival_seconds(p, s, activity, of->node));
        search->keys[activity] = isfinite(start) ? start : 1e300;
    }
}

static void store(Search *search, int64_t slot, const double *terms) {
    const Problem *p = search->p;
    Population *population = search->population;
    memcpy(population->genes + slot * p->genes, search->genes, sizeof(int64_t) * (size_t)p->genes);
    memcpy(population->keys + slot * p->activities, search->keys, sizeof(double) * (size_t)p->activities);
    memcpy(population->terms + slot * TERMS, terms, sizeof(double) * TERMS);
}

static int child_policy(Search *search) {
    if (!search->ordered) return READY;
    const double serial_share = search->parameters->serial_share;
    if (serial_share > 0.0 && random_unit(search->population->random) < serial_share) return SERIAL;
    return random_unit(search->population->random) < search->parameters->greedy_share ? GREEDY : BACKFILL;
}

/* The weighted completion beyond which the slot does not take a child. It decides only where the terms
 * before it cannot get better: all is placed, with no latency excess, and the latest end is within its limit. */
static double taken_limit(const Search *search, int64_t slot) {
    const double *own = search->population->terms + slot * TERMS;
    if (search->p->objective != COMPLETION || own[0] > 0.0 || own[1] > 1e-9) return INFINITY;
    const int term = completion_term(search->p);
    return term > 2 && own[2] > 1e-9 ? INFINITY : own[term];
}

/* Try one child; return 1 if it is the best so far, -1 if there is no memory left. */
static int try_child(Search *search) {
    const Problem *p = search->p;
    Population *population = search->population;
    uint64_t *random = population->random;
    int64_t slot = random_index(random, population->size);
    memcpy(search->genes, population->genes + slot * p->genes, sizeof(int64_t) * (size_t)p->genes);
    memcpy(search->keys, population->keys + slot * p->activities, sizeof(double) * (size_t)p->activities);
    search->order = search->ordered ? search->orders + slot * p->activities : NULL;
    if (random_unit(random) < search->parameters->crossover_rate) cross(search, random_index(random, population->size));
    search->deadline = 0.0;
    const double deadline_share = search->parameters->deadline_share;
    if (deadline_share > 0.0 && random_unit(random) < deadline_share)
        place_again(search, slot);
    else
        mutate(search);
    if (search->ordered) respect_precedences(p, search->keys);
    double terms[TERMS];
    int policy = child_policy(search);
    if (policy == SERIAL) {
        const double share = search->parameters->moved_share;
        const double moved = p->nodes > 1 && share > 0.0 && random_unit(random) < share ? random_unit(random) : 0.0;
        const int64_t decoded = serial_decode(p, &search->serial, search->genes, search->keys, moved, random);
        if (decoded < 0) return -1;
        *population->schedules += decoded - 1; /* simulating it changes nothing, and is counted below */
        policy = ORDERED;
    }
    const double limit = taken_limit(search, slot);
    /* The best schedule of another policy is simulated again in order, whatever it costs. */
    const int is_simulated_again = search->ordered && slot == 0 && policy != ORDERED;
    if (!simulate_child(search, policy, is_simulated_again ? INFINITY : limit, terms)) return 0;
    rewrite_child(search, population->genes + slot * p->genes);
    int against_best = compare_terms(terms, population->terms);
    /* Slot 0 holds what a plan really does: driver pods may go elsewhere when it is simulated again. */
    if (search->ordered && (against_best < 0 || (slot == 0 && (policy != ORDERED || against_best == 0)))) {
        if (!simulate_child(search, ORDERED, limit, terms)) return 0;
        against_best = compare_terms(terms, population->terms);
    }
    if (compare_terms(terms, population->terms + slot * TERMS) <= 0) store(search, slot, terms);
    if (against_best < 0 && slot != 0) store(search, 0, terms);
    return against_best < 0;
}

void search_close(Search *search) {
    if (!search) return;
    state_free(search->state);
    serial_free(search->p, &search->serial);
    give_back(&search->memory);
    free(search);
}

/* Return the memory that a search of the problem works with; NULL when there is no memory left. */
Search *search_open(const Problem *p) {
    Search *search = calloc(1, sizeof(Search));
    if (!search) return NULL;
    Memory *memory = &search->memory;
    search->p = p;
    search->state = state_new(p);
    search->genes = ARRAY(memory, int64_t, p->genes);
    search->keys = ARRAY(memory, double, p->activities);
    search->deciders = ARRAY(memory, int64_t, p->activities);
    if (!search->state || memory->is_short) {
        search_close(search);
        return NULL;
    }
    for (int64_t activity = 0; activity < p->activities; activity++)
        if (p->gene[activity] >= 0) search->deciders[search->decider_count++] = activity;
    return search;
}

/* Prepare, before the first child, what only some searches need; return 0 when there is no memory left. */
static int prepare(Search *search) {
    const int64_t activities = search->p->activities, size = search->population->size;
    if (!search->ordered) return 1;
    const int is_serial = search->parameters->serial_share > 0.0;
    if (is_serial && !search->serial.profiles && !serial_open(search->p, &search->serial)) return 0;
    if (search->orders) return 1;
    search->orders = ARRAY(&search->memory, int32_t, size * activities);
    for (int64_t slot = 0; search->orders && slot < size; slot++)
        memcpy(search->orders + slot * activities, search->state->in_order, sizeof(int32_t) * (size_t)activities);
    return search->orders != NULL;
}

/* Try children; return how many were the best so far, -1 when there is no memory left. */
int64_t improve(Search *search, Population *population, const SearchParameters *parameters, int64_t ordered,
                int64_t trials) {
    int64_t improved = 0;
    search->population = population;
    search->parameters = parameters;
    search->ordered = (int)ordered;
    if (!prepare(search)) return -1;
    for (int64_t trial = 0; trial < trials && search->decider_count > 0; trial++) {
        const int better = try_child(search);
        if (better < 0) return -1;
        improved += better;
    }
    return improved;
}
