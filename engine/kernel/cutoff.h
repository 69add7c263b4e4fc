/* Cutoff: a simulation stops as soon as it is certain that the search cannot use its schedule.
 *
 * Two bounds hold whatever is decided later. A run ends no earlier than the end of each activity plus the
 * least time of all that follows it. And room that was idle until now is lost: the free room of the scarcest
 * resource must hold the work of all activities before the latest end. */
#pragma once

#include "state.h"

/* Sums are not made in the order of the terms, so that a cost this close to the limit counts as below it. */
static inline double with_margin(double limit) { return limit + 1e-6 * fmax(1.0, fabs(limit)); }

/* Begin a simulation that may cost at most `limit`; INFINITY = no limit. */
static void set_limit(const Problem *p, State *s, double limit) {
    const Tables *t = s->t;
    s->cost_limit = with_margin(limit);
    s->idle_limit = INFINITY;
    s->least_cost = s->idle = s->counted_until = 0.0;
    if (isinf(limit)) return;
    for (int64_t run = 0; run < p->runs; run++) {
        s->least_completion[run] = t->least_completion[run];
        s->least_cost += p->run_weight[run] * t->least_completion[run];
    }
    if (p->runs != 1 || t->scarcest < 0 || !(p->run_weight[0] > 0.0)) return;
    s->idle_limit = s->cost_limit / p->run_weight[0] * t->room - t->least_work;
    s->idle_room = t->room;
}

/* Take in the end of an activity, once it is known. */
static inline void count_end(const Problem *p, State *s, int64_t activity) {
    if (isinf(s->cost_limit) || p->after_failure[activity]) return;
    const int64_t run = s->t->of[activity].run;
    const double least = s->of[activity].end + s->t->of[activity].least_after;
    if (least > s->least_completion[run]) {
        s->least_cost += p->run_weight[run] * (least - s->least_completion[run]);
        s->least_completion[run] = least;
    }
    if (s->of[activity].node < 0 || isinf(s->idle_limit)) return;
    /* Longer work of one branch may fit beside that of another one. */
    if (s->t->branch_of_shape[s->t->of[activity].shape] >= 0) return;
    const double longer = s->of[activity].end - s->of[activity].start - s->t->of[activity].least_seconds;
    s->idle_limit -= longer * (double)s->t->requests[s->t->of[activity].shape * p->resources + s->t->scarcest];
}

/* Take in that amounts of room are taken, or given back if they are negative. */
static inline void count_room(State *s, const int64_t *taken, int64_t times) {
    if (isinf(s->idle_limit)) return;
    s->idle_room -= (double)(times * taken[s->t->scarcest]);
}

/* Go on to `now`; room that was idle until then is lost. */
static inline void count_idle(State *s, double now) {
    if (isinf(s->idle_limit)) return;
    s->idle += s->idle_room * (now - s->counted_until);
    s->counted_until = now;
}

static inline int is_lost(const State *s) { return s->least_cost > s->cost_limit || s->idle > s->idle_limit; }
