/* Freestanding shim: the compiler's runtime has these four. Copyright joulemap contributors, Apache-2.0. */
#ifndef HPX_STRING_H
#define HPX_STRING_H
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *a, const void *b, size_t size);

#endif
