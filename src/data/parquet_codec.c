#include "data/parquet_codec.h"

#include <lz4.h>
#include <snappy-c.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

typedef bool Decompress(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

static bool copy(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size) {
    if (in_size != out_size) return false;
    memcpy(out, in, in_size);
    return true;
}

static bool unsnappy(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size) {
    size_t size = out_size;
    return snappy_uncompress((const char *)in, in_size, (char *)out, &size) == SNAPPY_OK &&
           size == out_size;
}

/* One gzip member after the other, or a zlib stream. */
static bool gunzip(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size) {
    z_stream stream = {
        .next_in = in, .avail_in = (uInt)in_size, .next_out = out, .avail_out = (uInt)out_size};
    if (inflateInit2(&stream, 15 + 32) != Z_OK) return false;
    int status;
    do status = inflate(&stream, Z_FINISH);
    while (status == Z_STREAM_END && stream.avail_in && inflateReset(&stream) == Z_OK);
    inflateEnd(&stream);
    return status == Z_STREAM_END && !stream.avail_out;
}

static bool unzstd(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size) {
    return ZSTD_decompress(out, out_size, in, in_size) == out_size;
}

static bool unlz4(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size) {
    return LZ4_decompress_safe((const char *)in, (char *)out, (int)in_size, (int)out_size) ==
           (int)out_size;
}

static size_t big_endian(const uint8_t *bytes) {
    return (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
}

/* The older LZ4 codec is what Hadoop writes, blocks after both their sizes; some programs wrote a bare
 * block under its number. */
static bool unlz4_hadoop(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size) {
    const uint8_t *block = in;
    size_t in_left = in_size, out_left = out_size;
    while (in_left >= 8) {
        size_t unpacked = big_endian(block), packed = big_endian(block + 4);
        if (packed > in_left - 8 || unpacked > out_left ||
            !unlz4(block + 8, packed, out + out_size - out_left, unpacked))
            break;
        out_left -= unpacked;
        in_left -= 8 + packed;
        block += 8 + packed;
    }
    return (!in_left && !out_left) || unlz4(in, in_size, out, out_size);
}

static const struct {
    const char *name;
    Decompress *decompress; /* NULL = cannot be read */
} codecs[] = {{"UNCOMPRESSED", copy}, {"SNAPPY", unsnappy},  {"GZIP", gunzip}, {"LZO", NULL},
              {"BROTLI", NULL},       {"LZ4", unlz4_hadoop}, {"ZSTD", unzstd}, {"LZ4_RAW", unlz4}};
enum { CODECS = sizeof codecs / sizeof *codecs };

bool parquet_codec_check(int codec, Error *error) {
    if (codec >= 0 && codec < CODECS && codecs[codec].decompress) return true;
    static const char remedy[] = "write the file with zstd, snappy, gzip, lz4 or no compression";
    if (codec < 0 || codec >= CODECS)
        return fail(error, "compressed in a way that is unknown (%d); %s", codec, remedy);
    return fail(error, "compressed with %s, which is not supported; %s", codecs[codec].name,
                remedy);
}

bool parquet_decompress(int codec, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
                        Error *error) {
    return codecs[codec].decompress(in, in_size, out, out_size) ||
           fail(error, "its %zu bytes do not decompress to %zu as %s", in_size, out_size,
                codecs[codec].name);
}
