/* `KEY=value` lines as text. Copyright joulemap contributors, Apache-2.0. */
#ifndef HPX_LINE_H
#define HPX_LINE_H
#include <stdint.h>

enum { HPX_LINE_MAX = 64u, HPX_NO_INDEX = 0xFFFFFFFFu };

/* A text that grows inside a buffer and never beyond it. */
struct hpx_text {
    char *bytes;
    uint32_t capacity;
    uint32_t size;
};

void hpx_text_word(struct hpx_text *text, const char *word);
void hpx_text_number(struct hpx_text *text, uint64_t value);
void hpx_text_start(struct hpx_text *text, const char *marker, uint32_t version);
/* KEY=value, KEY.i=value or KEY.i.j=value; HPX_NO_INDEX leaves an index out. */
void hpx_text_line(struct hpx_text *text, const char *key, uint32_t i, uint32_t j, uint64_t value);

#endif
