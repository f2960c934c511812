/* The class of each Unicode character, as far as the named split patterns tell them apart. */
#ifndef HEARTH_TEXT_UNICODE_H
#define HEARTH_TEXT_UNICODE_H

#include <stdint.h>

typedef enum CharacterClass {
    CLASS_OTHER,  /* symbols, controls, what is not assigned */
    CLASS_UPPER,  /* Lu, Lt */
    CLASS_LOWER,  /* Ll */
    CLASS_LETTER, /* Lm, Lo: letters without case */
    CLASS_MARK,
    CLASS_NUMBER,
    CLASS_SPACE, /* White_Space */
} CharacterClass;

enum { UNICODE_POINTS = 0x110000 };

/* By code point; filled by unicode_load(). Pages without an assigned character are never touched. */
extern uint8_t unicode_classes[UNICODE_POINTS];

/* May be called any number of times, from any thread. */
void unicode_load(void);

/* Runs of one class from U+0000 on, as length << 3 | class; 0 ends them. */
extern const uint32_t unicode_runs[];

#endif
