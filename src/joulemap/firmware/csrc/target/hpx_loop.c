/* The clean inference loop that both images run. Copyright joulemap contributors, Apache-2.0. */
#include "hpx_loop.h"

#include "hpx_model.h"
#include "hpx_port.h"

struct hpx_loop hpx_loop;

void hpx_loop_start(void)
{
    hpx_loop.completed = 0u;
    hpx_loop.elapsed_cycles = 0u;
}

/* The counter is read once per inference, so that a gate longer than its range still adds up. */
__attribute__((noinline)) uint32_t hpx_loop_run(uint32_t count)
{
    uint32_t last = hpx_mmio_cyccnt();
    for (uint32_t i = 0u; i < count; i++) {
        const uint32_t code = hpx_fault_before_inference(i);
        uint32_t now;
        if (code != 0u) {
            return code;
        }
        hpx_model_run();
        now = hpx_mmio_cyccnt();
        hpx_loop.pass_cycles[i % HPX_LOOP_KEPT] = now - last;
        hpx_loop.elapsed_cycles += now - last;
        hpx_loop.completed = i + 1u;
        last = now;
    }
    return 0u;
}
