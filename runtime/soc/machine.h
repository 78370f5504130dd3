/* The simulated system on a chip: memory map, console, access to the accelerator. */
#ifndef MACHINE_H
#define MACHINE_H

#include "intloom_runtime.h"

extern struct intloom_device device;
extern volatile uint32_t interrupts; /* Counted by the trap handler. */

/* Whether the CPU met a bus error since the last call; VexRiscv has no exception for it. */
int machine_bus_error(void);

/* Access to the accelerator. The data cache writes through, so `flush` only orders; `invalidate` empties the whole cache. */
extern const struct intloom_transport machine_transport;

void machine_enable_interrupts(void);

/* Print a result of the runtime, or the cause of a stop, and count it as a failure if another one is expected; whether
 * it is. */
extern unsigned machine_failures;
int machine_expect(const char *what, int result, int expected);
int machine_expect_cause(struct intloom_device *stopped, enum intloom_cause expected);

/* Print whether anything failed, and end the simulation. */
void machine_finish(void);

#define REGISTERS_ADDRESS 0xf0001000u
#define NOTHING_ADDRESS 0xe0000000u /* No device answers here. */

#endif
