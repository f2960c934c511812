#include "data/parquet_thrift.h"

#include "data/parquet_integers.h"

enum {
    TYPE_STOP,
    TYPE_TRUE,
    TYPE_FALSE,
    TYPE_INT8,
    TYPE_INT16,
    TYPE_INT32,
    TYPE_INT64,
    TYPE_DOUBLE,
    TYPE_BINARY,
    TYPE_LIST,
    TYPE_SET,
    TYPE_MAP,
    TYPE_STRUCT,
    TYPE_UUID,
};

enum { DEPTH_LIMIT = 32 }; /* of what is skipped; Parquet's own metadata is 8 deep */

static bool give_up(Thrift *thrift) {
    thrift->damaged = true;
    thrift->at = thrift->end;
    return false;
}

static uint64_t read_varint(Thrift *thrift) {
    uint64_t value;
    return varint_read(&thrift->at, thrift->end, &value) ? value : give_up(thrift);
}

static uint8_t read_byte(Thrift *thrift) {
    return thrift->at < thrift->end ? *thrift->at++ : give_up(thrift);
}

static const uint8_t *take(Thrift *thrift, uint64_t size) {
    const uint8_t *start = thrift->at;
    if (size > (uint64_t)(thrift->end - thrift->at)) return give_up(thrift), thrift->at;
    thrift->at += size;
    return start;
}

bool thrift_next_field(Thrift *thrift, ThriftField *field) {
    uint8_t header = read_byte(thrift);
    field->type = header & 15;
    if (field->type == TYPE_STOP) return false;
    int64_t id = header >> 4 ? field->id + (header >> 4) : zigzag_decode(read_varint(thrift));
    if (id < INT16_MIN || id > INT16_MAX) return give_up(thrift);
    field->id = (int)id;
    return !thrift->damaged;
}

int64_t thrift_integer(Thrift *thrift, const ThriftField *field) {
    if (field->type < TYPE_INT16 || field->type > TYPE_INT64) return give_up(thrift);
    return zigzag_decode(read_varint(thrift));
}

int32_t thrift_int32(Thrift *thrift, const ThriftField *field) {
    int64_t value = thrift_integer(thrift, field);
    return value >= INT32_MIN && value <= INT32_MAX ? (int32_t)value : give_up(thrift);
}

bool thrift_boolean(Thrift *thrift, const ThriftField *field) {
    if (field->type != TYPE_TRUE && field->type != TYPE_FALSE) give_up(thrift);
    return field->type == TYPE_TRUE;
}

ThriftText thrift_text(Thrift *thrift, const ThriftField *field) {
    ThriftText text = {.size = field->type == TYPE_BINARY ? read_varint(thrift) : 0};
    if (field->type != TYPE_BINARY) give_up(thrift);
    text.data = (const char *)take(thrift, text.size);
    if (thrift->damaged) text.size = 0;
    return text;
}

static uint64_t read_list(Thrift *thrift, int *type) {
    uint8_t header = read_byte(thrift);
    *type = header & 15;
    return header >> 4 == 15 ? read_varint(thrift) : header >> 4;
}

uint64_t thrift_structs(Thrift *thrift, const ThriftField *field) {
    if (field->type != TYPE_LIST) return give_up(thrift);
    int type;
    uint64_t count = read_list(thrift, &type);
    return !count || type == TYPE_STRUCT ? count : give_up(thrift);
}

bool thrift_struct(Thrift *thrift, const ThriftField *field) {
    return field->type == TYPE_STRUCT || give_up(thrift);
}

static void skip(Thrift *thrift, int type, int depth);

/* A boolean is in a field's header, but a byte of its own in a list. */
static void skip_element(Thrift *thrift, int type, int depth) {
    if (type == TYPE_TRUE || type == TYPE_FALSE)
        read_byte(thrift);
    else
        skip(thrift, type, depth);
}

static void skip_map(Thrift *thrift, int depth) {
    uint64_t count = read_varint(thrift);
    int types = count ? read_byte(thrift) : 0;
    for (uint64_t i = 0; i < count && !thrift->damaged; i++) {
        skip_element(thrift, types >> 4, depth);
        skip_element(thrift, types & 15, depth);
    }
}

static void skip(Thrift *thrift, int type, int depth) {
    ThriftField field = {0};
    uint64_t count;
    if (depth > DEPTH_LIMIT) give_up(thrift);
    switch (type) {
    case TYPE_TRUE:
    case TYPE_FALSE:
        break;
    case TYPE_INT8:
        take(thrift, 1);
        break;
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
        read_varint(thrift);
        break;
    case TYPE_DOUBLE:
        take(thrift, 8);
        break;
    case TYPE_UUID:
        take(thrift, 16);
        break;
    case TYPE_BINARY:
        take(thrift, read_varint(thrift));
        break;
    case TYPE_LIST:
    case TYPE_SET:
        count = read_list(thrift, &type);
        for (uint64_t i = 0; i < count && !thrift->damaged; i++)
            skip_element(thrift, type, depth + 1);
        break;
    case TYPE_MAP:
        skip_map(thrift, depth + 1);
        break;
    case TYPE_STRUCT:
        while (thrift_next_field(thrift, &field)) skip(thrift, field.type, depth + 1);
        break;
    default:
        give_up(thrift);
    }
}

void thrift_skip(Thrift *thrift, const ThriftField *field) {
    skip(thrift, field->type, 0);
}
