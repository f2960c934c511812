#include "numeric/state.h"

#include <pthread.h>

static StateCode code_unsigned = {.bias = -1, .halved = 0};
static StateCode code_signed = {.bias = 127, .halved = 1};
static pthread_once_t codes_ready = PTHREAD_ONCE_INIT;

static int parts_of(const StateCode *code, int decade) {
    return 1 << decade >> code->halved;
}

static float value_of(const StateCode *code, int decade, int part) {
    float fraction = part > 0 ? (float)part / (float)parts_of(code, decade) : 0;
    return (1 + fraction + code->offset[decade]) * code->size[decade];
}

/* Midway between the last value of a decade and the first of the next. */
static float border_above(const StateCode *code, int decade) {
    double below = (double)value_of(code, decade, (int)code->last[decade]);
    double above = (double)value_of(code, decade + 1, 0);
    return (float)(0.5 * (below + above));
}

static void fill_borders(StateCode *code) {
    int decade = 0;
    float least = STATE_LEAST; /* of the index */
    for (int index = 0; index < 16; index++, least *= 4) {
        while (decade < 7 && border_above(code, decade) < least) decade++;
        code->decade[index] = (float)decade;
        code->border[index] = border_above(code, decade);
    }
}

static void fill_code(StateCode *code) {
    double divisor = 1e6;
    for (int decade = 1; decade <= 7; decade++, divisor /= 10) {
        int parts = parts_of(code, decade);
        code->start[decade] = (float)(0.1 / divisor);
        code->scale[decade] = (float)(parts * divisor / 0.9);
        code->last[decade] = (float)(parts - 1);
        code->offset[decade] = (float)(0.1 / 0.9 + 0.5 / parts - 1);
        code->size[decade] = (float)(0.9 / divisor);
    }
    code->size[8] = 1;
    fill_borders(code);
}

static void fill_codes(void) {
    fill_code(&code_unsigned);
    fill_code(&code_signed);
}

const StateCode *state_code(bool is_signed) {
    pthread_once(&codes_ready, fill_codes);
    return is_signed ? &code_signed : &code_unsigned;
}

uint8_t state_encode(float x, bool is_signed) {
    return state_code_encode(state_code(is_signed), x);
}

float state_decode(uint8_t encoded, bool is_signed) {
    return state_code_decode(state_code(is_signed), encoded);
}
