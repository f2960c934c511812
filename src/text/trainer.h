/* The trainer: makes a byte-level BPE tokenizer from text.
 *
 * Text comes in as texts (documents) of any size, each in any number of chunks. How a text is
 * chunked, the order of texts and the number of threads do not change the result. Memory is bounded
 * by the distinct pieces of the text, not by its size. */
#ifndef HEARTH_TEXT_TRAINER_H
#define HEARTH_TEXT_TRAINER_H

#include "text/tokenizer.h"

/* More distinct pieces than this are an error: training on them would need some 16 GiB of memory.
 */
enum { TRAINER_WORDS_MOST = 1 << 26 };

typedef struct Trainer Trainer;

/* `pattern`: gpt2, gpt4, cl100k, nanochat, o200k or a regular expression. */
Trainer *trainer_open(const char *pattern, Error *error);
void trainer_free(Trainer *trainer);

/* How much is learned from, in characters (code points), counted by the bytes that begin one; INT64_MAX = all.
 * With a limit on the total the order of texts matters. */
typedef struct TrainerLimits {
    int64_t text;  /* of each text, from its beginning */
    int64_t total; /* the text that goes beyond it is the last, and is not cropped for it */
} TrainerLimits;

/* The usual limits of a pattern: nanochat's, otherwise none. */
TrainerLimits trainer_default_limits(const char *pattern);

/* Before any text is added; without it there are none. */
void trainer_limit(Trainer *trainer, TrainerLimits limits);

/* Goes on with the current text; what is beyond its limit is left out. */
bool trainer_add(Trainer *trainer, const void *text, size_t size, Error *error);
/* Ends it: the last piece of one text and the first of the next are never joined. */
bool trainer_end_text(Trainer *trainer, Error *error);

/* Whether nothing more is wanted: the texts that are over went beyond the total. */
bool trainer_is_full(const Trainer *trainer);

/* Whether a text went beyond its limit. */
bool trainer_is_cropped(const Trainer *trainer);

/* Bytes of text so far, without what was left out. */
int64_t trainer_bytes(const Trainer *trainer);

/* Called now and then with the merges found so far. */
typedef void TrainerProgress(void *context, uint32_t done, uint32_t total);

/* Learns the merges and returns the tokenizer: ids 0-255 are the bytes, then come the merges, then
 * the special tokens, `vocab_size` in all. The most frequent pair is merged first; of equally
 * frequent ones that with the smallest (left id, right id). A text too small for so many merges is
 * an error that says how many were possible. `progress` may be NULL. */
Tokenizer *trainer_finish(Trainer *trainer, uint32_t vocab_size, const char *const *specials,
                          size_t special_count, TrainerProgress *progress, void *context,
                          Error *error);

/* The usual special tokens of a pattern: nanochat's nine, otherwise <|endoftext|>. */
size_t trainer_default_specials(const char *pattern, const char *const **specials);

#endif
