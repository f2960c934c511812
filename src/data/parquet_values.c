#include "data/parquet_values.h"

#include <stdlib.h>

enum {
    PLAIN = 0,
    PLAIN_DICTIONARY = 2,
    DELTA_LENGTH_BYTE_ARRAY = 6,
    DELTA_BYTE_ARRAY = 7,
    RLE_DICTIONARY = 8,
};

static const char *const encodings[] = {
    "PLAIN",          "GROUP_VAR_INT",       "PLAIN_DICTIONARY",        "RLE",
    "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY", "BYTE_STREAM_SPLIT",
};
enum { ENCODINGS = sizeof encodings / sizeof *encodings };

static bool fail_encoding(int encoding, const char *what, Error *error) {
    if (encoding < 0 || encoding >= ENCODINGS)
        return fail(error, "%s is encoded in a way that is unknown (%d)", what, encoding);
    return fail(error, "%s is encoded as %s, which is not supported for strings", what,
                encodings[encoding]);
}

static bool fail_damaged(Error *error) {
    return fail(error, "damaged: a page's values do not fit into it");
}

/* The next `size` bytes. */
static bool take(const uint8_t **at, const uint8_t *end, size_t size, ParquetText *text) {
    if (size > (size_t)(end - *at)) return false;
    *text = (ParquetText){*at, size};
    *at += size;
    return true;
}

static bool take_plain(const uint8_t **at, const uint8_t *end, const ParquetColumn *column,
                       ParquetText *text) {
    if (column->length) return take(at, end, column->length, text);
    if (!take(at, end, 4, text)) return false;
    const uint8_t *b = text->data;
    size_t size = (size_t)b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
    return take(at, end, size, text);
}

bool parquet_dictionary_set(ParquetDictionary *dictionary, const ParquetPage *page,
                            const ParquetColumn *column, Error *error) {
    int encoding = page->header.encoding;
    if (encoding != PLAIN && encoding != PLAIN_DICTIONARY)
        return fail_encoding(encoding, "the dictionary", error);
    const uint8_t *at = page->content;
    dictionary->count = 0;
    for (int32_t i = 0; i < page->header.values; i++) {
        ParquetText text;
        if (!take_plain(&at, page->end, column, &text)) return fail_damaged(error);
        if (!reserve(&dictionary->texts, &dictionary->capacity, dictionary->count + 1,
                     sizeof *dictionary->texts, error))
            return false;
        dictionary->texts[dictionary->count++] = text;
    }
    return true;
}

void parquet_dictionary_free(ParquetDictionary *dictionary) {
    free(dictionary->texts);
    *dictionary = (ParquetDictionary){0};
}

static unsigned bits_in(unsigned value) {
    unsigned bits = 0;
    for (; value; value >>= 1) bits++;
    return bits;
}

/* The width of the numbers stands before them; it may be missing when there are none. */
static bool begin_indexes(ParquetValues *values) {
    bool empty = values->at == values->end;
    unsigned width = empty ? 0 : *values->at++;
    values->index = (HybridReader){.at = empty ? values->end : values->at, .end = values->end};
    values->index.width = width;
    return width <= 32;
}

/* Lengths, then the bytes of all strings. */
static bool begin_lengths(ParquetValues *values) {
    return delta_begin(&values->length, values->at, values->end) &&
           (values->at = delta_end(values->length));
}

/* How much each string shares with the one before, then the rest of each as above. */
static bool begin_prefixes(ParquetValues *values) {
    values->previous.size = 0;
    return delta_begin(&values->prefix, values->at, values->end) &&
           (values->at = delta_end(values->prefix)) && begin_lengths(values);
}

bool parquet_values_begin(ParquetValues *values, const ParquetPage *page,
                          const ParquetColumn *column, const ParquetDictionary *dictionary,
                          Error *error) {
    values->column = column;
    values->dictionary = dictionary;
    values->encoding = page->header.encoding;
    values->left = page->header.values;
    values->at = page->content;
    values->end = page->end;
    values->level =
        (HybridReader){.at = page->levels, .end = page->content, .width = bits_in(column->levels)};
    bool some = values->at != values->end; /* a page of nulls may lack all that follows */
    bool done = true;
    switch (values->encoding) {
    case PLAIN:
        break;
    case PLAIN_DICTIONARY:
    case RLE_DICTIONARY:
        done = begin_indexes(values);
        break;
    case DELTA_LENGTH_BYTE_ARRAY:
        if (column->length) return fail_encoding(values->encoding, "a page", error);
        values->length = (DeltaReader){0};
        done = !some || begin_lengths(values);
        break;
    case DELTA_BYTE_ARRAY:
        values->prefix = (DeltaReader){0};
        done = !some || begin_prefixes(values);
        break;
    default:
        return fail_encoding(values->encoding, "a page", error);
    }
    return done || fail_damaged(error);
}

static bool next_of_dictionary(ParquetValues *values, ParquetText *text, Error *error) {
    uint32_t index;
    if (!hybrid_next(&values->index, &index)) return fail_damaged(error);
    if (index >= values->dictionary->count)
        return fail(error, "damaged: a page refers to string %u of a dictionary of %zu", index,
                    values->dictionary->count);
    *text = values->dictionary->texts[index];
    return true;
}

static bool next_of_lengths(ParquetValues *values, ParquetText *text, Error *error) {
    int32_t size;
    return (delta_next(&values->length, &size) && size >= 0 &&
            take(&values->at, values->end, (size_t)size, text)) ||
           fail_damaged(error);
}

static bool next_of_prefixes(ParquetValues *values, ParquetText *text, Error *error) {
    int32_t shared;
    if (!delta_next(&values->prefix, &shared) || shared < 0 ||
        (size_t)shared > values->previous.size)
        return fail_damaged(error);
    values->previous.size = (size_t)shared;
    if (!next_of_lengths(values, text, error) ||
        !bytes_append(&values->previous, text->data, text->size, error))
        return false;
    *text = (ParquetText){values->previous.data, values->previous.size};
    return true;
}

/* The rest of a run of nulls, which may be billions. */
static void skip_nulls(ParquetValues *values) {
    uint64_t left = (uint64_t)values->left, run = values->level.repeated;
    uint64_t skipped = run < left ? run : left;
    values->level.repeated -= skipped;
    values->left -= (int32_t)skipped;
}

bool parquet_values_next(ParquetValues *values, ParquetText *text, Error *error) {
    uint32_t level = values->column->levels;
    values->left--;
    *text = (ParquetText){0};
    if (level && !hybrid_next(&values->level, &level)) return fail_damaged(error);
    if (level > values->column->levels) return fail_damaged(error);
    if (level < values->column->levels) {
        skip_nulls(values);
        return true;
    }
    switch (values->encoding) {
    case PLAIN:
        return take_plain(&values->at, values->end, values->column, text) || fail_damaged(error);
    case DELTA_LENGTH_BYTE_ARRAY:
        return next_of_lengths(values, text, error);
    case DELTA_BYTE_ARRAY:
        return next_of_prefixes(values, text, error);
    default:
        return next_of_dictionary(values, text, error);
    }
}

void parquet_values_free(ParquetValues *values) {
    bytes_free(&values->previous);
}
