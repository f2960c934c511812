#include "data/build.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/random.h"
#include "data/encoder.h"
#include "data/holdout.h"
#include "data/output.h"
#include "data/split_writer.h"

enum { HOLDOUT_SEED = 20240520 }; /* any number, but always the same */

typedef struct Build {
    const Tokenizer *tokenizer;
    const BuildSettings *settings;
    const char *directory; /* the working one */
    Manifest manifest;
    SplitWriter *writers[2];
    Spool *spool; /* of the first document, while it is the only one */
    int64_t documents;
    Split split; /* of the document being written */
} Build;

static Split split_of(int64_t document, double fraction) {
    if (fraction <= 0) return SPLIT_TRAIN;
    if (document < 2) return document == 1 ? SPLIT_VALIDATION : SPLIT_TRAIN;
    uint64_t stream = random_stream(RANDOM_SHUFFLE, 0);
    return random_uniform(HOLDOUT_SEED, stream, (uint64_t)document) < (float)fraction
               ? SPLIT_VALIDATION
               : SPLIT_TRAIN;
}

static bool begin_in(Build *build, Split split, Error *error) {
    return split_writer_begin(build->writers[split], error) &&
           split_writer_write(build->writers[split], &build->manifest.separator, 1, error);
}

static bool empty_spool(Build *build, Error *error) {
    if (!build->spool) return true;
    bool done =
        spool_copy(build->spool, 0, spool_tokens(build->spool), build->writers[SPLIT_TRAIN], error);
    spool_free(build->spool);
    build->spool = NULL;
    return done;
}

static bool begin_document(Build *build, Error *error) {
    double fraction = build->settings->validation_fraction;
    if (build->documents == 0 && fraction > 0 &&
        !(build->spool = spool_open(build->directory, error)))
        return false;
    if (build->documents > 0 && !empty_spool(build, error)) return false;
    build->split = split_of(build->documents++, fraction);
    return begin_in(build, build->split, error);
}

static bool write_batch(Build *build, const EncodedBatch *batch, Error *error) {
    const uint32_t *tokens = batch->tokens;
    for (size_t i = 0; i < batch->count; i++) {
        const EncodedPiece *piece = &batch->pieces[i];
        if (piece->begins && !begin_document(build, error)) return false;
        bool done = build->spool ? spool_write(build->spool, tokens, piece->token_count, error)
                                 : split_writer_write(build->writers[build->split], tokens,
                                                      piece->token_count, error);
        if (!done) return false;
        build->manifest.splits[build->split].bytes += (int64_t)piece->text_size;
        tokens += piece->token_count;
    }
    return true;
}

/* The only document is cut in two; each part begins with a separator. */
static bool divide_document(Build *build, Error *error) {
    int64_t tokens = spool_tokens(build->spool), cut, bytes;
    if (tokens < 2) return empty_spool(build, error);
    ManifestSplit *splits = build->manifest.splits;
    bool done = spool_cut(build->spool, build->settings->validation_fraction, build->tokenizer,
                          &cut, &bytes, error) &&
                spool_copy(build->spool, 0, cut, build->writers[SPLIT_TRAIN], error) &&
                begin_in(build, SPLIT_VALIDATION, error) &&
                spool_copy(build->spool, cut, tokens, build->writers[SPLIT_VALIDATION], error);
    if (!done) return false;
    splits[SPLIT_VALIDATION].bytes = splits[SPLIT_TRAIN].bytes - bytes;
    splits[SPLIT_TRAIN].bytes = bytes;
    return true;
}

static bool write_documents(Build *build, Reader *reader, Encoder *encoder, Error *error) {
    Progress progress = progress_start("tokenizing", reader_total(reader));
    EncodedBatch batch;
    bool done;
    while ((done = encoder_next(encoder, &batch, error)) && batch.count) {
        if (!(done = write_batch(build, &batch, error))) break;
        progress_update(&progress, batch.consumed);
    }
    progress_end(&progress);
    if (done && !build->documents) done = fail(error, "there is no text in the inputs");
    return done && (!build->spool || divide_document(build, error));
}

static bool finish_split(Build *build, Split split, Error *error) {
    ManifestSplit *entry = &build->manifest.splits[split];
    int64_t bytes = entry->bytes;
    SplitWriter *writer = build->writers[split];
    build->writers[split] = NULL;
    if (!split_writer_finish(writer, entry, error)) return false;
    entry->bytes = bytes;
    return true;
}

static bool open_writers(Build *build, Error *error) {
    int token_bytes = build->manifest.vocab_size <= 65536 ? 2 : 4;
    for (int s = 0; s < 2; s++) {
        build->writers[s] = split_writer_open(build->directory, (Split)s, token_bytes,
                                              build->settings->shard_tokens, error);
        if (!build->writers[s]) return false;
    }
    return true;
}

/* Everything in the working directory. */
static bool build_files(Build *build, Reader *reader, Error *error) {
    if (!open_writers(build, error)) return false;
    Encoder *encoder = encoder_open(reader, build->tokenizer, build->settings->threads, error);
    /* The tokenizer is saved while the first batches are read and encoded. */
    bool done = encoder && tokenizer_save(build->tokenizer, build->directory, error) &&
                write_documents(build, reader, encoder, error);
    encoder_free(encoder);
    return done && finish_split(build, SPLIT_TRAIN, error) &&
           finish_split(build, SPLIT_VALIDATION, error) &&
           manifest_write(&build->manifest, build->directory, error);
}

static bool describe_tokenizer(Build *build, Error *error) {
    int64_t separator = tokenizer_document_separator(build->tokenizer);
    if (separator < 0)
        return fail(
            error,
            "the tokenizer has no token to stand between documents (<|bos|>, "
            "<|endoftext|>, <|begin_of_text|> or <s>); train one with 'hearth tokenizer train'");
    build->manifest.separator = (uint32_t)separator;
    build->manifest.vocab_size = tokenizer_vocab_size(build->tokenizer);
    tokenizer_hash(build->tokenizer, build->manifest.tokenizer_hash);
    return true;
}

static void summarize(const Build *build, double started, BuildSummary *summary) {
    for (int s = 0; s < 2; s++) {
        summary->documents[s] = build->manifest.splits[s].documents;
        summary->tokens[s] = build->manifest.splits[s].tokens;
        summary->bytes[s] = build->manifest.splits[s].bytes;
    }
    summary->seconds = seconds_now() - started;
}

bool dataset_build(const Tokenizer *tokenizer, const char *const *inputs, int count,
                   const BuildSettings *settings, BuildSummary *summary, Error *error) {
    double started = seconds_now();
    Build build = {.tokenizer = tokenizer, .settings = settings};
    Output output = {.lock = -1};
    Reader *reader = reader_open(inputs, count, &settings->reader, error);
    bool done = reader && describe_tokenizer(&build, error) &&
                output_open(&output, settings->directory, settings->overwrite, error);
    if (done) {
        build.directory = output.working;
        done = build_files(&build, reader, error) && output_publish(&output, error);
    }
    if (done) summarize(&build, started, summary);
    for (int s = 0; s < 2; s++) split_writer_discard(build.writers[s]);
    spool_free(build.spool);
    manifest_free(&build.manifest);
    reader_free(reader);
    output_close(&output);
    return done;
}
