/* `data build`: text in, a dataset directory out. */
#ifndef HEARTH_DATA_BUILD_H
#define HEARTH_DATA_BUILD_H

#include "data/reader.h"
#include "text/tokenizer.h"

typedef struct BuildSettings {
    const char *directory;
    bool overwrite; /* replace a dataset that is there */
    ReaderSettings reader;
    double validation_fraction; /* of the documents, 0 <= fraction < 1 */
    int64_t shard_tokens;
    int threads; /* that encode */
} BuildSettings;

typedef struct BuildSummary {
    int64_t documents[2], tokens[2], bytes[2]; /* by Split */
    double seconds;
} BuildSummary;

/* The directory appears whole or not at all: it is made under the name DIRECTORY.building, which a
 * later build clears away if this one is killed. Which documents are held out depends on nothing but
 * their number in reading order; a fraction above 0 holds out the second document in any case. When
 * there is only one document, its last part is held out, from the beginning of a line. */
bool dataset_build(const Tokenizer *tokenizer, const char *const *inputs, int count,
                   const BuildSettings *settings, BuildSummary *summary, Error *error);

#endif
