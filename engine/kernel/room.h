/* The nodes with room for the pods of a shape, and kube-scheduler's scores for that room.
 *
 * Both change on one node at a time, with every pod that comes or goes. Each shape counts the changes that
 * it has taken in, and takes in the others before it is read. Nodes are in the order in which
 * kube-scheduler lists them: by place. */
#pragma once

#include "branches.h"
#include "scores.h"

enum { NO_ROOM = INT16_MIN };

/* NodeResourcesFit and the static filters. Loops are made apart for runs without branches, by a constant. */
ALWAYS_INLINE int admits_in(const Problem *p, const State *s, int64_t shape, int64_t node, const int branches) {
    const int64_t *needed = s->t->needed + shape * p->resources;
    const int64_t *room = branches ? room_for(p, s, shape, node) : s->free + node * p->resources;
    for (int64_t resource = 0; resource < p->resources; resource++)
        if (needed[resource] > room[resource]) return 0;
    return p->feasible[s->t->class_of_shape[shape] * p->nodes + node];
}

static inline int admits(const Problem *p, const State *s, int64_t shape, int64_t node) {
    return admits_in(p, s, shape, node, 1);
}

static inline void note_change(State *s, int64_t node) { s->changed[s->changed_count++] = node; }

ALWAYS_INLINE void set_fit(const Problem *p, State *s, int64_t shape, int64_t node, const int branches) {
    const int64_t place = s->place_in_list[node];
    const uint64_t bit = (uint64_t)1 << (place & 63);
    uint64_t *word = s->fit + shape * s->t->words + (place >> 6);
    const int fitted = (*word & bit) != 0, fits = admits_in(p, s, shape, node, branches) != 0;
    s->fit_count[shape] += fits - fitted;
    *word = fits ? *word | bit : *word & ~bit;
}

/* Find the nodes with room for a shape now, and return their number. */
ALWAYS_INLINE int64_t fill_fit(const Problem *p, const State *s, int64_t shape, uint64_t *fit, const int branches) {
    int64_t count = 0;
    memset(fit, 0, sizeof(uint64_t) * (size_t)s->t->words);
    for (int64_t place = 0; place < p->nodes; place++) {
        const int fits = admits_in(p, s, shape, s->everywhere[place], branches) != 0;
        fit[place >> 6] |= (uint64_t)fits << (place & 63);
        count += fits;
    }
    return count;
}

/* Bring the set of places of nodes with room for the shape up to date. */
ALWAYS_INLINE void update_fit(const Problem *p, State *s, int64_t shape, const int branches) {
    uint64_t *fit = s->fit + shape * s->t->words;
    const int64_t applied = s->fit_changes[shape];
    if (applied < 0 || s->changed_count - applied > p->nodes / 2)
        s->fit_count[shape] = fill_fit(p, s, shape, fit, branches);
    else
        for (int64_t change = applied; change < s->changed_count; change++)
            set_fit(p, s, shape, s->changed[change], branches);
    s->fit_changes[shape] = s->changed_count;
}

/* Return the set of places of nodes with room for the shape. */
static const uint64_t *fitting(const Problem *p, State *s, int64_t shape) {
    if (s->t->uses)
        update_fit(p, s, shape, 1);
    else
        update_fit(p, s, shape, 0);
    return s->fit + shape * s->t->words;
}

/* Return the default profile's score of a node's room: LeastAllocated and BalancedAllocation. */
static int64_t room_score(const Problem *p, const State *s, int64_t shape, int64_t node) {
    const int64_t *request = s->t->requests + shape * p->resources, *room = room_for(p, s, shape, node);
    const int64_t *scored_request = s->t->scored_requests + shape * 2;
    const int64_t scored[] = {scored_for(p, s, shape, node, 0), scored_for(p, s, shape, node, 1)};
    const int64_t cpu = p->allocatable[node * p->resources], memory = p->allocatable[node * p->resources + 1];
    int64_t score = RESOURCES_FIT_WEIGHT *
                    least_allocated(scored[0] + scored_request[0], scored[1] + scored_request[1], cpu, memory);
    if (p->scores_balance[s->t->class_of_shape[shape]])
        score += BALANCED_ALLOCATION_WEIGHT * balanced_allocation(cpu - room[0], memory - room[1], request[0], request[1],
                                                                  cpu, memory, p->version_136);
    return score;
}

static inline void set_score(const Problem *p, State *s, int64_t shape, int64_t node) {
    const int64_t score = admits(p, s, shape, node) ? room_score(p, s, shape, node) : NO_ROOM;
    s->score[shape * p->nodes + s->place_in_list[node]] = (int16_t)score;
}

/* Return the shape's scores by place, NO_ROOM where there is none. */
static const int16_t *room_scores(const Problem *p, State *s, int64_t shape) {
    int64_t change = s->score_changes[shape];
    if (change < 0 || s->changed_count - change > p->nodes)
        for (int64_t node = 0; node < p->nodes; node++) set_score(p, s, shape, node);
    else
        for (; change < s->changed_count; change++) set_score(p, s, shape, s->changed[change]);
    s->score_changes[shape] = s->changed_count;
    return s->score + shape * p->nodes;
}

/* Return the number of set bits; the instruction for it is not in the baseline that wheels are made for. */
static inline int64_t bits_in(uint64_t word) {
    word -= word >> 1 & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
    return (int64_t)(((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
}

/* Return the number of places of a set in [from, to). */
static int64_t count_between(const uint64_t *set, int64_t from, int64_t to) {
    if (from >= to) return 0;
    const int64_t first = from >> 6, last = (to - 1) >> 6;
    const uint64_t low = ~(uint64_t)0 << (from & 63), high = ~(uint64_t)0 >> (63 - ((to - 1) & 63));
    if (first == last) return bits_in(set[first] & low & high);
    int64_t count = bits_in(set[first] & low) + bits_in(set[last] & high);
    for (int64_t word = first + 1; word < last; word++) count += bits_in(set[word]);
    return count;
}

/* Return the place behind the `wanted`th of a set from `from` on; the set has that many there. */
static int64_t place_behind(const uint64_t *set, int64_t from, int64_t wanted) {
    int64_t word = from >> 6;
    uint64_t left = set[word] & (~(uint64_t)0 << (from & 63));
    for (int64_t count; (count = bits_in(left)) < wanted; left = set[++word]) wanted -= count;
    while (--wanted > 0) left &= left - 1;
    return word * 64 + __builtin_ctzll(left) + 1;
}

/* List the nodes of a set with places in [from, to) in their order, and return their number. */
static int64_t list_between(const State *s, const uint64_t *set, int64_t from, int64_t to, int64_t *nodes) {
    int64_t count = 0;
    if (from >= to) return 0;
    for (int64_t word = from >> 6; word <= (to - 1) >> 6; word++) {
        uint64_t left = set[word];
        if (word == from >> 6) left &= ~(uint64_t)0 << (from & 63);
        if (word == (to - 1) >> 6) left &= ~(uint64_t)0 >> (63 - ((to - 1) & 63));
        for (; left; left &= left - 1) nodes[count++] = s->everywhere[word * 64 + __builtin_ctzll(left)];
    }
    return count;
}
