/* Room on nodes over time: for schedulers that put steps into gaps of the past. */
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"

/* Room on one node over time: room[i] holds from time[i] to time[i + 1], the last forever. */
typedef struct {
    int64_t count, capacity;
    double *time;
    int64_t *room; /* [capacity, R] */
} Profile;

static int profile_reserve(Profile *profile, int64_t resources) {
    if (profile->count + 2 <= profile->capacity) return 1;
    int64_t capacity = 2 * profile->capacity + 8;
    double *time = realloc(profile->time, sizeof(double) * (size_t)capacity);
    if (time) profile->time = time;
    int64_t *room = realloc(profile->room, sizeof(int64_t) * (size_t)(capacity * resources));
    if (room) profile->room = room;
    if (!time || !room) return 0;
    profile->capacity = capacity;
    return 1;
}

static int64_t segment_at(const Profile *profile, double time) {
    int64_t low = 0, high = profile->count - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (profile->time[middle] <= time)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static int segment_fits(const Profile *profile, const int64_t *request, int64_t resources, int64_t segment) {
    for (int64_t resource = 0; resource < resources; resource++)
        if (request[resource] > 0 && request[resource] > profile->room[segment * resources + resource]) return 0;
    return 1;
}

/* Return the earliest start from `earliest` on with room for the whole duration. */
static double earliest_gap(const Profile *profile, const int64_t *request, int64_t resources, double earliest,
                           double seconds) {
    double start = earliest;
    for (int64_t segment = segment_at(profile, earliest); segment < profile->count; segment++) {
        int last = segment + 1 == profile->count;
        if (!segment_fits(profile, request, resources, segment)) {
            if (last) return INFINITY;
            start = profile->time[segment + 1];
        } else if (last || profile->time[segment + 1] >= start + seconds) {
            return start;
        }
    }
    return INFINITY;
}

/* Make `time` a breakpoint, for which there is capacity, and return its segment. */
static int64_t split_at(Profile *profile, int64_t resources, double time) {
    int64_t segment = segment_at(profile, time);
    if (profile->time[segment] == time) return segment;
    int64_t moved = profile->count - segment;
    memmove(profile->time + segment + 1, profile->time + segment, sizeof(double) * (size_t)moved);
    memmove(profile->room + (segment + 1) * resources, profile->room + segment * resources,
            sizeof(int64_t) * (size_t)(moved * resources));
    profile->time[segment + 1] = time;
    profile->count += 1;
    return segment + 1;
}

static int take_room(Profile *profile, const int64_t *request, int64_t resources, double start, double end) {
    if (!profile_reserve(profile, resources)) return 0;
    int64_t first = split_at(profile, resources, start), last = split_at(profile, resources, end);
    for (int64_t segment = first; segment < last; segment++)
        for (int64_t resource = 0; resource < resources; resource++)
            profile->room[segment * resources + resource] -= request[resource];
    return 1;
}

/* Return one profile for each node; NULL when there is no memory left. */
static Profile *profiles_new(const Problem *p) { return calloc((size_t)p->nodes + 1, sizeof(Profile)); }

static void profiles_free(const Problem *p, Profile *profiles) {
    for (int64_t node = 0; profiles && node < p->nodes; node++) {
        free(profiles[node].time);
        free(profiles[node].room);
    }
    free(profiles);
}

/* Make all room of time zero free forever; return 0 when there is no memory left. */
static int profiles_clear(const Problem *p, Profile *profiles) {
    for (int64_t node = 0; node < p->nodes; node++) {
        if (!profile_reserve(profiles + node, p->resources)) return 0;
        profiles[node].count = 1;
        profiles[node].time[0] = 0.0;
        memcpy(profiles[node].room, p->free + node * p->resources, sizeof(int64_t) * (size_t)p->resources);
    }
    return 1;
}
