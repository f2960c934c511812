#include "text/token_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "text/hash.h"

bool token_index_create(TokenIndex *index, size_t count, const uint8_t *const *bytes,
                        Error *error) {
    size_t places = 16;
    while (places < 2 * count) places *= 2;
    index->entries = allocate(places, sizeof *index->entries, error);
    index->mask = places - 1;
    index->bytes = bytes;
    return index->entries != NULL;
}

void token_index_free(TokenIndex *index) {
    free(index->entries);
    *index = (TokenIndex){0};
}

TokenIndexEntry *token_index_find(const TokenIndex *index, uint64_t hash, const uint8_t *bytes,
                                  size_t size) {
    uint64_t head = load_head(bytes, size);
    for (size_t place = hash;; place++) {
        TokenIndexEntry *entry = &index->entries[place & index->mask];
        if (!entry->size) return entry;
        if (entry->head != head || entry->size != size) continue;
        if (size <= sizeof head || !memcmp(index->bytes[entry->id], bytes, size)) return entry;
    }
}
