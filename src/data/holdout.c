#include "data/holdout.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHUNK = 1 << 14, SEARCH = 1 << 12 };

struct Spool {
    FILE *file; /* its name is removed at once, so that nothing is left whatever happens */
    int64_t tokens;
    uint32_t chunk[CHUNK];
};

Spool *spool_open(const char *directory, Error *error) {
    Spool *spool = allocate(1, sizeof *spool, error);
    char *path = spool ? path_join(directory, "first_document", error) : NULL;
    if (path && !(spool->file = fopen(path, "w+be"))) fail_errno(error, "cannot create %s", path);
    if (path) unlink(path);
    free(path);
    if (spool && spool->file) return spool;
    spool_free(spool);
    return NULL;
}

void spool_free(Spool *spool) {
    if (spool && spool->file) fclose(spool->file);
    free(spool);
}

int64_t spool_tokens(const Spool *spool) {
    return spool->tokens;
}

bool spool_write(Spool *spool, const uint32_t *tokens, size_t count, Error *error) {
    if (fwrite(tokens, sizeof *tokens, count, spool->file) != count)
        return fail_errno(error, "cannot keep the first document in a temporary file");
    spool->tokens += (int64_t)count;
    return true;
}

/* Reads up to CHUNK tokens from `first`. */
static bool read_chunk(Spool *spool, int64_t first, int64_t end, size_t *count, Error *error) {
    *count = end - first < CHUNK ? (size_t)(end - first) : CHUNK;
    if (fseeko(spool->file, first * (off_t)sizeof *spool->chunk, SEEK_SET) == 0 &&
        fread(spool->chunk, sizeof *spool->chunk, *count, spool->file) == *count)
        return true;
    return fail_errno(error, "cannot read the first document back from its temporary file");
}

bool spool_copy(Spool *spool, int64_t first, int64_t end, SplitWriter *writer, Error *error) {
    size_t count;
    for (; first < end; first += (int64_t)count)
        if (!read_chunk(spool, first, end, &count, error) ||
            !split_writer_write(writer, spool->chunk, count, error))
            return false;
    return true;
}

/* Where to cut among tokens first..end-1, at most SEARCH of them: 0 if none begins a line or a word. */
static bool find_boundary(Spool *spool, int64_t first, int64_t end, const Tokenizer *tokenizer,
                          int64_t *cut, Error *error) {
    size_t count, size;
    int64_t word = 0;
    *cut = 0;
    if (!read_chunk(spool, first - 1, end, &count, error)) return false;
    for (size_t i = 1; i < count && !*cut; i++) {
        const uint8_t *before = tokenizer_token(tokenizer, spool->chunk[i - 1], &size);
        if (before && size && before[size - 1] == '\n') *cut = first - 1 + (int64_t)i;
        const uint8_t *here = tokenizer_token(tokenizer, spool->chunk[i], &size);
        if (here && size && *here == ' ' && !word) word = first - 1 + (int64_t)i;
    }
    if (!*cut) *cut = word;
    return true;
}

static bool count_bytes(Spool *spool, int64_t end, const Tokenizer *tokenizer, int64_t *bytes,
                        Error *error) {
    size_t count, size;
    *bytes = 0;
    for (int64_t first = 0; first < end; first += (int64_t)count) {
        if (!read_chunk(spool, first, end, &count, error)) return false;
        for (size_t i = 0; i < count; i++)
            if (tokenizer_token(tokenizer, spool->chunk[i], &size)) *bytes += (int64_t)size;
    }
    return true;
}

bool spool_cut(Spool *spool, double fraction, const Tokenizer *tokenizer, int64_t *cut,
               int64_t *bytes, Error *error) {
    int64_t held_out = (int64_t)((double)spool->tokens * fraction);
    if (held_out < 1) held_out = 1;
    if (held_out > spool->tokens - 1) held_out = spool->tokens - 1;
    int64_t first = spool->tokens - held_out;
    int64_t end = first + (held_out / 2 < SEARCH ? (held_out + 1) / 2 : SEARCH);
    if (!find_boundary(spool, first, end, tokenizer, cut, error)) return false;
    if (!*cut) *cut = first;
    return count_bytes(spool, *cut, tokenizer, bytes, error);
}
