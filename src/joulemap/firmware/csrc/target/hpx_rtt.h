/* A ring in RAM with the public RTT layout, read by a debug probe. Copyright joulemap contributors, Apache-2.0. */
#ifndef HPX_RTT_H
#define HPX_RTT_H
#include <stdint.h>

#ifndef HPX_RTT_BYTES
#define HPX_RTT_BYTES 2048u
#endif

/* Makes a fresh, empty ring; whatever an earlier run left is gone. */
void hpx_rtt_init(void);
/* Writes all bytes, asleep while the ring is full. */
void hpx_rtt_write(const char *bytes, uint32_t size);
/* Writes all bytes in one step or none: a reader never sees a part. Returns 1 when written. */
uint32_t hpx_rtt_write_once(const char *bytes, uint32_t size);

#endif
