/* Memory of one object: arrays side by side in few blocks, which are freed together. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

enum { CACHE_LINE = 64, FIRST_BLOCK = 1 << 14 };

#ifndef GUARD /* a build that looks for memory errors guards the line behind an array */
#define GUARD(end)
#endif

typedef struct Block {
    struct Block *next;
    size_t size, used;
} Block;

typedef struct {
    Block *blocks; /* the last one first */
    int is_short;  /* there was no memory left: its arrays must not be used */
} Memory;

/* Return zeros from the start of a cache line on, so that fields that are read together are on one line. */
static void *allocate(Memory *memory, int64_t count, size_t size) {
    const size_t bytes = (size_t)count * size, needed = bytes + 3 * CACHE_LINE;
    Block *block = memory->blocks;
    if (!block || block->size - block->used < needed) {
        const size_t usual = block ? 2 * block->size : FIRST_BLOCK, larger = needed > usual ? needed : usual;
        block = calloc(1, sizeof(Block) + larger);
        if (!block) {
            memory->is_short = 1;
            return NULL;
        }
        *block = (Block){memory->blocks, larger, 0};
        memory->blocks = block;
    }
    char *free_from = (char *)(block + 1) + block->used;
    char *array = (char *)(((uintptr_t)free_from + CACHE_LINE - 1) & ~(uintptr_t)(CACHE_LINE - 1));
    block->used += (size_t)(array - free_from) + bytes + CACHE_LINE;
    GUARD(array + bytes);
    return array;
}

#define ARRAY(memory, type, count) ((type *)allocate(memory, count, sizeof(type)))

/* Macros for a list of a struct's arrays, with types, names and sizes in one place: the fields of the struct,
 * and their memory, for a struct `own` that keeps it in its field `memory`. */
#define DECLARE(type, name, count) type *name;
#define ALLOCATE(type, name, count) own->name = ARRAY(&own->memory, type, count);

static void give_back(Memory *memory) {
    for (Block *block = memory->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
}
