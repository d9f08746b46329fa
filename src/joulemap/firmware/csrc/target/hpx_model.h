/* What an engine must implement and the two images call. Copyright joulemap contributors, Apache-2.0. */
#ifndef HPX_MODEL_H
#define HPX_MODEL_H
#include <stdint.h>

typedef void (*hpx_layer_fn)(void);

extern const uint32_t hpx_layer_count;
/* One never-inlined function per layer, in execution order; their symbols are hpx_layer_000, hpx_layer_001, ... */
extern const hpx_layer_fn hpx_layers[];

/* 0 when the model is ready, else an error code that the terminal record carries. */
int hpx_model_init(void);
/* Copies the built-in input into the arena; needed before every inference, since the arena reuses its place. */
void hpx_model_load_input(void);
/* One clean inference: load the input, run every layer. */
void hpx_model_run(void);
/* CRC-32 (IEEE 802.3, reflected) over all output tensors, one after another. */
uint32_t hpx_model_output_crc32(void);

/* Given by the firmware to the model. */
uint32_t hpx_crc32_update(uint32_t crc, const void *bytes, uint32_t size); /* start with 0 */

#endif
