#include "data/shard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

static const struct {
    int32_t magic, version;
    int token_bytes;
} forms[] = {{20240520, 1, 2}, {20240801, 7, 4}};

void shard_header(int32_t header[256], int token_bytes, int64_t tokens) {
    int form = token_bytes == 4;
    memset(header, 0, SHARD_HEADER_BYTES);
    header[0] = forms[form].magic;
    header[1] = forms[form].version;
    header[2] = (int32_t)tokens;
}

/* pread() until all of it is there. */
static bool read_at(const Shard *shard, int64_t offset, void *data, size_t size, Error *error) {
    uint8_t *out = data;
    while (size) {
        ssize_t count = pread(shard->descriptor, out, size, offset);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return fail_errno(error, "cannot read %s", shard->path);
        if (count == 0)
            return fail(error,
                        "%s ends at byte %lld: it has been cut short; build the dataset again",
                        shard->path, (long long)offset);
        out += count;
        size -= (size_t)count;
        offset += count;
    }
    return true;
}

static bool check_header(Shard *shard, int64_t file_bytes, Error *error) {
    int32_t header[3];
    if (file_bytes < SHARD_HEADER_BYTES)
        return fail(error,
                    "%s has %lld bytes, less than the %d of a shard's header; it is truncated",
                    shard->path, (long long)file_bytes, SHARD_HEADER_BYTES);
    if (!read_at(shard, 0, header, sizeof header, error)) return false;
    int form = header[0] == forms[1].magic;
    if (header[0] != forms[form].magic)
        return fail(error, "%s is not a token shard: its magic number is %d, not %d or %d",
                    shard->path, header[0], forms[0].magic, forms[1].magic);
    if (header[1] != forms[form].version)
        return fail(error, "%s is a token shard of version %d; only version %d can be read",
                    shard->path, header[1], forms[form].version);
    if (header[2] < 0)
        return fail(error, "%s: its header counts %d tokens", shard->path, header[2]);
    shard->token_bytes = forms[form].token_bytes;
    shard->tokens = header[2];
    int64_t expected = SHARD_HEADER_BYTES + shard->tokens * shard->token_bytes;
    if (file_bytes != expected)
        return fail(error,
                    "%s is %s: its header counts %lld tokens, which is %lld bytes, but the file "
                    "has %lld; copy or build it again",
                    shard->path, file_bytes < expected ? "truncated" : "too long",
                    (long long)shard->tokens, (long long)expected, (long long)file_bytes);
    return true;
}

bool shard_open(Shard *shard, const char *path, Error *error) {
    *shard = (Shard){.descriptor = -1};
    if (!(shard->path = copy_string(path, error))) return false;
    shard->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    bool done = false;
    if (shard->descriptor < 0) {
        fail_errno(error,
                   errno == EMFILE ? "cannot open %s (raise the limit with 'ulimit -n 65536')"
                                   : "cannot open shard %s",
                   path);
    } else if (fstat(shard->descriptor, &status) != 0) {
        fail_errno(error, "cannot read the size of %s", path);
    } else if (!S_ISREG(status.st_mode)) {
        fail(error, "%s is not a regular file", path);
    } else {
        done = check_header(shard, status.st_size, error);
    }
    if (!done) shard_close(shard);
    return done;
}

void shard_close(Shard *shard) {
    if (shard->descriptor >= 0) close(shard->descriptor);
    free(shard->path);
    *shard = (Shard){.descriptor = -1};
}

bool shard_read(const Shard *shard, int64_t start, int64_t count, uint32_t *out, Error *error) {
    int64_t offset = SHARD_HEADER_BYTES + start * shard->token_bytes;
    size_t size = (size_t)(count * shard->token_bytes);
    if (shard->token_bytes == 4) return read_at(shard, offset, out, size, error);
    /* The 16-bit tokens are read into the upper half of out and widened from its start. */
    uint8_t *half = (uint8_t *)out + size;
    if (!read_at(shard, offset, half, size, error)) return false;
    for (int64_t i = 0; i < count; i++) {
        uint16_t token;
        memcpy(&token, half + 2 * i, sizeof token);
        out[i] = token;
    }
    return true;
}
