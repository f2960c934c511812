#include "data/encoder.h"

#include <pthread.h>
#include <stdlib.h>

enum { BATCH_BYTES = 1 << 20, BATCH_PIECES = 1 << 14 };

/* Slots beside those being encoded: one is being read, one written, and enough are empty to go on with
 * while the consumer waits for a full shard to reach the disk. */
enum { SLOTS_AHEAD = 16 };

/* A batch on its way: filled by the reader, encoded by a worker, taken by the consumer. */
typedef struct Slot {
    Bytes text;
    EncodedPiece *pieces;
    size_t count, capacity;
    Tokens tokens;
    uint64_t consumed;
    bool encoded;
} Slot;

struct Encoder {
    Reader *reader;
    const Tokenizer *tokenizer;
    Slot *slots;
    int64_t slot_count;
    pthread_t *threads; /* [0] reads, the others encode */
    int started;
    pthread_mutex_t lock; /* guards what follows, and every slot's `encoded` */
    pthread_cond_t changed;
    int64_t read, claimed, taken, released; /* batches so far; batch i is in slot i % slot_count */
    bool ended, stopping, failed;
    Error error;
};

static Slot *slot_of(Encoder *encoder, int64_t batch) {
    return &encoder->slots[batch % encoder->slot_count];
}

/* With the lock held. The first failure is kept. */
static void give_up(Encoder *encoder, const Error *error) {
    if (!encoder->failed) encoder->error = *error;
    encoder->failed = encoder->stopping = true;
}

static bool add_piece(Slot *slot, const Piece *piece, Error *error) {
    if (!reserve(&slot->pieces, &slot->capacity, slot->count + 1, sizeof *slot->pieces, error) ||
        !bytes_append(&slot->text, piece->text, piece->size, error))
        return false;
    slot->pieces[slot->count++] = (EncodedPiece){.text_size = piece->size, .begins = piece->begins};
    return true;
}

/* Fills a slot; *more is false when the reader has come to its end. */
static bool read_batch(Encoder *encoder, Slot *slot, bool *more, Error *error) {
    slot->text.size = slot->count = slot->tokens.count = 0;
    *more = true;
    while (slot->text.size < BATCH_BYTES && slot->count < BATCH_PIECES) {
        Piece piece;
        ReadResult result = reader_next(encoder->reader, &piece, error);
        if (result == READ_FAILED) return false;
        *more = result != READ_END;
        if (!*more) break;
        if (!add_piece(slot, &piece, error)) return false;
    }
    slot->consumed = reader_consumed(encoder->reader);
    return true;
}

static void *read_batches(void *argument) {
    Encoder *encoder = argument;
    pthread_mutex_lock(&encoder->lock);
    while (!encoder->stopping && !encoder->ended) {
        if (encoder->read - encoder->released == encoder->slot_count) {
            pthread_cond_wait(&encoder->changed, &encoder->lock);
            continue;
        }
        Slot *slot = slot_of(encoder, encoder->read);
        pthread_mutex_unlock(&encoder->lock);
        Error error;
        bool more = true, done = read_batch(encoder, slot, &more, &error);
        pthread_mutex_lock(&encoder->lock);
        if (!done)
            give_up(encoder, &error);
        else if (slot->count)
            encoder->read++;
        encoder->ended = !more;
        pthread_cond_broadcast(&encoder->changed);
    }
    pthread_mutex_unlock(&encoder->lock);
    return NULL;
}

static bool encode_batch(const Encoder *encoder, Slot *slot, Error *error) {
    const uint8_t *text = slot->text.data;
    for (size_t i = 0; i < slot->count; i++) {
        EncodedPiece *piece = &slot->pieces[i];
        size_t before = slot->tokens.count;
        if (!tokenizer_encode(encoder->tokenizer, text, piece->text_size, false, &slot->tokens,
                              error))
            return false;
        piece->token_count = slot->tokens.count - before;
        text += piece->text_size;
    }
    return true;
}

