/* Learning merges from counted words: the heart of training. */
#ifndef HEARTH_TEXT_LEARN_H
#define HEARTH_TEXT_LEARN_H

#include "text/merges.h"
#include "text/trainer.h"
#include "text/word_counts.h"

/* Learns up to `count` merges; the one at i makes token 256 + i. Returns how many were possible, or
 * SIZE_MAX with an error. Takes the memory of `words`. */
size_t learn_merges(WordCounts *words, Merge *merges, size_t count, TrainerProgress *progress,
                    void *context, Error *error);

#endif
