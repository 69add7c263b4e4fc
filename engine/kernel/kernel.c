/* The planner's inner loop: one discrete-event simulation for every policy, and the searches that call it
 * hundreds of thousands of times. It is called from native.py through ctypes and does not touch Python.
 * Between calls it keeps only a problem's tables and the memory of open searches.
 *
 * One translation unit, so that the compiler sees through everything:
 * memory, problem -> tables -> state, events, limits -> scores, room, cutoff -> choice, kube_choice, binding -> sorting,
 * queue, sequence -> loop, fitness -> heft, search.
 */
#include "heft.h"
#include "search.h"

/* Sizes of what kernel.py mirrors; it checks that its structs have the same. */
int64_t sizes(void) { return (int64_t)(sizeof(Problem) + sizeof(Tables) + sizeof(Activity) + sizeof(Progress)); }

/* Simulate one policy; return 1, or 0 when there is no memory left. */
int64_t simulate(const Problem *p, int64_t policy, const int64_t *planned, const double *priority,
                 const double *not_before, const int64_t *listed, int64_t draw, Progress *progress, double *terms) {
    State *state = state_new(p);
    if (!state) return 0;
    const Decision decision = {.policy = (int)policy, .planned = planned, .priority = priority, .not_before = not_before,
                               .listed = listed, .draw = draw, .limit = INFINITY};
    simulate_decision(p, state, &decision);
    cost_terms(p, state, terms);
    memcpy(progress, state->of, sizeof(Progress) * (size_t)p->activities);
    state_free(state);
    return 1;
}

/* Simulate plans in orders, order after order; return the number of the first best one that is better than `terms`,
 * which become its own; -1 = none is better, -2 = there is no memory left. */
int64_t best_of(const Problem *p, int64_t policy, const int64_t *genes, int64_t plans, const double *keys,
                int64_t orders, double *terms) {
    State *state = state_new(p);
    int64_t best = -1;
    if (!state) return -2;
    for (int64_t number = 0; number < orders * plans; number++) {
        const Decision decision = {.policy = (int)policy, .planned = genes + number % plans * p->genes,
                                   .priority = keys + number / plans * p->activities, .limit = INFINITY};
        double costs[TERMS];
        simulate_decision(p, state, &decision);
        cost_terms(p, state, costs);
        if (!isinf(terms[0]) && compare_terms(costs, terms) >= 0) continue;
        memcpy(terms, costs, sizeof(costs));
        best = number;
    }
    state_free(state);
    return best;
}
