/* `KEY=value` lines as text. Copyright joulemap contributors, Apache-2.0. */
#include "hpx_line.h"

#include "hpx_wire.h"

void hpx_text_word(struct hpx_text *text, const char *word)
{
    while (*word != '\0' && text->size < text->capacity) {
        text->bytes[text->size++] = *word++;
    }
}

void hpx_text_number(struct hpx_text *text, uint64_t value)
{
    char digits[21];
    uint32_t first = sizeof digits - 1u;
    digits[first] = '\0';
    do {
        digits[--first] = (char)('0' + (char)(value % 10u));
        value /= 10u;
    } while (value != 0u);
    hpx_text_word(text, digits + first);
}

void hpx_text_start(struct hpx_text *text, const char *marker, uint32_t version)
{
    hpx_text_word(text, marker);
    hpx_text_word(text, " " HPX_VERSION_FIELD "=");
    hpx_text_number(text, version);
    hpx_text_word(text, "\n");
}

void hpx_text_line(struct hpx_text *text, const char *key, uint32_t i, uint32_t j, uint64_t value)
{
    hpx_text_word(text, key);
    if (i != HPX_NO_INDEX) {
        hpx_text_word(text, ".");
        hpx_text_number(text, i);
    }
    if (j != HPX_NO_INDEX) {
        hpx_text_word(text, ".");
        hpx_text_number(text, j);
    }
    hpx_text_word(text, "=");
    hpx_text_number(text, value);
    hpx_text_word(text, "\n");
}
