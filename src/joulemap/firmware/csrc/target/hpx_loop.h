/* The clean inference loop that both images run. Copyright joulemap contributors, Apache-2.0.
 *
 * The very same code times the clean passes of the profile image and fills GATE in the power image, so that the clean
 * latency is the period of the power image to the cycle, loop included. */
#ifndef HPX_LOOP_H
#define HPX_LOOP_H
#include <stdint.h>

enum { HPX_LOOP_KEPT = 8u }; /* a power of two */

struct hpx_loop {
    uint32_t completed;                   /* inferences since hpx_loop_start */
    uint64_t elapsed_cycles;              /* of all of them */
    uint32_t pass_cycles[HPX_LOOP_KEPT];  /* of the latest ones, inference i at i modulo HPX_LOOP_KEPT */
};
extern struct hpx_loop hpx_loop;

/* Forgets all earlier inferences. */
void hpx_loop_start(void);
/* Runs count inferences; 0 or the code of the one that failed. */
uint32_t hpx_loop_run(uint32_t count);

#endif
