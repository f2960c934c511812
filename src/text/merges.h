/* Merges: which pair of tokens becomes which token, and applying them to a piece of text.
 *
 * Byte-pair encoding of a piece starts with one token a byte; the adjacent pair of lowest rank (of
 * equal ones the leftmost) is replaced by its result until no pair can be merged. */
#ifndef HEARTH_TEXT_MERGES_H
#define HEARTH_TEXT_MERGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct Merge {
    uint32_t left, right, result;
} Merge;

typedef struct MergeEntry {
    uint64_t pair; /* left << 32 | right; UINT64_MAX: a free place */
    uint32_t rank, result;
} MergeEntry;

typedef struct MergeTable {
    MergeEntry *entries;
    uint8_t *filter; /* bits: clear where no pair with that hash is in the table */
    size_t mask, used;
} MergeTable;

/* A merge's rank is its position in the list; of a pair that is listed twice the later one counts.
 */
bool merge_table_create(MergeTable *table, const Merge *merges, size_t count, Error *error);
/* Adds merges[from..to) to the table, which grows as needed. */
bool merge_table_add(MergeTable *table, const Merge *merges, size_t from, size_t to, Error *error);
void merge_table_free(MergeTable *table);

/* Applies the merges to ids[0..count), in place, and returns how many are left: O(n log n) time,
 * 24 bytes a token of memory when the piece is long. SIZE_MAX on failure. */
size_t merge_piece(const MergeTable *table, uint32_t *ids, size_t count, Error *error);

#endif
