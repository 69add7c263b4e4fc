/* The planner's inner loop: one discrete-event simulation that plays every policy, and the searches that
 * call it hundreds of thousands of times. Called from native.py through ctypes; nothing here touches
 * Python, and nothing is kept between calls but a problem's tables and what an open search works with.
 *
 * One translation unit, so that the compiler sees through everything:
 * memory, problem -> tables -> state, events -> scores, room, cutoff -> choice, kube_choice, binding -> sorting,
 * queue, sequence -> loop, fitness -> heft, search, brute_force.
 */
#include "brute_force.h"
#include "heft.h"
#include "search.h"

/* Sizes of what native.py mirrors; it checks that its structs have the same. */
int64_t sizes(void) { return (int64_t)(sizeof(Problem) + sizeof(Tables) + sizeof(Activity)); }

typedef struct {
    double *start, *begin, *end, *pull_seconds, *terms;
    int64_t *node, *cause;
} ScheduleArrays;

/* Play one policy; returns 1, or 0 when there is no memory left. */
int64_t simulate(const Problem *p, int64_t policy, const int64_t *planned, const double *priority,
                 const double *not_before, const int64_t *listed, int64_t draw, ScheduleArrays *out) {
    State *state = state_new(p);
    if (!state) return 0;
    Decision decision = {(int)policy, planned, priority, not_before, NULL, listed, draw, INFINITY};
    play(p, state, &decision);
    cost_terms(p, state, out->terms);
    for (int64_t i = 0; i < p->activities; i++) {
        const Progress *of = state->of + i;
        out->start[i] = of->start;
        out->begin[i] = of->begin;
        out->end[i] = of->end;
        out->pull_seconds[i] = of->pull_seconds;
        out->node[i] = of->node;
        out->cause[i] = of->cause;
    }
    state_free(state);
    return 1;
}
