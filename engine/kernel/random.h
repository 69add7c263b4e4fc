/* xoshiro256** (Blackman and Vigna, 2018, public domain); the state is the caller's. */
#pragma once

#include <stdint.h>

static inline uint64_t rotate_left(uint64_t value, int by) { return (value << by) | (value >> (64 - by)); }

static inline uint64_t random_bits(uint64_t *state) {
    uint64_t result = rotate_left(state[1] * 5, 7) * 9, shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate_left(state[3], 45);
    return result;
}

/* Return one number by a seed and an index (SplitMix64's finalizer, Steele, Lea, Flood 2014). */
static inline uint64_t mixed(uint64_t seed, uint64_t index) {
    uint64_t bits = seed + (index + 1) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
}

/* Draw a number in [0, 1). */
static inline double random_unit(uint64_t *state) { return (double)(random_bits(state) >> 11) * 0x1.0p-53; }

/* Draw a number in 0..count-1. */
static inline int64_t random_index(uint64_t *state, int64_t count) {
    return (int64_t)(random_unit(state) * (double)count);
}
