/* kube-scheduler's scores for one node, number by number, with Go's truncating int64 arithmetic.
 *
 * Source: kube-scheduler v1.36.3, pkg/scheduler/framework/plugins. The scheduler model in Python calls
 * these same functions, so checking the one against recordings checks the other. */
#pragma once

#include <math.h>
#include <stdint.h>

enum {
    TAINT_TOLERATION_WEIGHT = 3,
    NODE_AFFINITY_WEIGHT = 2,
    RESOURCES_FIT_WEIGHT = 1,
    BALANCED_ALLOCATION_WEIGHT = 1,
    IMAGE_LOCALITY_WEIGHT = 1
};

/* Return part * 100 / whole; wraps from 80 PiB on, as Go's does. */
static inline int64_t percent(int64_t part, int64_t whole) {
    return (int64_t)((uint64_t)part * 100u) / whole;
}

/* Return scores for what is left of a resource, and for what is taken; 0 where the node has none of it. */
static inline int64_t least_requested(int64_t requested, int64_t allocatable) {
    return allocatable == 0 || requested > allocatable ? 0 : percent(allocatable - requested, allocatable);
}

static inline int64_t most_requested(int64_t requested, int64_t allocatable) {
    return allocatable == 0 ? 0 : percent(requested < allocatable ? requested : allocatable, allocatable);
}

/* A resource that the node does not have is left out. */
static inline int64_t mean_score(int64_t sum, int64_t allocatable_cpu, int64_t allocatable_memory) {
    const int64_t weights = (allocatable_cpu != 0) + (allocatable_memory != 0);
    return weights == 0 ? 0 : sum / weights;
}

/* NodeResourcesFit, strategy LeastAllocated (noderesources/least_allocated.go). */
int64_t least_allocated(int64_t requested_cpu, int64_t requested_memory, int64_t allocatable_cpu,
                        int64_t allocatable_memory) {
    const int64_t cpu = least_requested(requested_cpu, allocatable_cpu);
    return mean_score(cpu + least_requested(requested_memory, allocatable_memory), allocatable_cpu, allocatable_memory);
}

/* NodeResourcesFit, strategy MostAllocated (noderesources/most_allocated.go). */
int64_t most_allocated(int64_t requested_cpu, int64_t requested_memory, int64_t allocatable_cpu,
                       int64_t allocatable_memory) {
    const int64_t cpu = most_requested(requested_cpu, allocatable_cpu);
    return mean_score(cpu + most_requested(requested_memory, allocatable_memory), allocatable_cpu, allocatable_memory);
}

/* Return the balance of the used shares of CPU and memory, 50 to 100 (balancedResourceScore). */
static inline int64_t balance(int64_t requested_cpu, int64_t requested_memory, int64_t allocatable_cpu,
                              int64_t allocatable_memory) {
    if (allocatable_cpu == 0 || allocatable_memory == 0) return 100;
    double cpu = fmin(1.0, (double)requested_cpu / (double)allocatable_cpu);
    double memory = fmin(1.0, (double)requested_memory / (double)allocatable_memory);
    double deviation = fabs((cpu - memory) / 2.0);
    return (int64_t)((1.0 - deviation) * 100.0);
}

/* NodeResourcesBalancedAllocation (noderesources/balanced_allocation.go). Real requests, no defaults.
 * Until 1.35 the balance with the pod; since 1.36 how much the pod improves it, 75 being neutral. */
int64_t balanced_allocation(int64_t used_cpu, int64_t used_memory, int64_t pod_cpu, int64_t pod_memory,
                            int64_t allocatable_cpu, int64_t allocatable_memory, int64_t since_136) {
    int64_t with_pod = balance(used_cpu + pod_cpu, used_memory + pod_memory, allocatable_cpu, allocatable_memory);
    if (!since_136) return with_pod;
    return 50 + (50 + with_pod - balance(used_cpu, used_memory, allocatable_cpu, allocatable_memory)) / 2;
}

/* More is better: count against the largest count of all feasible nodes (NodeAffinity). */
int64_t normalise(int64_t count, int64_t maximum) {
    return maximum == 0 ? 0 : 100 * count / maximum;
}

/* Less is better (TaintToleration). */
int64_t normalise_reversed(int64_t count, int64_t maximum) {
    return maximum == 0 ? 100 : 100 - 100 * count / maximum;
}

/* ImageLocality (imagelocality/image_locality.go): scaled sizes of the images held, init containers
 * counted among the containers. */
int64_t image_locality(int64_t sum_scores, int64_t containers) {
    const int64_t mebibyte = 1024 * 1024, least = 23 * mebibyte;
    int64_t most = 1000 * mebibyte * containers;
    int64_t clamped = sum_scores < least ? least : sum_scores > most ? most : sum_scores;
    return 100 * (clamped - least) / (most - least);
}
