/* The planner's inner loop: one discrete-event simulation that plays every policy, and the searches that
 * call it hundreds of thousands of times. Called from native.py through ctypes; nothing here allocates
 * beyond a call, keeps state between calls or touches Python.
 *
 * One translation unit, so that the compiler sees through everything:
 * problem (input) -> state, events -> scores, choice, binding, sequence -> loop -> heft, search, brute force.
 */
#include "brute_force.h"
#include "heft.h"
#include "search.h"

/* Size of Problem: native.py checks that its mirror has the same. */
int64_t problem_size(void) { return (int64_t)sizeof(Problem); }

typedef struct {
    double *start, *begin, *end, *pull_seconds, *terms;
    int64_t *node, *cause;
} ScheduleArrays;

/* Play one policy; returns 1, or 0 when there is no memory left. */
int64_t simulate(const Problem *p, int64_t policy, const int64_t *planned, const double *priority,
                 const double *not_before, const int64_t *listed, int64_t draw, ScheduleArrays *out) {
    const size_t activities = (size_t)p->activities;
    int64_t larger = p->nodes > p->runs ? p->nodes : p->runs;
    State *state = state_new(p);
    double *scratch = calloc((size_t)larger + 1, sizeof(double));
    int done = state && scratch;
    if (done) {
        Decision decision = {(int)policy, planned, priority, not_before, listed, draw};
        play(p, state, &decision);
        cost_terms(p, state, scratch, out->terms);
        memcpy(out->start, state->start, sizeof(double) * activities);
        memcpy(out->begin, state->begin, sizeof(double) * activities);
        memcpy(out->end, state->end, sizeof(double) * activities);
        memcpy(out->pull_seconds, state->pull_seconds, sizeof(double) * activities);
        memcpy(out->node, state->node, sizeof(int64_t) * activities);
        memcpy(out->cause, state->cause, sizeof(int64_t) * activities);
    }
    state_free(state);
    free(scratch);
    return done;
}
