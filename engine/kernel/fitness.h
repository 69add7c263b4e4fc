/* The objective of a schedule: terms that are compared one after another; fitness.py has their meaning. */
#pragma once

#include "choice.h"

enum { COMPLETION = 0, PACKING = 1, PAPER = 2 };

/* Return the standard deviation of the nodes' time-averaged use plus the share of time spent on pulls. Time
 * spent waiting on the node, for data or a volume, is not a use. */
static double imbalance(const Problem *p, const State *s, double horizon) {
    double *use = s->sums;
    if (horizon <= 0.0) return 0.0;
    double pulling = 0.0, busy = 0.0, mean = 0.0, spread = 0.0;
    for (int64_t node = 0; node < p->nodes; node++) use[node] = 0.0;
    for (int64_t activity = 0; activity < p->activities; activity++) {
        int64_t node = s->of[activity].node;
        if (node < 0 || isinf(s->of[activity].end)) continue;
        double seconds = s->of[activity].pull_seconds + occupied_seconds(p, s->t, activity, node);
        busy += seconds;
        pulling += s->of[activity].pull_seconds;
        for (int64_t resource = 0; resource < 2; resource++) {
            int64_t size = p->allocatable[node * p->resources + resource];
            if (size > 0)
                use[node] += 0.5 * seconds * (double)p->requests[activity * p->resources + resource] /
                             ((double)size * horizon);
        }
    }
    for (int64_t node = 0; node < p->nodes; node++) mean += use[node] / (double)p->nodes;
    for (int64_t node = 0; node < p->nodes; node++) spread += (use[node] - mean) * (use[node] - mean);
    return sqrt(spread / (double)p->nodes) + (busy > 0.0 ? pulling / busy : 0.0);
}

/* Return the number of nodes that planned steps run on. */
static double nodes_used(const Problem *p, const State *s) {
    double count = 0.0, *used = s->sums;
    for (int64_t node = 0; node < p->nodes; node++) used[node] = 0.0;
    for (int64_t activity = 0; activity < p->activities; activity++)
        if (s->of[activity].node >= 0 && p->gene[activity] >= 0) used[s->of[activity].node] = 1.0;
    for (int64_t node = 0; node < p->nodes; node++) count += used[node];
    return count;
}

/* Return Eq. (1) of the genetic-algorithm paper without its constant T: higher is better. */
static double assignment_value(const Problem *p, const State *s) {
    double value = 0.0;
    for (int64_t activity = 0; activity < p->activities; activity++)
        if (s->of[activity].node >= 0 && p->gene[activity] >= 0)
            value += p->assignment_gain[p->class_of[activity] * p->nodes + s->of[activity].node];
    return value;
}

/* Return whether the latest end of all runs counts before their completions. */
static inline int is_end_limited(const Problem *p) { return p->objective == COMPLETION && !isinf(p->end_limit); }

/* Return the index of the term that is the weighted sum of completions. */
static inline int completion_term(const Problem *p) {
    return p->objective == COMPLETION && !is_end_limited(p) ? 2 : 3;
}

/* Return the term before the completions, if they are not the first; `horizon` is the latest end. */
static double term_before_completions(const Problem *p, const State *s, double horizon) {
    if (p->objective == COMPLETION) return fmax(0.0, horizon - p->end_limit);
    return p->objective == PACKING ? nodes_used(p, s) : -assignment_value(p, s);
}

/* Compute the terms of a simulated schedule. */
static void cost_terms(const Problem *p, const State *s, double *terms) {
    double weighted = 0.0, horizon = 0.0, busy = 0.0, *completion_of = s->sums;
    terms[0] = terms[1] = 0.0;
    for (int64_t run = 0; run < p->runs; run++) completion_of[run] = 0.0;
    for (int64_t activity = 0; activity < p->activities; activity++) {
        if (isinf(s->of[activity].end)) {
            terms[0] += 1.0;
            continue;
        }
        double *completion = completion_of + p->run[activity];
        if (s->of[activity].end > *completion && !p->after_failure[activity]) *completion = s->of[activity].end;
        if (s->of[activity].node < 0) continue;
        terms[1] += p->latency_excess_ms[p->class_of[activity] * p->nodes + s->of[activity].node];
        busy += occupied_seconds(p, s->t, activity, s->of[activity].node);
    }
    for (int64_t run = 0; run < p->runs; run++) {
        weighted += p->run_weight[run] * completion_of[run];
        horizon = fmax(horizon, completion_of[run]);
    }
    if (completion_term(p) == 2) {
        terms[2] = weighted;
        terms[3] = busy;
        terms[4] = imbalance(p, s, horizon);
    } else {
        terms[2] = term_before_completions(p, s, horizon);
        terms[3] = weighted;
        terms[4] = busy;
    }
}

/* Return -1, 0, 1 as first is better, equal, worse; relative differences below 10^-9 do not count. */
static int compare_terms(const double *first, const double *second) {
    for (int term = 0; term < TERMS; term++) {
        double margin = 1e-9 * fmax(1.0, fabs(second[term]));
        if (first[term] < second[term] - margin) return -1;
        if (first[term] > second[term] + margin) return 1;
    }
    return 0;
}
