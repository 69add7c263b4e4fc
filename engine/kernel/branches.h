/* Branches of a choice share room, claims and places of limits, since a run takes at most one of them.
 *
 * A choice takes as much of a place as that of its branches which takes most; a branch takes what its own pods
 * take, and the choices right inside it. What is left of the outermost choices and of the pods in no branch is
 * free in every outcome. A pod in a branch sees more: what its branch takes less than the others of its choice,
 * and so on outwards. So what fits in the joint schedule fits in each outcome.
 *
 * A place is a node or, behind all nodes, a claim, of which a pod takes 1, or a limit, of which a holder takes 1.
 * Most branches use few places, so that uses are in a hash table. A choice that is aside takes nothing: its pods see what others leave, and others do
 * not see them. Of an image that a pod in a branch has pulled only those know that run only if this pod does:
 * behind all limits the table has a place for each image on each node, with the time at which it is there. */
#pragma once

#include "random.h"
#include "state.h"

static inline int64_t use_width(const Problem *p) { return p->resources + 2; }

static inline int64_t places(const Problem *p) { return p->nodes * (1 + p->images) + p->claim_count + p->limits; }

static inline int64_t place_of_image(const Problem *p, int64_t image, int64_t node) {
    return p->nodes + p->claim_count + p->limits + image * p->nodes + node;
}

static inline int64_t place_of_limit(const Problem *p, int64_t limit) { return p->nodes + p->claim_count + limit; }

/* Return whether a branch is around another one, or the same; -1, no branch, is around all. */
static int is_around(const Problem *p, int64_t branch, int64_t inner) {
    while (inner > branch) inner = p->choice_around[p->branch_choice[inner]];
    return inner == branch;
}

/* Return the slot of the use of a place by a branch or, behind all branches, a choice; it may be empty. */
static int64_t slot_of_use(const Problem *p, const State *s, int64_t user, int64_t place) {
    const int64_t key = user * places(p) + place + 1;
    int64_t slot = (int64_t)(mixed(0, (uint64_t)key) & (uint64_t)(s->t->uses - 1));
    while (s->use[slot].key != 0 && s->use[slot].key != key) slot = (slot + 1) & (s->t->uses - 1);
    return slot;
}

static inline int64_t *amounts_of(const Problem *p, const State *s, int64_t slot) { return s->used + slot * use_width(p); }

/* Return the slot, with a use that takes nothing if it was empty. */
static int64_t open_use(const Problem *p, State *s, int64_t user, int64_t place) {
    const int64_t slot = slot_of_use(p, s, user, place);
    if (s->use[slot].key) return slot;
    s->use[slot] = (Use){.key = user * places(p) + place + 1, .first = -1, .next = -1, .previous = -1};
    memset(amounts_of(p, s, slot), 0, sizeof(int64_t) * (size_t)use_width(p));
    return slot;
}

/* Return whether all amounts are zero. */
static int is_nothing(const Problem *p, const int64_t *amounts) {
    for (int64_t i = 0; i < use_width(p); i++)
        if (amounts[i] != 0) return 0;
    return 1;
}

static void list_branch(State *s, int64_t choice, int64_t branch) {
    const int32_t first = s->use[choice].first;
    s->use[branch].next = first;
    s->use[branch].previous = -1;
    if (first >= 0) s->use[first].previous = (int32_t)branch;
    s->use[choice].first = (int32_t)branch;
}

static void unlist_branch(State *s, int64_t choice, int64_t branch) {
    const Use *use = s->use + branch;
    if (use->next >= 0) s->use[use->next].previous = use->previous;
    if (use->previous >= 0)
        s->use[use->previous].next = use->next;
    else
        s->use[choice].first = use->next;
}

/* Return the most that a branch of the choice takes; `known` is enough if a branch takes as much. */
static int64_t most_of_branches(const Problem *p, const State *s, int64_t choice, int64_t i, int64_t known) {
    int64_t most = 0;
    for (int64_t branch = s->use[choice].first; branch >= 0 && most < known; branch = s->use[branch].next) {
        const int64_t amount = amounts_of(p, s, branch)[i];
        most = amount > most ? amount : most;
    }
    return most;
}

/* Add s->change to what a branch takes of a place. */
static void add_change(const Problem *p, State *s, int64_t whole, int64_t own) {
    int64_t *amounts = amounts_of(p, s, own);
    if (is_nothing(p, amounts)) list_branch(s, whole, own);
    for (int64_t i = 0; i < use_width(p); i++) amounts[i] += s->change[i];
    if (is_nothing(p, amounts)) unlist_branch(s, whole, own);
}

/* Find what a choice takes once s->change is added to one of its branches; s->change becomes the difference. */
static void change_most(const Problem *p, State *s, int64_t whole, int64_t own) {
    int64_t *most = amounts_of(p, s, whole);
    for (int64_t i = 0; i < use_width(p); i++) {
        const int64_t before = most[i], amount = amounts_of(p, s, own)[i];
        if (amount >= before)
            most[i] = amount;
        else if (amount - s->change[i] == before)
            most[i] = most_of_branches(p, s, whole, i, before);
        s->change[i] = most[i] - before;
    }
}

/* Add s->change, whose amounts have one sign, to what a branch takes of a place; it becomes what this changes outside
 * of all choices. */
