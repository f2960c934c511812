#include "data/parquet_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/parquet_codec.h"

enum { MAGIC_BYTES = 4, TAIL_BYTES = 8 }; /* the tail: the metadata's size, and the magic again */

/* Of the metadata of a column in a row group. */
typedef struct ChunkMetadata {
    bool present, elsewhere, encrypted;
    int type, codec;
    int64_t values, size, data_offset, dictionary_offset;
} ChunkMetadata;

static bool fail_damaged(Error *error) {
    return fail(error, "damaged: its metadata cannot be read");
}

bool parquet_fail_within(const ParquetFile *file, size_t row_group, Error *error) {
    return fail_within(error, "%s: column \"%s\", row group %zu", file->path, file->column.name,
                       row_group);
}

bool parquet_read(const ParquetFile *file, void *data, size_t size, int64_t offset, Error *error) {
    for (size_t done = 0; done < size;) {
        ssize_t count = pread(file->descriptor, (char *)data + done, size - done,
                              (off_t)(offset + (int64_t)done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return fail_errno(error, "cannot read it");
        if (count == 0) return fail(error, "the file was cut short while it was read");
        done += (size_t)count;
    }
    return true;
}

static void read_column_metadata(Thrift *thrift, ChunkMetadata *chunk) {
    ThriftField field = {0};
    chunk->present = true;
    while (thrift_next_field(thrift, &field)) {
        switch (field.id) {
        case 1:
            chunk->type = thrift_int32(thrift, &field);
            break;
        case 4:
            chunk->codec = thrift_int32(thrift, &field);
            break;
        case 5:
            chunk->values = thrift_integer(thrift, &field);
            break;
        case 7:
            chunk->size = thrift_integer(thrift, &field);
            break;
        case 9:
            chunk->data_offset = thrift_integer(thrift, &field);
            break;
        case 11:
            chunk->dictionary_offset = thrift_integer(thrift, &field);
            break;
        default:
            thrift_skip(thrift, &field);
        }
    }
}

static void read_chunk_metadata(Thrift *thrift, ChunkMetadata *chunk) {
    ThriftField field = {0};
    *chunk = (ChunkMetadata){0};
    while (thrift_next_field(thrift, &field)) {
        chunk->elsewhere |= field.id == 1; /* the path of another file */
        chunk->encrypted |=
            field.id == 8 || field.id == 9; /* how, and the metadata encrypted too */
        if (field.id != 3)
            thrift_skip(thrift, &field);
        else if (thrift_struct(thrift, &field))
            read_column_metadata(thrift, chunk);
    }
}

static bool add_chunk(ParquetFile *file, const ChunkMetadata *chunk, int64_t rows, Error *error) {
    const ParquetColumn *column = &file->column;
    if (chunk->encrypted) return fail(error, "encrypted, which is not supported");
    if (chunk->elsewhere) return fail(error, "kept in another file, which is not supported");
    if (!chunk->present || chunk->type != column->type || rows < 0)
        return fail(error, "damaged: its metadata does not fit the schema");
    if (chunk->values != rows)
        return fail(error, "damaged: it has %lld values for %lld rows", (long long)chunk->values,
                    (long long)rows);
    if (!parquet_codec_check(chunk->codec, error)) return false;
    /* A dictionary stands before the data, where there is one; some files say it is at 0 then. */
    int64_t start = chunk->dictionary_offset > 0 && chunk->dictionary_offset < chunk->data_offset
                        ? chunk->dictionary_offset
                        : chunk->data_offset;
    int64_t size = chunk->size, most = file->size - TAIL_BYTES;
    if (!rows) start = MAGIC_BYTES, size = 0; /* there may be no pages */
    if (start < MAGIC_BYTES || size < 0 || start > most || size > most - start)
        return fail(error, "damaged: its %lld bytes at %lld do not lie within the file",
                    (long long)size, (long long)start);
    if (__builtin_add_overflow(file->rows, rows, &file->rows))
        return fail(error, "damaged: it has too many rows to count");
    if (!reserve(&file->chunks, &file->capacity, file->count + 1, sizeof *file->chunks, error))
        return false;
    file->chunks[file->count++] = (ParquetChunk){start, size, rows, chunk->codec};
    return true;
}

static bool read_row_group(Thrift *thrift, ParquetFile *file, Error *error) {
    ThriftField field = {0};
    ChunkMetadata chunk, ours = {0};
    uint64_t columns = 0;
    int64_t rows = -1;
    while (thrift_next_field(thrift, &field)) {
        if (field.id == 1) {
            columns = thrift_structs(thrift, &field);
            for (uint64_t i = 0; i < columns && !thrift->damaged; i++) {
                read_chunk_metadata(thrift, &chunk);
                if (i == file->column.index) ours = chunk;
            }
        } else if (field.id == 3) {
            rows = thrift_integer(thrift, &field);
        } else {
            thrift_skip(thrift, &field);
        }
    }
    if (thrift->damaged) return fail_damaged(error);
    if (columns != file->column.columns)
        return fail(error, "damaged: row group %zu has %llu columns and the schema %zu",
                    file->count, (unsigned long long)columns, file->column.columns);
    return add_chunk(file, &ours, rows, error) ||
           fail_within(error, "column \"%s\", row group %zu", file->column.name, file->count);
}

static bool read_row_groups(Thrift thrift, ParquetFile *file, Error *error) {
    ThriftField field = {0};
    while (thrift_next_field(&thrift, &field)) {
        if (field.id != 4) {
            thrift_skip(&thrift, &field);
            continue;
        }
        uint64_t count = thrift_structs(&thrift, &field);
        for (uint64_t i = 0; i < count && !thrift.damaged; i++)
            if (!read_row_group(&thrift, file, error)) return false;
    }
    return !thrift.damaged || fail_damaged(error);
}

static bool check_magic(const uint8_t *start, const uint8_t *end, Error *error) {
    static const char parquet[] = "PAR1", encrypted[] = "PARE";
    if (!memcmp(start, encrypted, MAGIC_BYTES) && !memcmp(end, encrypted, MAGIC_BYTES))
        return fail(error, "encrypted, which is not supported");
    if ((start[0] == 0x1f && start[1] == 0x8b) || !memcmp(start, "\x28\xb5\x2f\xfd", MAGIC_BYTES))
        return fail(error, "compressed as a whole; decompress it first (a Parquet file is "
                           "compressed within)");
    if (memcmp(start, parquet, MAGIC_BYTES))
        return fail(error, "not a Parquet file: it does not begin with PAR1");
    return !memcmp(end, parquet, MAGIC_BYTES) ||
           fail(error, "truncated: a Parquet file ends with PAR1");
}

/* The metadata, to be freed by the caller. */
static bool read_metadata(const ParquetFile *file, Bytes *metadata, Error *error) {
    uint8_t start[MAGIC_BYTES], tail[TAIL_BYTES];
    if (file->size < MAGIC_BYTES + TAIL_BYTES)
        return fail(error,
                    file->size ? "not a Parquet file: it is too short" : "the file is empty");
    if (!parquet_read(file, start, sizeof start, 0, error) ||
        !parquet_read(file, tail, sizeof tail, file->size - TAIL_BYTES, error) ||
        !check_magic(start, tail + MAGIC_BYTES, error))
        return false;
    int64_t size = 0, most = file->size - MAGIC_BYTES - TAIL_BYTES;
    for (int i = MAGIC_BYTES; i-- > 0;) size = size << 8 | tail[i];
    if (size > most)
        return fail(error, "damaged: metadata of %lld bytes does not fit into its %lld bytes",
                    (long long)size, (long long)file->size);
    metadata->size = (size_t)size;
    return reserve(&metadata->data, &metadata->capacity, metadata->size + 1, 1, error) &&
           parquet_read(file, metadata->data, metadata->size, file->size - TAIL_BYTES - size,
                        error);
}

static bool open_file(ParquetFile *file, const char *column, Error *error) {
    struct stat status;
    file->descriptor = open(file->path, O_RDONLY | O_CLOEXEC);
    if (file->descriptor < 0 || fstat(file->descriptor, &status) != 0)
        return fail_errno(error, "cannot open it");
    if (!S_ISREG(status.st_mode))
        return fail(error,
                    "not a regular file, as a Parquet file must be: it is read from its end");
    file->size = status.st_size;
    Bytes metadata = {0};
    bool done = read_metadata(file, &metadata, error);
    if (done) {
        Thrift thrift = {metadata.data, metadata.data + metadata.size, false};
        done = parquet_schema_find(thrift, column, &file->column, error) &&
               read_row_groups(thrift, file, error);
    }
    bytes_free(&metadata);
    return done;
}

bool parquet_open(ParquetFile *file, const char *path, const char *column, Error *error) {
    *file = (ParquetFile){.path = path, .descriptor = -1};
    if (open_file(file, column, error)) return true;
    parquet_close(file);
    return fail_within(error, "%s", path);
}

void parquet_close(ParquetFile *file) {
    if (file->descriptor >= 0) close(file->descriptor);
    free(file->chunks);
    *file = (ParquetFile){.descriptor = -1};
}
