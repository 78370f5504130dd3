/* The simulated system on a chip: memory map, console, access to the accelerator. */
#ifndef MACHINE_H
#define MACHINE_H

#include "intloom_runtime.h"

extern volatile uint32_t interrupts; /* Of the accelerator; counted by the trap handler. */

/* Whether the CPU met a bus error since the last call; VexRiscv has no exception for it. */
int machine_bus_error(void);

/* Access to the accelerator. The data cache writes through into the system's cache, which writes back and sees nothing of
 * the accelerator: `flush` cleans lines there, `invalidate` discards them in both. */
extern const struct intloom_transport machine_transport;

/* Take the accelerator's interrupts for this device from now on. */
void machine_enable_interrupts(struct intloom_device *device);

/* GCC 12 needs the extension's name for CSR instructions; in -march it would select no library. */
#define CSR(text) ".option push\n.option arch, +zicsr\n" text "\n.option pop"
#define READ_CSR(name, value) __asm__ volatile(CSR("csrr %0, " name) : "=r"(value))
#define WRITE_CSR(name, value) __asm__ volatile(CSR("csrw " name ", %0") : : "r"(value) : "memory")
#define IRQ_MASK "0xbc0"    /* VexRiscv's own registers of its interrupt array. */
#define IRQ_PENDING "0xfc0"
#define EXTERNAL_INTERRUPT 0x8000000bu
#define EXTERNAL_INTERRUPT_ENABLE (1u << 11)
#define TIMER_INTERRUPT 0x80000007u
#define TIMER_INTERRUPT_ENABLE (1u << 7)
#define INTERRUPTS_ENABLE (1u << 3)

/* Keep interrupts off, for a few instructions; returns what `machine_restore` needs. */
uint32_t machine_mask(void);
void machine_restore(uint32_t mask);

/* Flip bits of a byte in memory, behind the cache. */
void machine_flip(uint8_t *byte, uint8_t bits);

/* Print an exception and end. */
void machine_exception(uint32_t cause);

/* Print a result of the runtime, or the cause of a stop, and count it as a failure if another one is expected; whether
 * it is. */
extern unsigned machine_failures;
int machine_expect(const char *what, int result, int expected);
int machine_expect_cause(struct intloom_device *stopped, enum intloom_cause expected);

/* Print whether anything failed, and end the simulation. */
void machine_finish(void);

#define REGISTERS_ADDRESS 0xf0001000u
#define SECOND_REGISTERS_ADDRESS 0xf0011000u /* In a system with two accelerators. */
#define TIMER (*(volatile uint32_t *)0xf0004000u) /* Reads count cycles; a write sets the time of the next interrupt. */
#define NOTHING_ADDRESS 0xe0000000u /* No device answers here. */

#endif
