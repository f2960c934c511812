#include "cmd/compress.h"

#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/memory.h"

enum { BEST_LEVEL = 9, GZIP_FORMAT = 15 + 16, MEMORY_LEVEL = 8 };

size_t gzip_size(const void *text, size_t size, Error *error) {
    if (size > UINT32_MAX / 2) return fail(error, "%zu bytes are too many to compress", size);
    z_stream stream = {0};
    if (deflateInit2(&stream, BEST_LEVEL, Z_DEFLATED, GZIP_FORMAT, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return fail(error, "cannot start zlib: out of memory");
    size_t bound = deflateBound(&stream, size), written = 0;
    uint8_t *out = allocate(bound, 1, error);
    if (out) {
        stream.next_in = (z_const Bytef *)(uintptr_t)text;
        stream.avail_in = (uInt)size;
        stream.next_out = out;
        stream.avail_out = (uInt)bound;
        if (deflate(&stream, Z_FINISH) == Z_STREAM_END)
            written = bound - stream.avail_out;
        else
            fail(error, "zlib did not finish");
    }
    deflateEnd(&stream);
    free(out);
    return written;
}

size_t xz_size(const void *text, size_t size, Error *error) {
    size_t bound = lzma_stream_buffer_bound(size), written = 0;
    uint8_t *out = allocate(bound, 1, error);
    if (!out) return 0;
    lzma_ret result = lzma_easy_buffer_encode(BEST_LEVEL, LZMA_CHECK_CRC64, NULL, text, size, out,
                                              &written, bound);
    free(out);
    if (result != LZMA_OK) return fail(error, "liblzma failed (%d); it needs 700 MB", (int)result);
    return written;
}
