/* What the lanes of a warp do with each other's registers. */
#ifndef TEST_CUDA_HOST_WARP_H
#define TEST_CUDA_HOST_WARP_H

#include "runtime.h"

namespace host {

template <class T> struct Shuffle {
    T value, result;
    unsigned source; /* lane */
    Site site;
};

template <class T> void combine_shuffle(void **lanes) {
    for (unsigned i = 0; i < warp_size; i++) {
        if (!lanes[i]) continue;
        Shuffle<T> *to = static_cast<Shuffle<T> *>(lanes[i]);
        const Shuffle<T> *from = static_cast<const Shuffle<T> *>(lanes[to->source]);
        if (!from) kernel_fault("a shuffle reads a lane that is not in the mask", to->site);
        to->result = from->value;
    }
}

template <class T> T shuffle(unsigned mask, T value, unsigned source, Site site) {
    Shuffle<T> argument = {value, value, source, site};
    warp_collective(mask, combine_shuffle<T>, &argument, site);
    return argument.result;
}

/* The lanes are divided into segments of `width`; a lane whose source is outside its own keeps its value. */
inline unsigned segment_begin(unsigned width) {
    return lane() & ~(width - 1);
}

template <class T> T shuffle_index(unsigned mask, T value, unsigned i, unsigned width, Site site) {
    return shuffle(mask, value, segment_begin(width) + (i & (width - 1)), site);
}

template <class T> T shuffle_xor(unsigned mask, T value, unsigned bits, unsigned width, Site site) {
    unsigned source = lane() ^ bits;
    bool outside = source >= segment_begin(width) + width;
    return shuffle(mask, value, outside ? lane() : source, site);
}

template <class T> T shuffle_down(unsigned mask, T value, unsigned by, unsigned width, Site site) {
    unsigned source = lane() + by;
    bool outside = source >= segment_begin(width) + width;
    return shuffle(mask, value, outside ? lane() : source, site);
}

template <class T> T shuffle_up(unsigned mask, T value, unsigned by, unsigned width, Site site) {
    bool outside = lane() < segment_begin(width) + by;
    return shuffle(mask, value, outside ? lane() : lane() - by, site);
}

struct Add {
    template <class T> static T combine(T a, T b) {
        return a + b;
    }
};

struct Minimum {
    template <class T> static T combine(T a, T b) {
        return b < a ? b : a;
    }
};

struct Maximum {
    template <class T> static T combine(T a, T b) {
        return a < b ? b : a;
    }
};

struct And {
    template <class T> static T combine(T a, T b) {
        return a & b;
    }
};

struct Or {
    template <class T> static T combine(T a, T b) {
        return a | b;
    }
};

template <class T, class Operator> void combine_reduction(void **lanes) {
    T *total = nullptr;
    for (unsigned i = 0; i < warp_size; i++) {
        T *value = static_cast<T *>(lanes[i]);
        if (value && total) *total = Operator::combine(*total, *value);
        if (value && !total) total = value;
    }
    for (unsigned i = 0; i < warp_size; i++)
        if (lanes[i]) *static_cast<T *>(lanes[i]) = *total;
}

template <class Operator, class T> T reduce(unsigned mask, T value, Site site) {
    warp_collective(mask, combine_reduction<T, Operator>, &value, site);
    return value;
}

inline unsigned ballot(unsigned mask, bool vote, Site site) {
    return reduce<Or>(mask, vote ? 1u << lane() : 0, site);
}

} // namespace host

#endif
