#include "data/parquet_integers.h"

#include <stddef.h>

bool varint_read(const uint8_t **at, const uint8_t *end, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* `width` <= 64 bits that begin at bit `position`, lowest first. */
static bool bits_read(const uint8_t *data, uint64_t size, uint64_t position, unsigned width,
                      uint64_t *value) {
    if (position + width > size * 8) return false;
    *value = 0;
    for (unsigned done = 0; done < width;) {
        unsigned shift = (unsigned)(position % 8), count = 8 - shift;
        if (count > width - done) count = width - done;
        uint64_t bits = (unsigned)data[position / 8] >> shift & ((1u << count) - 1);
        *value |= bits << done;
        done += count;
        position += count;
    }
    return true;
}

static bool hybrid_next_run(HybridReader *reader) {
    uint64_t header;
    if (!varint_read(&reader->at, reader->end, &header) || header > UINT32_MAX) return false;
    uint64_t left = (uint64_t)(reader->end - reader->at);
    if (header & 1) {
        uint64_t size = (header >> 1) * reader->width;
        reader->packed = (header >> 1) * 8;
        reader->run = reader->at;
        reader->run_size = size < left ? size : left; /* the last group may be cut short */
        reader->run_bit = 0;
        reader->at += reader->run_size;
        return true;
    }
    unsigned size = (reader->width + 7) / 8;
    if (size > left) return false;
    reader->repeated = header >> 1;
    reader->value = 0;
    for (unsigned i = 0; i < size; i++) reader->value |= (uint32_t)*reader->at++ << 8 * i;
    return true;
}

bool hybrid_next(HybridReader *reader, uint32_t *value) {
    while (!reader->repeated && !reader->packed)
        if (!hybrid_next_run(reader)) return false;
    if (reader->repeated) {
        reader->repeated--;
        *value = reader->value;
        return true;
    }
    uint64_t bits;
    if (!bits_read(reader->run, reader->run_size, reader->run_bit, reader->width, &bits))
        return false;
    reader->packed--;
    reader->run_bit += reader->width;
    *value = (uint32_t)bits;
    return true;
}

bool delta_begin(DeltaReader *reader, const uint8_t *at, const uint8_t *end) {
    *reader = (DeltaReader){.at = at, .end = end};
    uint64_t block_values, first;
    if (!varint_read(&reader->at, end, &block_values) ||
        !varint_read(&reader->at, end, &reader->miniblocks) ||
        !varint_read(&reader->at, end, &reader->left) || !varint_read(&reader->at, end, &first))
        return false;
    if (block_values > INT32_MAX || !reader->miniblocks || block_values % reader->miniblocks)
        return false;
    reader->miniblock_values = block_values / reader->miniblocks;
    reader->next_miniblock = reader->miniblocks;
    reader->value = (uint64_t)zigzag_decode(first);
    return reader->miniblock_values && reader->miniblock_values % 8 == 0;
}

/* Goes to the next miniblock, of the next block if need be. */
static bool delta_next_miniblock(DeltaReader *reader) {
    if (reader->next_miniblock == reader->miniblocks) {
        uint64_t smallest;
        if (!varint_read(&reader->at, reader->end, &smallest) ||
            reader->miniblocks > (uint64_t)(reader->end - reader->at))
            return false;
        reader->smallest_delta = (uint64_t)zigzag_decode(smallest);
        reader->widths = reader->at;
        reader->at += reader->miniblocks;
        reader->next_miniblock = 0;
    }
    uint64_t width = reader->widths[reader->next_miniblock++];
    uint64_t size = width * (reader->miniblock_values / 8);
    if (width > 64 || size > (uint64_t)(reader->end - reader->at)) return false;
    reader->packed = reader->at;
    reader->at += size;
    reader->in_miniblock = reader->miniblock_values;
    return true;
}

bool delta_next(DeltaReader *reader, int32_t *value) {
    if (!reader->left) return false;
    if (reader->started) {
        if (!reader->in_miniblock && !delta_next_miniblock(reader)) return false;
        unsigned width = reader->widths[reader->next_miniblock - 1];
        uint64_t delta, index = reader->miniblock_values - reader->in_miniblock--;
        if (!bits_read(reader->packed, (uint64_t)(reader->at - reader->packed), index * width,
                       width, &delta))
            return false;
        reader->value += reader->smallest_delta + delta;
    }
    reader->started = true;
    reader->left--;
    *value = (int32_t)(uint32_t)reader->value;
    return true;
}

const uint8_t *delta_end(DeltaReader reader) {
    uint64_t deltas = reader.left ? reader.left - 1 : 0;
    while (deltas) {
        if (!delta_next_miniblock(&reader)) return NULL;
        deltas -= deltas < reader.miniblock_values ? deltas : reader.miniblock_values;
    }
    return reader.at;
}
