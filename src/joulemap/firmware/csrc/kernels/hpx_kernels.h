/* All kernels of the engine `aot`. Freestanding: nothing but stdint and stddef. Copyright joulemap contributors,
 * Apache-2.0.
 */
#ifndef HPX_KERNELS_H
#define HPX_KERNELS_H
#include "hpx_activation.h"
#include "hpx_conv.h"
#include "hpx_elementwise.h"
#include "hpx_pool.h"
#endif
