/* Thrift's compact protocol, in which Parquet's metadata is written: structs of numbered fields. */
#ifndef HEARTH_DATA_PARQUET_THRIFT_H
#define HEARTH_DATA_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Once something makes no sense, everything read is 0 and every struct at its end. */
typedef struct Thrift {
    const uint8_t *at, *end;
    bool damaged;
} Thrift;

typedef struct ThriftField {
    int id, type;
} ThriftField;

typedef struct ThriftText {
    const char *data; /* in the metadata; not NUL-terminated */
    size_t size;
} ThriftText;

/* The next field of a struct, from {0} on; false at the struct's end. Its value must be read, by one of
 * the functions below, or skipped. */
bool thrift_next_field(Thrift *thrift, ThriftField *field);
int64_t thrift_integer(Thrift *thrift, const ThriftField *field);
int32_t thrift_int32(Thrift *thrift, const ThriftField *field);
bool thrift_boolean(Thrift *thrift, const ThriftField *field);
ThriftText thrift_text(Thrift *thrift, const ThriftField *field);
/* A list of structs: their number; each is then read field by field. */
uint64_t thrift_structs(Thrift *thrift, const ThriftField *field);
/* A struct within: whether the field is one. */
bool thrift_struct(Thrift *thrift, const ThriftField *field);
void thrift_skip(Thrift *thrift, const ThriftField *field);

#endif
