/* Checksum of streams and records. Copyright joulemap contributors, Apache-2.0. */
#ifndef HPX_CRC_H
#define HPX_CRC_H
#include <stdint.h>

/* Continues a CRC-32; start with 0. */
uint32_t hpx_crc32(uint32_t crc, const void *bytes, uint32_t size);

#endif
