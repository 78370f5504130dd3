/* The C runtime's hooks on Zephyr: several threads share an accelerator, and sleep until its interrupt. */
#ifndef INTLOOM_ZEPHYR_H
#define INTLOOM_ZEPHYR_H

#include <zephyr/kernel.h>

#include "intloom_runtime.h"

/* One accelerator; it must not move while the transport is used. */
struct intloom_zephyr {
    mm_reg_t registers;
    struct intloom_device *device;
    struct k_mutex mutex;
    struct k_sem interrupted;
};

/* Fill in a transport. `registers` are mapped, for example by DEVICE_MMIO_MAP. Then call intloom_probe, and set
 * `use_interrupt` of the device. */
void intloom_zephyr_init(struct intloom_zephyr *os, mm_reg_t registers, struct intloom_device *device,
                         struct intloom_transport *transport);

/* The interrupt's handler, for IRQ_CONNECT; its argument is the structure. */
void intloom_zephyr_interrupt(const void *os);

#endif
