/* Text to tokens on all cores: one thread reads, several encode, and batches come out in the order in
 * which they were read, whatever the number of threads. */
#ifndef HEARTH_DATA_ENCODER_H
#define HEARTH_DATA_ENCODER_H

#include "data/reader.h"
#include "text/tokenizer.h"

typedef struct EncodedPiece {
    size_t text_size, token_count;
    bool begins; /* a document */
} EncodedPiece;

typedef struct EncodedBatch {
    const EncodedPiece *pieces;
    size_t count;           /* of pieces; 0 = the end */
    const uint32_t *tokens; /* of all pieces, one after the other */
    uint64_t consumed;      /* reader_consumed() when it was read */
} EncodedBatch;

typedef struct Encoder Encoder;

/* The reader and the tokenizer must outlive it; the reader is the encoder's until it is freed. */
Encoder *encoder_open(Reader *reader, const Tokenizer *tokenizer, int threads, Error *error);
/* The next batch, valid until the following call. */
bool encoder_next(Encoder *encoder, EncodedBatch *batch, Error *error);
void encoder_free(Encoder *encoder);

#endif