static void *encode_batches(void *argument) {
    Encoder *encoder = argument;
    pthread_mutex_lock(&encoder->lock);
    while (!encoder->stopping) {
        if (encoder->claimed == encoder->read) {
            if (encoder->ended) break;
            pthread_cond_wait(&encoder->changed, &encoder->lock);
            continue;
        }
        Slot *slot = slot_of(encoder, encoder->claimed++);
        pthread_mutex_unlock(&encoder->lock);
        Error error;
        bool done = encode_batch(encoder, slot, &error);
        pthread_mutex_lock(&encoder->lock);
        slot->encoded = done;
        if (!done) give_up(encoder, &error);
        pthread_cond_broadcast(&encoder->changed);
    }
    pthread_mutex_unlock(&encoder->lock);
    return NULL;
}

bool encoder_next(Encoder *encoder, EncodedBatch *batch, Error *error) {
    pthread_mutex_lock(&encoder->lock);
    for (; encoder->released < encoder->taken; encoder->released++)
        slot_of(encoder, encoder->released)->encoded = false;
    pthread_cond_broadcast(&encoder->changed);
    Slot *slot = slot_of(encoder, encoder->taken);
    while (!encoder->failed && !slot->encoded &&
           !(encoder->ended && encoder->taken == encoder->read))
        pthread_cond_wait(&encoder->changed, &encoder->lock);
    bool done = !encoder->failed;
    *batch = (EncodedBatch){0};
    if (!done) {
        *error = encoder->error;
    } else if (slot->encoded) {
        encoder->taken++;
        *batch = (EncodedBatch){slot->pieces, slot->count, slot->tokens.ids, slot->consumed};
    }
    pthread_mutex_unlock(&encoder->lock);
    return done;
}

static bool start_threads(Encoder *encoder, int workers, Error *error) {
    for (int i = 0; i < workers + 1; i++) {
        void *(*work)(void *) = i ? encode_batches : read_batches;
        if (pthread_create(&encoder->threads[i], NULL, work, encoder) != 0)
            return fail(error, "cannot start thread %d of %d; use --threads with fewer", i + 1,
                        workers + 1);
        encoder->started++;
    }
    return true;
}

Encoder *encoder_open(Reader *reader, const Tokenizer *tokenizer, int threads, Error *error) {
    Encoder *encoder = allocate(1, sizeof *encoder, error);
    if (!encoder) return NULL;
    encoder->reader = reader;
    encoder->tokenizer = tokenizer;
    encoder->slot_count = threads + SLOTS_AHEAD;
    pthread_mutex_init(&encoder->lock, NULL);
    pthread_cond_init(&encoder->changed, NULL);
    encoder->slots = allocate((size_t)encoder->slot_count, sizeof *encoder->slots, error);
    if (encoder->slots &&
        (encoder->threads = allocate((size_t)threads + 1, sizeof *encoder->threads, error)) &&
        start_threads(encoder, threads, error))
        return encoder;
    encoder_free(encoder);
    return NULL;
}

void encoder_free(Encoder *encoder) {
    if (!encoder) return;
    pthread_mutex_lock(&encoder->lock);
    encoder->stopping = true;
    pthread_cond_broadcast(&encoder->changed);
    pthread_mutex_unlock(&encoder->lock);
    for (int i = 0; i < encoder->started; i++) pthread_join(encoder->threads[i], NULL);
    for (int64_t i = 0; encoder->slots && i < encoder->slot_count; i++) {
        bytes_free(&encoder->slots[i].text);
        tokens_free(&encoder->slots[i].tokens);
        free(encoder->slots[i].pieces);
    }
    pthread_mutex_destroy(&encoder->lock);
    pthread_cond_destroy(&encoder->changed);
    free(encoder->slots);
    free(encoder->threads);
    free(encoder);
}
