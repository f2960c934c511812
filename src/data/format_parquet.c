/* Parquet: each string of a column is a document; a null is none. */
#include <stdlib.h>

#include "data/format.h"
#include "data/parquet_queue.h"
#include "data/parquet_values.h"

typedef struct ParquetState {
    ParquetFile file;
    ParquetQueue *queue;
    ParquetPage *page, *dictionary_page; /* in use */
    ParquetDictionary dictionary;
    ParquetValues values;
    ParquetText text; /* of the document that is handed out */
    size_t given;     /* of it, in pieces so far */
    int64_t rows;     /* handed out */
    bool ended;
} ParquetState;

static void close_parquet(void *argument) {
    ParquetState *state = argument;
    if (state->queue) {
        parquet_queue_release(state->queue, state->page);
        parquet_queue_release(state->queue, state->dictionary_page);
    }
    parquet_queue_free(state->queue);
    parquet_dictionary_free(&state->dictionary);
    parquet_values_free(&state->values);
    parquet_close(&state->file);
    free(state);
}

static void *open_parquet(const char *path, const ReaderSettings *settings, Error *error) {
    ParquetState *state = allocate(1, sizeof *state, error);
    if (!state) return NULL;
    if (parquet_open(&state->file, path, settings->field ? settings->field : "text", error) &&
        (state->queue = parquet_queue_open(&state->file, error)))
        return state;
    close_parquet(state);
    return NULL;
}

static void drop_dictionary(ParquetState *state) {
    state->dictionary.count = 0;
    parquet_queue_release(state->queue, state->dictionary_page);
    state->dictionary_page = NULL;
}

static bool use_page(ParquetState *state, ParquetPage *page, Error *error) {
    const ParquetColumn *column = &state->file.column;
    const ParquetPage *old = state->dictionary_page;
    if (old && (page->header.dictionary || old->row_group != page->row_group))
        drop_dictionary(state);
    if (page->header.dictionary) {
        state->dictionary_page = page;
        return parquet_dictionary_set(&state->dictionary, page, column, error);
    }
    state->page = page;
    return parquet_values_begin(&state->values, page, column, &state->dictionary, error);
}

static bool next_page(ParquetState *state, Error *error) {
    ParquetPage *page;
    parquet_queue_release(state->queue, state->page);
    state->page = NULL;
    if (!parquet_queue_next(state->queue, &page, error)) return false;
    state->ended = !page;
    return !page || use_page(state, page, error) ||
           parquet_fail_within(&state->file, page->row_group, error);
}

static bool next_value(ParquetState *state, Error *error) {
    int32_t before = state->values.left;
    if (!parquet_values_next(&state->values, &state->text, error))
        return parquet_fail_within(&state->file, state->page->row_group, error);
    state->rows += before - state->values.left;
    return true;
}

static bool next_text(ParquetState *state, Error *error) {
    state->given = state->text.size = 0;
    while (!state->ended && !state->values.left)
        if (!next_page(state, error)) return false;
    return state->ended || next_value(state, error);
}

static ReadResult next_parquet(void *argument, Piece *piece, Error *error) {
    ParquetState *state = argument;
    bool begins = state->given == state->text.size;
    if (begins && !next_text(state, error)) return READ_FAILED;
    if (state->ended) return READ_END;
    *piece = (Piece){.begins = begins};
    if (!state->text.size) return READ_PIECE; /* null or empty */
    piece->text = state->text.data + state->given;
    piece->size = piece_size(piece->text, state->text.size - state->given);
    state->given += piece->size;
    return READ_PIECE;
}

/* The file is read here and there, so this is the share of its rows. */
static uint64_t consumed_parquet(const void *argument) {
    const ParquetState *state = argument;
    if (state->ended) return (uint64_t)state->file.size;
    return (uint64_t)((double)state->file.size * (double)state->rows /
                      ((double)state->file.rows + 1));
}

const Format format_parquet = {open_parquet, close_parquet, next_parquet, consumed_parquet};
