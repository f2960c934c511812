#include "data/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/memory.h"

enum { INPUT_BYTES = 1 << 17 };

typedef enum Compression { COMPRESSION_NONE, COMPRESSION_GZIP, COMPRESSION_ZSTD } Compression;

struct Stream {
    const char *name;
    int descriptor;
    Compression compression;
    uint64_t consumed;
    bool ended;      /* no more bytes in the file */
    bool frame_open; /* inside a gzip member or zstd frame */
    z_stream gzip;
    ZSTD_DStream *zstd;
    size_t used, filled; /* of input */
    uint8_t input[INPUT_BYTES];
};

/* Adds what one read() gives to the input. */
static bool fill_input(Stream *stream, Error *error) {
    if (stream->used == stream->filled) stream->used = stream->filled = 0;
    ssize_t count;
    do
        count =
            read(stream->descriptor, stream->input + stream->filled, INPUT_BYTES - stream->filled);
    while (count < 0 && errno == EINTR);
    if (count < 0) return fail_errno(error, "cannot read %s", stream->name);
    stream->ended = count == 0;
    stream->filled += (size_t)count;
    stream->consumed += (uint64_t)count;
    return true;
}

static bool ends_with(const char *text, const char *suffix) {
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && !strcmp(text + length - tail, suffix);
}

/* Parquet, or that encrypted, which goes on with a size whose last byte is 0 as none is in text. */
static bool is_parquet(const uint8_t *bytes, size_t size) {
    return size >= 8 && (!memcmp(bytes, "PAR1", 4) || (!memcmp(bytes, "PARE", 4) && !bytes[7]));
}

static bool detect_compression(Stream *stream, Error *error) {
    while (stream->filled < 8 && !stream->ended)
        if (!fill_input(stream, error)) return false;
    const uint8_t *bytes = stream->input;
    if (stream->filled >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        stream->compression = COMPRESSION_GZIP;
    else if (stream->filled >= 4 && !memcmp(bytes, "\x28\xb5\x2f\xfd", 4))
        stream->compression = COMPRESSION_ZSTD;
    else if (stream->filled && (ends_with(stream->name, ".gz") || ends_with(stream->name, ".zst")))
        return fail(error,
                    "%s is not compressed as its name says; it is damaged or needs another name",
                    stream->name);
    if (is_parquet(bytes, stream->filled))
        return fail(error, "%s is Parquet, which is read from files whose names end in .parquet",
                    stream->name);
    if (stream->compression == COMPRESSION_GZIP && inflateInit2(&stream->gzip, 15 + 16) != Z_OK)
        return fail(error, "out of memory to decompress %s", stream->name);
    if (stream->compression == COMPRESSION_ZSTD && !(stream->zstd = ZSTD_createDStream()))
        return fail(error, "out of memory to decompress %s", stream->name);
    return true;
}

Stream *stream_open(const char *path, Error *error) {
    Stream *stream = allocate(1, sizeof *stream, error);
    if (!stream) return NULL;
    bool standard = !strcmp(path, "-");
    stream->name = standard ? "standard input" : path;
    stream->descriptor = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    bool done = stream->descriptor >= 0 || fail_errno(error, "cannot open %s", path);
    if (done && detect_compression(stream, error)) return stream;
    stream_free(stream);
    return NULL;
}

void stream_free(Stream *stream) {
    if (!stream) return;
    if (stream->compression == COMPRESSION_GZIP) inflateEnd(&stream->gzip);
    ZSTD_freeDStream(stream->zstd);
    if (stream->descriptor > STDIN_FILENO) close(stream->descriptor);
    free(stream);
}

static bool inflate_some(Stream *stream, void *data, size_t size, size_t *count, Error *error) {
    z_stream *gzip = &stream->gzip;
    if (!stream->frame_open) inflateReset(gzip); /* files may be joined end to end */
    gzip->next_in = stream->input + stream->used;
    gzip->avail_in = (uInt)(stream->filled - stream->used);
    gzip->next_out = data;
    gzip->avail_out = (uInt)size;
    int status = inflate(gzip, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        return fail(error, "%s is damaged: %s", stream->name,
                    gzip->msg ? gzip->msg : "it cannot be decompressed");
    stream->used = stream->filled - gzip->avail_in;
    *count = size - gzip->avail_out;
    stream->frame_open = status != Z_STREAM_END;
    return true;
}

static bool unzstd_some(Stream *stream, void *data, size_t size, size_t *count, Error *error) {
    ZSTD_inBuffer in = {stream->input, stream->filled, stream->used};
    ZSTD_outBuffer out = {data, size, 0};
    size_t left = ZSTD_decompressStream(stream->zstd, &out, &in);
    if (ZSTD_isError(left))
        return fail(error, "%s is damaged: %s", stream->name, ZSTD_getErrorName(left));
    stream->used = in.pos;
    *count = out.pos;
    stream->frame_open = left != 0;
    return true;
}

static bool copy_some(Stream *stream, void *data, size_t size, size_t *count) {
    size_t have = stream->filled - stream->used;
    *count = have < size ? have : size;
    memcpy(data, stream->input + stream->used, *count);
    stream->used += *count;
    return true;
}

bool stream_read(Stream *stream, void *data, size_t size, size_t *count, Error *error) {
    if (size > 1u << 30) size = 1u << 30; /* zlib counts in 32 bits */
    for (*count = 0; *count == 0;) {
        bool empty = stream->used == stream->filled, done = true;
        if (empty && !stream->ended && !fill_input(stream, error)) return false;
        empty = stream->used == stream->filled;
        if (empty && !stream->frame_open) return true;
        switch (stream->compression) {
        case COMPRESSION_NONE:
            done = copy_some(stream, data, size, count);
            break;
        case COMPRESSION_GZIP:
            done = inflate_some(stream, data, size, count, error);
            break;
        case COMPRESSION_ZSTD:
            done = unzstd_some(stream, data, size, count, error);
            break;
        }
        if (!done) return false;
        if (empty && *count == 0 && stream->frame_open)
            return fail(error, "%s is truncated: its compressed data ends early", stream->name);
    }
    return true;
}

const char *stream_name(const Stream *stream) {
    return stream->name;
}

uint64_t stream_consumed(const Stream *stream) {
    return stream->consumed;
}
