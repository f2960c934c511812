/* hearth tokenizer eval */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "cmd/options.h"
#include "cmd/tokenizer.h"
#include "data/reader.h"
#include "text/tokenizer.h"

static const Command eval_command = {
    .name = "tokenizer eval",
    .summary = "How many bytes a token stands for: the higher, the shorter the sequences.",
    .usage = "hearth tokenizer eval --tokenizer FILE [--compare FILE] FILES...",
    .details = "FILE is a directory or a tokenizer.json, GPT-2's vocab.json or encoder.json, or a\n"
               "tiktoken rank file.\n\n"
               "Example:\n"
               "  hearth tokenizer eval --tokenizer tokenizer --compare cl100k_base.tiktoken a.txt",
};

enum { COMPARED = 2 };

typedef struct Tally {
    int64_t bytes, tokens[COMPARED];
} Tally;

static bool tally_piece(Tokenizer *const *tokenizers, const Piece *piece, Tokens *scratch,
                        Tally *tally, Error *error) {
    tally->bytes += (int64_t)piece->size;
    for (int i = 0; i < COMPARED; i++) {
        if (!tokenizers[i]) continue;
        scratch->count = 0;
        if (!tokenizer_encode(tokenizers[i], piece->text, piece->size, false, scratch, error))
            return false;
        tally->tokens[i] += (int64_t)scratch->count;
    }
    return true;
}

static bool tally_input(Tokenizer *const *tokenizers, const char *input, Tally *tally,
                        Error *error) {
    ReaderSettings settings = {0};
    Reader *reader = reader_open(&input, 1, &settings, error);
    if (!reader) return false;
    Progress progress = progress_start("tokenizing", reader_total(reader));
    Tokens scratch = {0};
    Piece piece;
    ReadResult result;
    bool done = true;
    while (done && (result = reader_next(reader, &piece, error)) == READ_PIECE) {
        done = tally_piece(tokenizers, &piece, &scratch, tally, error);
        progress_update(&progress, reader_consumed(reader));
    }
    progress_end(&progress);
    tokens_free(&scratch);
    reader_free(reader);
    return done && result == READ_END;
}

static json_t *tally_json(const char *file, const Tally *tally, bool compared) {
    json_t *row = json_object();
    const char *const tokens[] = {"tokens", "compare_tokens"};
    const char *const rates[] = {"bytes_per_token", "compare_bytes_per_token"};
    if (file) json_object_set_new(row, "file", json_string(file));
    json_object_set_new(row, "bytes", json_integer(tally->bytes));
    for (int i = 0; i < 1 + compared; i++) {
        json_object_set_new(row, tokens[i], json_integer(tally->tokens[i]));
        json_object_set_new(row, rates[i],
                            json_real((double)tally->bytes / (double)tally->tokens[i]));
    }
    return row;
}

static void print_tally(const char *file, const Tally *tally, bool compared) {
    printf("%14lld", (long long)tally->bytes);
    for (int i = 0; i < 1 + compared; i++)
        printf(" %14lld %12.3f", (long long)tally->tokens[i],
               (double)tally->bytes / (double)tally->tokens[i]);
    printf("  %s\n", file);
}

static bool tally_all(Tokenizer *const *tokenizers, char **inputs, int count, Error *error) {
    Tally total = {0};
    bool compared = tokenizers[1] != NULL, done = true;
    json_t *rows = json_array();
    if (!options_json())
        printf("%14s %14s %12s%s\n", "bytes", "tokens", "bytes/token",
               compared ? "        tokens  bytes/token  (--compare)" : "");
    for (int i = 0; done && i < count; i++) {
        Tally tally = {0};
        done = tally_input(tokenizers, inputs[i], &tally, error);
        if (!done) break;
        if (options_json())
            json_array_append_new(rows, tally_json(inputs[i], &tally, compared));
        else
            print_tally(inputs[i], &tally, compared);
        total.bytes += tally.bytes;
        for (int j = 0; j < COMPARED; j++) total.tokens[j] += tally.tokens[j];
    }
    if (done && !options_json() && count > 1) print_tally("total", &total, compared);
    if (done && options_json()) {
        json_t *root = tally_json(NULL, &total, compared);
        json_object_set(root, "files", rows);
        json_dumpf(root, stdout, 0);
        putchar('\n');
        json_decref(root);
    }
    json_decref(rows);
    return done;
}

int tokenizer_eval(int argc, char **argv) {
    const char *paths[COMPARED] = {0};
    Option options[] = {
        {.name = "tokenizer",
         .kind = OPTION_TEXT,
         .value = &paths[0],
         .argument = "FILE",
         .help = "the tokenizer"},
        {.name = "compare",
         .kind = OPTION_TEXT,
         .value = &paths[1],
         .argument = "FILE",
         .help = "another one to set beside it"},
        {0},
    };
    Error error;
    int count;
    ParseResult parsed = options_parse(&eval_command, options, argc, argv, &count);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (!paths[0] || !count) {
        fail(&error, paths[0] ? "name the files to encode" : "--tokenizer FILE is needed");
        return command_misused(&eval_command, &error);
    }
    Tokenizer *tokenizers[COMPARED] = {0};
    bool done = true;
    for (int i = 0; done && i < COMPARED && paths[i]; i++)
        done = (tokenizers[i] = tokenizer_open(paths[i], &error)) != NULL;
    done = done && tally_all(tokenizers, argv, count, &error);
    for (int i = 0; i < COMPARED; i++) tokenizer_free(tokenizers[i]);
    return done ? EXIT_SUCCESS : command_failed(&error);
}
