/* A ring in RAM with the public RTT layout. Copyright joulemap contributors, Apache-2.0.
 *
 * References: SEGGER, "J-Link / J-Trace User Guide" UM08001, chapter RTT (control block and buffer descriptors). */
#include "hpx_rtt.h"

#include "hpx_port.h"

struct rtt_ring {
    const char *name;
    char *buffer;
    uint32_t size;
    volatile uint32_t write_at;
    volatile uint32_t read_at;
    uint32_t flags;
};

struct rtt_block {
    char id[16];
    int32_t up_count;
    int32_t down_count;
    struct rtt_ring up[1];
    struct rtt_ring down[1];
};

/* The host finds it by this symbol; volatile because a probe reads and writes it behind the compiler's back. */
volatile struct rtt_block hpx_rtt_block;
static char up_bytes[HPX_RTT_BYTES];
static char down_bytes[16];

void hpx_rtt_init(void)
{
    /* Stored backwards, so that a search for the id never finds this constant in flash. */
    static const char id_reversed[16] = {0, 0, 0, 0, 0, 0, 'T', 'T', 'R', ' ', 'R', 'E', 'G', 'G', 'E', 'S'};
    volatile struct rtt_ring *up = &hpx_rtt_block.up[0];
    volatile struct rtt_ring *down = &hpx_rtt_block.down[0];
    for (uint32_t k = 0u; k < 16u; k++) {
        hpx_rtt_block.id[k] = 0;
    }
    hpx_port_barrier();
    for (uint32_t k = 0u; k < sizeof up_bytes; k++) {
        ((volatile char *)up_bytes)[k] = 0;
    }
    hpx_rtt_block.up_count = 1;
    hpx_rtt_block.down_count = 1;
    up->name = "hpx";
    up->buffer = up_bytes;
    up->size = sizeof up_bytes;
    up->write_at = 0u;
    up->read_at = 0u;
    up->flags = 2u; /* block when full */
    down->name = "hpx";
    down->buffer = down_bytes;
    down->size = sizeof down_bytes;
    down->write_at = 0u;
    down->read_at = 0u;
    down->flags = 0u;
    hpx_port_barrier();
    for (uint32_t k = 0u; k < 16u; k++) {
        hpx_rtt_block.id[k] = id_reversed[15u - k]; /* last: the block is complete before it can be found */
    }
    hpx_port_barrier();
}

static uint32_t free_bytes(void)
{
    const uint32_t write_at = hpx_rtt_block.up[0].write_at;
    const uint32_t read_at = hpx_rtt_block.up[0].read_at;
    return (read_at > write_at ? read_at : read_at + HPX_RTT_BYTES) - write_at - 1u;
}

uint32_t hpx_rtt_write_once(const char *bytes, uint32_t size)
{
    uint32_t at = hpx_rtt_block.up[0].write_at;
    if (size > free_bytes()) {
        return 0u;
    }
    for (uint32_t k = 0u; k < size; k++) {
        ((volatile char *)up_bytes)[at] = bytes[k];
        at = at + 1u == HPX_RTT_BYTES ? 0u : at + 1u;
    }
    hpx_port_barrier(); /* the bytes before the offset that shows them */
    hpx_rtt_block.up[0].write_at = at;
    hpx_port_barrier();
    return 1u;
}

void hpx_rtt_write(const char *bytes, uint32_t size)
{
    while (!hpx_rtt_write_once(bytes, size)) {
        hpx_port_wake_after_us(1000u); /* the host drains it; look again later */
        hpx_port_wait();
    }
}
