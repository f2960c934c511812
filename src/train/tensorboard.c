#include "train/tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

enum { EVENT_MAX = 256, RECORD_MAX = EVENT_MAX + 16 };

/* ---- The record ---- */

/* CRC-32C (Castagnoli), four bits at a time. */
static uint32_t crc32c(const uint8_t *data, size_t size) {
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        crc = table[crc & 15] ^ (crc >> 4);
        crc = table[crc & 15] ^ (crc >> 4);
    }
    return ~crc;
}

/* A run of bytes under construction, little-endian; what is put always fits. */
typedef struct Encoder {
    uint8_t bytes[RECORD_MAX];
    size_t size;
} Encoder;

static void put(Encoder *encoder, const void *data, size_t size) {
    memcpy(encoder->bytes + encoder->size, data, size);
    encoder->size += size;
}

static void put_fixed(Encoder *encoder, uint64_t value, int size) {
    for (int i = 0; i < size; i++) encoder->bytes[encoder->size++] = (uint8_t)(value >> (8 * i));
}

static void put_varint(Encoder *encoder, uint64_t value) {
    for (; value >= 0x80; value >>= 7) encoder->bytes[encoder->size++] = (uint8_t)(value | 0x80);
    encoder->bytes[encoder->size++] = (uint8_t)value;
}

static void put_crc(Encoder *encoder, const uint8_t *data, size_t size) {
    uint32_t crc = crc32c(data, size);
    put_fixed(encoder, (uint32_t)(((crc >> 15) | (crc << 17)) + 0xa282ead8u), 4);
}

/* ---- The protobuf messages: a field is (number << 3 | wire type), then its value ---- */

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void put_field(Encoder *encoder, int number, int wire) {
    put_varint(encoder, (uint64_t)(number << 3 | wire));
}

static void put_bytes(Encoder *encoder, int number, const void *data, size_t size) {
    put_field(encoder, number, WIRE_BYTES);
    put_varint(encoder, size);
    put(encoder, data, size);
}

static void put_wall_time(Encoder *event, double wall_time) {
    uint64_t bits;
    memcpy(&bits, &wall_time, sizeof bits);
    put_field(event, 1, WIRE_64);
    put_fixed(event, bits, 8);
}

/* Summary { repeated Value { tag = 1, simple_value = 2 } value = 1 } */
static void put_summary(Encoder *event, const char *tag, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    Encoder inner = {.size = 0}, summary = {.size = 0};
    put_bytes(&inner, 1, tag, strnlen(tag, TENSORBOARD_TAG_MAX));
    put_field(&inner, 2, WIRE_32);
    put_fixed(&inner, bits, 4);
    put_bytes(&summary, 1, inner.bytes, inner.size);
    put_bytes(event, 5, summary.bytes, summary.size);
}

/* ---- The file ---- */

static void append_record(TensorBoard *board, const Encoder *event) {
    Encoder record = {.size = 0};
    put_fixed(&record, event->size, 8);
    put_crc(&record, record.bytes, 8);
    put(&record, event->bytes, event->size);
    put_crc(&record, event->bytes, event->size);
    if (board->used + record.size > sizeof board->buffer) tensorboard_flush(board);
    memcpy(board->buffer + board->used, record.bytes, record.size);
    board->used += record.size;
}

bool tensorboard_open(TensorBoard *board, const char *directory, double wall_time, Error *error) {
    board->warned = false;
    board->size = 0;
    board->used = 0;
    char host[65] = "localhost", name[160];
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s.%d", (long long)wall_time, host,
             (int)getpid());
    char *path = path_join(directory, name, error);
    if (!path) return false;
    board->file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (board->file < 0) fail_errno(error, "cannot create %s", path);
    free(path);
    if (board->file < 0) return false;
    static const char version[] = "brain.Event:2";
    Encoder event = {.size = 0};
    put_wall_time(&event, wall_time);
    put_bytes(&event, 3, version, sizeof version - 1);
    append_record(board, &event);
    tensorboard_flush(board);
    return true;
}

void tensorboard_close(TensorBoard *board) {
    if (board->file < 0) return;
    tensorboard_flush(board);
    close(board->file);
    board->file = -1;
}

void tensorboard_scalar(TensorBoard *board, double wall_time, int64_t step, const char *tag,
                        double value) {
    Encoder event = {.size = 0};
    put_wall_time(&event, wall_time);
    put_field(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)step);
    put_summary(&event, tag, (float)value);
    append_record(board, &event);
}

void tensorboard_flush(TensorBoard *board) {
    size_t size = board->used;
    board->used = 0;
    ssize_t written;
    do written = pwrite(board->file, board->buffer, size, board->size);
    while (written < 0 && errno == EINTR);
    if (written == (ssize_t)size) {
        board->size += written;
        return;
    }
    if (!board->warned)
        log_warning(
            "cannot write to the TensorBoard file: %s; training goes on, points will be missing",
            written < 0 ? strerror(errno) : "the disk is full");
    board->warned = true;
    (void)!ftruncate(board->file, board->size); /* a reader stops at a record cut short */
}
