#include "data/packing.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"

/* Documents to choose from in best fit, as nanochat does: while there are fewer than so many, a batch more
 * arrives. */
enum { BESTFIT_ENOUGH = 1000, BESTFIT_BATCH = 128 };

const char *packing_name(Packing packing) {
    static const char *const names[PACKINGS] = {"stream", "documents", "bestfit"};
    return names[packing];
}

bool packing_find(const char *name, Packing *packing) {
    for (int i = 0; i < PACKINGS; i++)
        if (!strcmp(name, packing_name((Packing)i))) {
            *packing = (Packing)i;
            return true;
        }
    return false;
}

struct Packer {
    Packing packing;
    int64_t T, tokens, documents, rows;
    const int64_t *starts; /* [documents] */
    int64_t *first;        /* documents: token position where each row begins; bestfit: index into
                              chosen; [rows + 1] */
    size_t capacity;       /* of first */
    uint32_t *chosen;      /* bestfit: documents in the order in which they were taken */
    int64_t cropped;       /* bestfit: tokens that are in no row */
};

static int64_t document_length(const Packer *packer, int64_t document) {
    int64_t end = document + 1 < packer->documents ? packer->starts[document + 1] : packer->tokens;
    return end - packer->starts[document];
}

static bool add_row(Packer *packer, int64_t first, Error *error) {
    if (!reserve(&packer->first, &packer->capacity, (size_t)packer->rows + 2, sizeof *packer->first,
                 error))
        return false;
    packer->first[packer->rows++] = first;
    return true;
}

/* Rows are contiguous in the split; a row ends early rather than cut a document that fits in one. */
static bool pack_documents(Packer *packer, Error *error) {
    int64_t space = 0;
    for (int64_t document = 0; document < packer->documents; document++) {
        int64_t start = packer->starts[document], length = document_length(packer, document);
        if (length > space) {
            space = packer->T;
            if (!add_row(packer, start, error)) return false;
        }
        for (; length > space; length -= space, space = packer->T) {
            start += space;
            if (!add_row(packer, start, error)) return false;
        }
        space -= length;
    }
    packer->first[packer->rows] = packer->tokens;
    return true;
}

/* Best fit's buffer: keys length << 32 | ~document, the largest first. So of equally long documents the
 * first to arrive comes first, and the short ones, which come and go, move little. */
typedef struct Buffer {
    uint64_t keys[BESTFIT_ENOUGH - 1 + BESTFIT_BATCH];
    int count;
} Buffer;

static uint64_t buffer_key(int64_t length, int64_t document) {
    return (uint64_t)(length < INT32_MAX ? length : INT32_MAX) << 32 | (uint32_t)~document;
}

/* The place of the first key that is below `key`. */
static int buffer_find(const Buffer *buffer, uint64_t key) {
    int low = 0, high = buffer->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (buffer->keys[middle] >= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void buffer_insert(Buffer *buffer, uint64_t key) {
    int at = buffer_find(buffer, key);
    memmove(buffer->keys + at + 1, buffer->keys + at, (size_t)(buffer->count - at) * sizeof key);
    buffer->keys[at] = key;
    buffer->count++;
}

static void buffer_refill(Buffer *buffer, const Packer *packer, int64_t *arrived) {
    int64_t end = smaller(*arrived + BESTFIT_BATCH, packer->documents);
    for (; *arrived < end; ++*arrived)
        buffer_insert(buffer, buffer_key(document_length(packer, *arrived), *arrived));
}

/* Takes the first of the longest documents within `space`, else the first of the shortest. */
static uint64_t buffer_take(Buffer *buffer, int64_t space) {
    int64_t shortest = (int64_t)(buffer->keys[buffer->count - 1] >> 32);
    int at = buffer_find(buffer, (uint64_t)((shortest > space ? shortest : space) + 1) << 32);
    uint64_t key = buffer->keys[at];
    buffer->count--;
    memmove(buffer->keys + at, buffer->keys + at + 1, (size_t)(buffer->count - at) * sizeof key);
    return key;
}

/* A row has T + 1 tokens, the last one a target only. */
static bool pack_bestfit(Packer *packer, Error *error) {
    if (packer->documents >= UINT32_MAX)
        return fail(error, "best-fit packing is limited to %u documents; use --packing stream",
                    UINT32_MAX);
    packer->chosen = allocate((size_t)packer->documents, sizeof *packer->chosen, error);
    if (!packer->chosen) return false;
    Buffer buffer = {.count = 0};
    int64_t arrived = 0, taken = 0, space = 0;
    while (taken < packer->documents) {
        while (buffer.count < BESTFIT_ENOUGH && arrived < packer->documents)
            buffer_refill(&buffer, packer, &arrived);
        if (space <= 0) {
            space = packer->T + 1;
            if (!add_row(packer, taken, error)) return false;
        }
        uint64_t key = buffer_take(&buffer, space);
        packer->chosen[taken++] = ~(uint32_t)key;
        space -= (int64_t)(key >> 32);
        if (space < 0) packer->cropped -= space;
    }
    packer->first[packer->rows] = taken;
    return true;
}

Packer *packer_open(const Dataset *dataset, Split split, Packing packing, int64_t sequence_length,
                    Error *error) {
    Packer *packer = allocate(1, sizeof *packer, error);
    if (!packer) return NULL;
    packer->packing = packing;
    packer->T = sequence_length;
    packer->tokens = dataset_tokens(dataset, split);
    packer->documents = dataset_documents(dataset, split);
    packer->starts = dataset_document_starts(dataset, split);
    bool done = true;
    switch (packing) {
    case PACKING_STREAM: /* the split's last token has no target, so it begins no row */
        packer->rows = (packer->tokens - 1 + packer->T - 1) / packer->T;
        break;
    case PACKING_DOCUMENTS:
        done = pack_documents(packer, error);
        break;
    case PACKING_BESTFIT:
        done = pack_bestfit(packer, error);
        break;
    }
    if (done) return packer;
    packer_free(packer);
    return NULL;
}

void packer_free(Packer *packer) {
    if (!packer) return;
    free(packer->first);
    free(packer->chosen);
    free(packer);
}

int64_t packer_rows(const Packer *packer) {
    return packer->rows;
}

int64_t packer_cropped(const Packer *packer) {
    return packer->cropped;
}

size_t packer_memory(const Packer *packer) {
    size_t chosen = packer->chosen ? (size_t)packer->documents * sizeof *packer->chosen : 0;
    return packer->capacity * sizeof *packer->first + chosen;
}

static int64_t bestfit_row(const Packer *packer, int64_t row, Segment *segments) {
    int64_t count = 0, space = packer->T + 1;
    for (int64_t i = packer->first[row]; i < packer->first[row + 1]; i++) {
        int64_t document = packer->chosen[i];
        Segment segment = {packer->starts[document],
                           smaller(space, document_length(packer, document))};
        space -= segment.count;
        segments[count++] = segment;
    }
    return count;
}

int64_t packer_row(const Packer *packer, int64_t row, Segment *segments) {
    if (packer->packing == PACKING_BESTFIT) return bestfit_row(packer, row, segments);
    int64_t start = row * packer->T, end = start + packer->T;
    if (packer->packing == PACKING_DOCUMENTS)
        start = packer->first[row], end = packer->first[row + 1];
    segments[0] = (Segment){start, smaller(end + 1, packer->tokens) - start};
    return 1;
}
