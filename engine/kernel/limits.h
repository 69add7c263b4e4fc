/* Limits of how much is under way at once.
 *
 * A limit has places for some of its holders. A holder is a set of activities: it takes a place when the first
 * of them is ready, and gives it back when the last has ended. An activity takes the places of its holders in
 * their order, and keeps those that it has while it waits for the next. Holders that take theirs together, such
 * as the locks of one template, take all or none. */
#pragma once

#include "events.h"

/* Give a place back; the first holder that waits for one may try again. */
static void give_place_back(const Problem *p, State *s, int64_t holder, double now) {
    const int64_t limit = p->holder_limit[holder], end = p->limit_start[limit + 1];
    s->holder_active[holder] = 0;
    s->limit_taken[limit] -= 1;
    if (s->limit_taken[limit] >= p->limit_most[limit]) return;
    int64_t next = s->limit_next[limit];
    while (next < end && s->holder_waiting[next] < 0) next++;
    s->limit_next[limit] = next;
    if (next == end) return;
    int64_t activity = s->holder_waiting[next];
    s->holder_waiting[next] = -1;
    for (; activity >= 0; activity = s->of[activity].later) push_event(s, now, activity, BECOMES_READY);
}

static void wait_for_place(const Problem *p, State *s, int64_t holder, int64_t activity) {
    const int64_t limit = p->holder_limit[holder];
    s->of[activity].later = (int32_t)s->holder_waiting[holder];
    s->holder_waiting[holder] = activity;
    if (holder < s->limit_next[limit]) s->limit_next[limit] = holder;
}

/* Take the places that an activity needs and its holders do not have yet; return 0 if it must wait for one. */
static int take_places(const Problem *p, State *s, int64_t activity, double now) {
    const int64_t end = s->t->of[activity].holders_end;
    int64_t first = s->t->of[activity].holders_start; /* of those that take their places together */
    for (int64_t at = first; at < end; at++) {
        const int64_t holder = p->holders[at], limit = p->holder_limit[holder];
        if (!p->held_together[at]) first = at;
        if (s->holder_active[holder]) continue;
        if (s->limit_taken[limit] >= p->limit_most[limit]) {
            wait_for_place(p, s, holder, activity);
            while (at-- > first) give_place_back(p, s, p->holders[at], now);
            return 0;
        }
        s->limit_taken[limit] += 1;
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
