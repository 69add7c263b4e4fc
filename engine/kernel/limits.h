/* Limits of how much is under way at once.
 *
 * A limit has places for some of its holders. A holder is a set of activities: it takes a place when the first
 * of them is ready, and gives it back when the last has ended. An activity takes the places of its holders in
 * their order, and keeps those that it has while it waits for the next. Holders that take theirs together, such
 * as the locks of one template, take all or none. Holders in branches that exclude each other share places. */
#pragma once

#include "branches.h"
#include "events.h"

enum { CALLED = -2, ANY = -2 }; /* of a holder: it may try again; of branches: none is around it */

/* Let a holder take a place of its limit (times 1), or give it back (times -1). */
static inline void change_places(const Problem *p, State *s, int64_t holder, int64_t times) {
    const int64_t limit = p->holder_limit[holder];
    if (__builtin_expect(s->t->uses != 0, 0))
        times = change_holders(p, s, s->t->branch_of_holder[holder], place_of_limit(p, limit), times);
    s->limit_taken[limit] += times;
}

/* Return whether its limit has no place for a holder. */
static inline int is_full_for(const Problem *p, const State *s, int64_t holder) {
    const int64_t limit = p->holder_limit[holder];
    int64_t taken = s->limit_taken[limit];
    if (__builtin_expect(s->t->uses != 0, 0))
        taken = holders_beside(p, s, s->t->branch_of_holder[holder], place_of_limit(p, limit), taken);
    return taken >= p->limit_most[limit];
}

/* Let the activities that wait for a place of the holder try again. */
static void call_holder(State *s, int64_t holder, double now) {
    int64_t activity = s->holder_waiting[holder];
    s->holder_waiting[holder] = CALLED;
    for (; activity >= 0; activity = s->of[activity].later) push_event(s, now, activity, BECOMES_READY);
}

#define MOST_REFUSED 64 /* holders that are found to have no place, in a row of calls; the next are asked later */

/* Let the holders of a limit try again that find a place once one in the branch has given its own back: one that
 * runs in all outcomes in which that one does, and before it others, which exclude each other. */
__attribute__((cold, noinline)) static void call_beside(const Problem *p, State *s, int64_t limit, int64_t branch, double now) {
    const int64_t end = p->limit_start[limit + 1];
    int64_t count = 0, refused = 0, full = ANY; /* branch without a place */
    for (int64_t next = s->limit_next[limit]; next < end && refused < MOST_REFUSED; next++) {
        const int64_t own = s->t->branch_of_holder[next];
        if (s->holder_waiting[next] < 0 || own == full) continue;
        if (is_full_for(p, s, next)) {
            full = own;
            refused += 1;
            continue;
        }
        change_places(p, s, next, 1);
        s->called[count++] = next;
        if (is_around(p, own, branch)) break;
    }
    while (count-- > 0) {
        change_places(p, s, s->called[count], -1);
        call_holder(s, s->called[count], now);
    }
}

/* Give a place back; the first holder that waits for one may try again. */
static void give_place_back(const Problem *p, State *s, int64_t holder, double now) {
    const int64_t limit = p->holder_limit[holder], end = p->limit_start[limit + 1];
    s->holder_active[holder] = 0;
    change_places(p, s, holder, -1);
    if (s->limit_taken[limit] >= p->limit_most[limit] && s->t->uses == 0) return;
    int64_t next = s->limit_next[limit];
    while (next < end && s->holder_waiting[next] < 0) next++;
    s->limit_next[limit] = next;
    if (next == end) return;
    if (s->t->uses == 0)
        call_holder(s, next, now);
    else
        call_beside(p, s, limit, s->t->branch_of_holder[holder], now);
}

static void wait_for_place(const Problem *p, State *s, int64_t holder, int64_t activity) {
    const int64_t limit = p->holder_limit[holder];
    s->of[activity].later = (int32_t)s->holder_waiting[holder];
    s->holder_waiting[holder] = activity;
    if (holder < s->limit_next[limit]) s->limit_next[limit] = holder;
}

/* Count the places that holders have had since before time zero. */
static void take_started_places(const Problem *p, State *s) {
    for (int64_t holder = 0; holder < p->holders_count; holder++)
        if (p->holder_started[holder]) change_places(p, s, holder, 1);
}

/* Take the places that an activity needs and its holders do not have yet; return 0 if it must wait for one. */
static int take_places(const Problem *p, State *s, int64_t activity, double now) {
    const int64_t end = s->t->of[activity].holders_end;
    int64_t first = s->t->of[activity].holders_start; /* of those that take their places together */
    for (int64_t at = first; at < end; at++) {
        const int64_t holder = p->holders[at];
        if (!p->held_together[at]) first = at;
        if (s->holder_active[holder]) continue;
        if (is_full_for(p, s, holder)) {
            const int is_called = s->holder_waiting[holder] == CALLED;
            wait_for_place(p, s, holder, activity);
            /* Another has come first; what excludes that one may find a place beside it. */
            if (is_called && s->t->uses != 0) call_beside(p, s, p->holder_limit[holder], ANY, now);
            while (at-- > first) give_place_back(p, s, p->holders[at], now);
            return 0;
        }
        change_places(p, s, holder, 1);
        s->holder_active[holder] = 1;
    }
    return 1;
}

/* Count an activity that has ended out of its holders, the innermost first. */
static void leave_places(const Problem *p, State *s, int64_t activity, double now) {
    const int64_t start = s->t->of[activity].holders_start;
    for (int64_t at = s->t->of[activity].holders_end - 1; at >= start; at--)
        if (--s->holder_left[p->holders[at]] == 0) give_place_back(p, s, p->holders[at], now);
}