static void change_use(const Problem *p, State *s, int64_t branch, int64_t place) {
    for (int64_t choice; branch >= 0 && !is_nothing(p, s->change); branch = p->choice_around[choice]) {
        choice = p->branch_choice[branch];
        const int64_t own = open_use(p, s, branch, place), whole = open_use(p, s, p->branches + choice, place);
        add_change(p, s, whole, own);
        if (p->choice_aside[choice])
            memset(s->change, 0, sizeof(int64_t) * (size_t)use_width(p));
        else
            change_most(p, s, whole, own);
    }
}

/* Add to s->seen what the branch takes less of a place than the most of its choice, and so on outwards. */
static void add_slack(const Problem *p, const State *s, int64_t branch, int64_t place) {
    for (; branch >= 0; branch = p->choice_around[p->branch_choice[branch]]) {
        const int64_t own = slot_of_use(p, s, branch, place);
        const int64_t whole = slot_of_use(p, s, p->branches + p->branch_choice[branch], place);
        const int64_t *amounts = amounts_of(p, s, own), *most = amounts_of(p, s, whole);
        for (int64_t i = 0; s->use[whole].key && i < use_width(p); i++)
            s->seen[i] += most[i] - (s->use[own].key ? amounts[i] : 0);
    }
}

/* Return [R + 2] the room of a node for a pod in a branch, and, less than zero, its scored amounts. */
__attribute__((cold, noinline)) static const int64_t *room_in_branch(const Problem *p, const State *s, int64_t branch, int64_t node) {
    for (int64_t i = 0; i < p->resources; i++) s->seen[i] = s->free[node * p->resources + i];
    for (int64_t i = 0; i < 2; i++) s->seen[p->resources + i] = -s->scored[node * 2 + i];
    add_slack(p, s, branch, node);
    return s->seen;
}

/* Most runs have no branches, and do not look at the shape. */
static inline int is_in_branch(const State *s, int64_t shape) {
    return __builtin_expect(s->t->uses != 0, 0) && s->t->branch_of_shape[shape] >= 0;
}

/* Return [R] the room of a node for pods of a shape; it is read before it is asked for again. */
static inline const int64_t *room_for(const Problem *p, const State *s, int64_t shape, int64_t node) {
    if (!is_in_branch(s, shape)) return s->free + node * p->resources;
    return room_in_branch(p, s, s->t->branch_of_shape[shape], node);
}

/* Return one of the two scored amounts of a node as pods of the shape see it, right after `room_for`. */
static inline int64_t scored_for(const Problem *p, const State *s, int64_t shape, int64_t node, int64_t i) {
    return is_in_branch(s, shape) ? -s->seen[p->resources + i] : s->scored[node * 2 + i];
}

/* Return by how much a holder in a branch that takes a place (times 1) or gives it back (times -1) changes how
 * many hold it. */
static int64_t change_holders(const Problem *p, State *s, int64_t branch, int64_t place, int64_t times) {
    if (branch < 0) return times;
    memset(s->change, 0, sizeof(int64_t) * (size_t)use_width(p));
    s->change[0] = times;
    change_use(p, s, branch, place);
    return s->change[0];
}

/* Return how many of the holders of a place may run beside what is in the branch. */
static inline int64_t holders_beside(const Problem *p, const State *s, int64_t branch, int64_t place, int64_t holders) {
    if (branch < 0) return holders;
    s->seen[0] = 0;
    add_slack(p, s, branch, place);
    return holders - s->seen[0];
}

/* Return how many pods hold a claim, of those that may run beside the activity. */
static int64_t holders_for(const Problem *p, const State *s, int64_t activity, int64_t claim) {
    return holders_beside(p, s, p->branch[activity], p->nodes + claim, s->claim_holders[claim]);
}

/* Return when an image is on a node that pods in the branch, or around it, may have asked for. */
__attribute__((cold, noinline)) static double image_in_branch(const Problem *p, const State *s, int64_t branch, int64_t image, int64_t node) {
    double ready = s->image_ready_at[image * p->nodes + node], pulled;
    for (; branch >= 0; branch = p->choice_around[p->branch_choice[branch]]) {
        const int64_t slot = slot_of_use(p, s, branch, place_of_image(p, image, node));
        if (!s->use[slot].key) continue;
        memcpy(&pulled, amounts_of(p, s, slot), sizeof(pulled));
        ready = pulled < ready ? pulled : ready;
    }
    return ready;
}

/* Return when an image is on a node as the activity sees it; infinite = nobody has asked for it. */
static inline double image_ready_seconds(const Problem *p, const State *s, int64_t activity, int64_t image, int64_t node) {
    if (__builtin_expect(s->t->uses == 0, 1)) return s->image_ready_at[image * p->nodes + node];
    return image_in_branch(p, s, p->branch[activity], image, node);
}

/* Let the activity pull an image, which is then ready at that time. */
static void pull_image(const Problem *p, State *s, int64_t activity, int64_t image, int64_t node, double ready) {
    if (p->branch[activity] < 0)
        s->image_ready_at[image * p->nodes + node] = ready;
    else
        memcpy(amounts_of(p, s, open_use(p, s, p->branch[activity], place_of_image(p, image, node))), &ready, sizeof(ready));
}
