#include "data/split_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/shard.h"

enum { BUFFER_TOKENS = 1 << 16, BUFFER_STARTS = 1 << 12 };

struct SplitWriter {
    const char *directory;
    Split split;
    int token_bytes;
    int64_t shard_tokens;
    ManifestSplit entry;
    FileWriter *shard, *starts; /* shard is NULL between shards */
    int64_t in_shard;           /* tokens given to the open shard */
    size_t buffered_tokens, buffered_starts;
    uint64_t start_buffer[BUFFER_STARTS];
    uint8_t token_buffer[4 * BUFFER_TOKENS]; /* of token_bytes each */
};

static FileWriter *open_file(const SplitWriter *writer, const char *name, Error *error) {
    char *path = path_join(writer->directory, name, error);
    FileWriter *file = path ? file_writer_open(path, error) : NULL;
    free(path);
    return file;
}

SplitWriter *split_writer_open(const char *directory, Split split, int token_bytes,
                               int64_t shard_tokens, Error *error) {
    SplitWriter *writer = allocate(1, sizeof *writer, error);
    if (!writer) return NULL;
    writer->directory = directory;
    writer->split = split;
    writer->token_bytes = token_bytes;
    writer->shard_tokens = shard_tokens;
    char name[32];
    snprintf(name, sizeof name, "%s_documents.u64", split_name(split));
    writer->entry.starts.name = copy_string(name, error);
    if (writer->entry.starts.name && (writer->starts = open_file(writer, name, error)))
        return writer;
    split_writer_discard(writer);
    return NULL;
}

static void free_entry(ManifestSplit *entry) {
    for (size_t i = 0; i < entry->shard_count; i++) free(entry->shards[i].name);
    free(entry->shards);
    free(entry->starts.name);
}

void split_writer_discard(SplitWriter *writer) {
    if (!writer) return;
    file_writer_discard(writer->shard);
    file_writer_discard(writer->starts);
    free_entry(&writer->entry);
    free(writer);
}

/* The header counts a full shard; the last one is corrected when it closes. */
static bool open_shard(SplitWriter *writer, Error *error) {
    char name[32];
    int32_t header[256];
    snprintf(name, sizeof name, "%s_%06zu.bin", split_name(writer->split),
             writer->entry.shard_count);
    if (!manifest_add_shard(&writer->entry, name, error)) return false;
    writer->shard = open_file(writer, name, error);
    shard_header(header, writer->token_bytes, writer->shard_tokens);
    return writer->shard && file_writer_write(writer->shard, header, sizeof header, error);
}

static bool flush_tokens(SplitWriter *writer, Error *error) {
    size_t size = writer->buffered_tokens * (size_t)writer->token_bytes;
    writer->buffered_tokens = 0;
    return !size || file_writer_write(writer->shard, writer->token_buffer, size, error);
}

static bool flush_starts(SplitWriter *writer, Error *error) {
    size_t size = writer->buffered_starts * sizeof *writer->start_buffer;
    writer->buffered_starts = 0;
    return file_writer_write(writer->starts, writer->start_buffer, size, error);
}

static bool close_shard(SplitWriter *writer, Error *error) {
    if (!flush_tokens(writer, error)) return false;
    int32_t header[256];
    shard_header(header, writer->token_bytes, writer->in_shard);
    if (writer->in_shard < writer->shard_tokens &&
        !file_writer_overwrite(writer->shard, 0, header, sizeof header, error))
        return false;
    ManifestFile *shard = &writer->entry.shards[writer->entry.shard_count - 1];
    FileWriter *file = writer->shard;
    shard->tokens = writer->in_shard;
    writer->in_shard = 0;
    writer->shard = NULL;
    return file_writer_commit(file, shard->sha256, error);
}

/* Makes room for at least one token. */
static bool prepare(SplitWriter *writer, Error *error) {
    if (writer->shard && writer->in_shard == writer->shard_tokens && !close_shard(writer, error))
        return false;
    if (!writer->shard && !open_shard(writer, error)) return false;
    return writer->buffered_tokens < BUFFER_TOKENS || flush_tokens(writer, error);
}

bool split_writer_begin(SplitWriter *writer, Error *error) {
    if (!prepare(writer, error)) return false; /* the document is counted where its token will be */
    if (writer->buffered_starts == BUFFER_STARTS && !flush_starts(writer, error)) return false;
    writer->start_buffer[writer->buffered_starts++] = (uint64_t)writer->entry.tokens;
    writer->entry.shards[writer->entry.shard_count - 1].documents++;
    writer->entry.documents++;
    return true;
}

bool split_writer_write(SplitWriter *writer, const uint32_t *tokens, size_t count, Error *error) {
    while (count) {
        if (!prepare(writer, error)) return false;
        size_t here = BUFFER_TOKENS - writer->buffered_tokens;
        int64_t room = writer->shard_tokens - writer->in_shard;
        if (here > count) here = count;
        if ((int64_t)here > room) here = (size_t)room;
        uint8_t *to = writer->token_buffer + writer->buffered_tokens * (size_t)writer->token_bytes;
        if (writer->token_bytes == 4) memcpy(to, tokens, 4 * here);
        for (size_t i = 0; writer->token_bytes == 2 && i < here; i++) {
            uint16_t token = (uint16_t)tokens[i];
            memcpy(to + 2 * i, &token, sizeof token);
        }
        writer->buffered_tokens += here;
        writer->in_shard += (int64_t)here;
        writer->entry.tokens += (int64_t)here;
        tokens += here;
        count -= here;
    }
    return true;
}

bool split_writer_finish(SplitWriter *writer, ManifestSplit *entry, Error *error) {
    bool done = (!writer->shard || close_shard(writer, error)) && flush_starts(writer, error);
    if (done) {
        FileWriter *starts = writer->starts;
        writer->starts = NULL;
        done = file_writer_commit(starts, writer->entry.starts.sha256, error);
    }
    if (done) {
        *entry = writer->entry;
        writer->entry = (ManifestSplit){0};
    }
    split_writer_discard(writer);
    return done;
}
