/* Documents of text into batches of overlapping rows. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "eval/measure.h"

typedef struct Windows {
    Measure measure;
    int64_t B, T;
    int32_t *tokens, *targets, *starts; /* [B,T] */
    int64_t row, column;                /* where the next token goes; column T: into the next row */
    int64_t start;                      /* column where its document begins */
} Windows;

static bool windows_start(Windows *windows, const Inference *inference, Error *error) {
    int64_t B = inference->program->B, T = inference->program->T;
    size_t count = (size_t)(B * T);
    *windows = (Windows){.B = B, .T = T};
    bool done = measure_start(&windows->measure, inference, error) &&
                (windows->tokens = allocate(count, sizeof(int32_t), error)) &&
                (windows->targets = allocate(count, sizeof(int32_t), error)) &&
                (windows->starts = allocate(count, sizeof(int32_t), error));
    if (done) memset(windows->targets, -1, count * sizeof(int32_t));
    return done;
}

static void windows_free(Windows *windows) {
    measure_free(&windows->measure);
    free(windows->tokens);
    free(windows->targets);
    free(windows->starts);
}

/* Measures the rows so far; what is behind the last token has no targets, so it does not count. */
static bool run_rows(Windows *windows, Error *error) {
    if (!measure_batch(&windows->measure, windows->tokens, windows->targets, windows->starts,
                       windows->B, error))
        return false;
    memset(windows->targets, -1, (size_t)(windows->B * windows->T) * sizeof(int32_t));
    windows->row = windows->column = 0;
    return true;
}

/* After a full row: the next begins with the last tokens of a document that goes on. */
static bool next_row(Windows *windows, bool goes_on, Error *error) {
    int64_t T = windows->T, begin = T - T / 2;
    if (begin < windows->start) begin = windows->start;
    int64_t repeated = goes_on ? T - begin : 0;
    const int32_t *last = windows->tokens + windows->row * T + T - repeated;
    if (windows->row + 1 < windows->B)
        windows->row++;
    else if (!run_rows(windows, error))
        return false;
    memmove(windows->tokens + windows->row * T, last, (size_t)repeated * sizeof *last);
    memset(windows->starts + windows->row * T, 0, (size_t)repeated * sizeof *last);
    windows->start = 0;
    windows->column = repeated;
    return true;
}

static bool add_token(Windows *windows, uint32_t id, bool begins, Error *error) {
    int64_t T = windows->T;
    if (!begins) windows->targets[windows->row * T + windows->column - 1] = (int32_t)id;
    if (windows->column == T && !next_row(windows, !begins, error)) return false;
    if (begins) windows->start = windows->column;
    int64_t at = windows->row * T + windows->column++;
    windows->tokens[at] = (int32_t)id;
    windows->starts[at] = (int32_t)windows->start;
    return true;
}

static bool add_piece(Windows *windows, const Piece *piece, Tokens *tokens, Error *error) {
    const Tokenizer *tokenizer = windows->measure.inference->tokenizer;
    int64_t separator = tokenizer_document_separator(tokenizer);
    bool begins = piece->begins;
    tokens->count = 0;
    if (!tokenizer_encode(tokenizer, piece->text, piece->size, false, tokens, error)) return false;
    if (begins && separator >= 0) {
        if (!add_token(windows, (uint32_t)separator, true, error)) return false;
        begins = false;
    }
    for (size_t i = 0; i < tokens->count; i++, begins = false)
        if (!add_token(windows, tokens->ids[i], begins, error)) return false;
    return true;
}

static bool read_all(Windows *windows, Reader *reader, Error *error) {
    Progress progress = progress_start("evaluating", reader_total(reader));
    Tokens tokens = {0};
    Piece piece;
    ReadResult result;
    bool done = true;
    while (done && (result = reader_next(reader, &piece, error)) != READ_END) {
        done = result == READ_PIECE && add_piece(windows, &piece, &tokens, error);
        progress_update(&progress, reader_consumed(reader));
    }
    progress_end(&progress);
    tokens_free(&tokens);
    return done && run_rows(windows, error);
}

bool evaluate_text(const Inference *inference, Reader *reader, Evaluation *result, Error *error) {
    if (!inference->tokenizer)
        return fail(error, "the checkpoint has no tokenizer.json, so text cannot be evaluated: "
                           "copy the model's there, or evaluate a dataset with --data");
    Windows windows;
    bool done = windows_start(&windows, inference, error) && read_all(&windows, reader, error) &&
                measure_result(&windows.measure, "the text", result, error);
    windows_free(&windows);
    return done;
}
