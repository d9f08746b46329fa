/* CRC-32 (IEEE 802.3, reflected), by nibbles: 64 bytes of table. Copyright joulemap contributors, Apache-2.0. */
#include "hpx_crc.h"

#include "hpx_model.h"
#include "hpx_port.h"
#include "hpx_wire.h"

static const uint32_t nibble_table[16] = {
    0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
    0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
};

uint32_t hpx_crc32(uint32_t crc, const void *bytes, uint32_t size)
{
    const uint8_t *byte = bytes;
    crc = ~crc;
    while (size-- != 0u) {
        crc ^= *byte++;
        crc = (crc >> 4) ^ nibble_table[crc & 15u];
        crc = (crc >> 4) ^ nibble_table[crc & 15u];
    }
    return ~crc;
}

uint32_t hpx_crc32_update(uint32_t crc, const void *bytes, uint32_t size)
{
    if (hpx_fault(HPX_FAULT_OUTPUT_WRONG) && size != 0u) {
        *(volatile uint8_t *)(uintptr_t)bytes ^= 1u; /* outputs lie in RAM: this one really becomes wrong */
    }
    return hpx_crc32(crc, bytes, size);
}
