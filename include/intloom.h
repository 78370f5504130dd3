/* Generated from hw/spec by `make generated`: do not edit.
 *
 * For every instruction there are a struct of its fields, `intloom_<name>_defaults`, `intloom_<name>_encode` and
 * `intloom_<name>_decode`. Encoders and decoders return 0, or the number, counted from 1, of the first field that is
 * out of range (-1: another opcode, or bits set above the last field). On an error they write nothing.
 * C99 or later; also C++11 or later.
 */
#ifndef INTLOOM_H
#define INTLOOM_H

#include <stdint.h>
#include <string.h>

#define INTLOOM_MAGIC 0x4d4f4f4cu
#define INTLOOM_REGISTER_VERSION 1u
#define INTLOOM_ISA_VERSION 1u
#define INTLOOM_INSTRUCTION_BYTES 64u
#define INTLOOM_FINGERPRINT_NANO 0x32a08262u
#define INTLOOM_FINGERPRINT_SMALL 0x4b0873d0u
#define INTLOOM_FINGERPRINT_BASE 0x515e4280u
#define INTLOOM_FINGERPRINT_LARGE 0x5cbcf927u

/* Parameters of hardware 'base'; portable software reads the CAP registers instead. */
#define INTLOOM_PARAM_ROWS 16u
#define INTLOOM_PARAM_COLS 16u
#define INTLOOM_PARAM_LANES 8u
#define INTLOOM_PARAM_STRIP 64u
#define INTLOOM_PARAM_SCRATCH_KIB 128u
#define INTLOOM_PARAM_SCRATCH_BANKS 4u
#define INTLOOM_PARAM_WEIGHT_KIB 128u
#define INTLOOM_PARAM_AXI_DATA_BITS 128u
#define INTLOOM_PARAM_AXI_ADDR_BITS 40u
#define INTLOOM_PARAM_AXI_BURST 64u
#define INTLOOM_PARAM_AXI_OUTSTANDING 16u
#define INTLOOM_PARAM_MANTISSA_BITS 24u
#define INTLOOM_PARAM_ACC_BITS 32u
#define INTLOOM_PARAM_MATCH 0u
#define INTLOOM_PARAM_QUEUE_DEPTH 8u
#define INTLOOM_PARAM_VECTOR_MULTIPLY 1u
#define INTLOOM_PARAM_VECTOR_AVERAGE 1u
#define INTLOOM_PARAM_VECTOR_LANES 8u
#define INTLOOM_PARAM_LUT_PRODUCTS 208u
#define INTLOOM_PARAM_TRACE 1u
#define INTLOOM_PARAM_FINGERPRINT 0x515e4280u

enum intloom_opcode {
    INTLOOM_OPCODE_BEGIN = 1,
    INTLOOM_OPCODE_END = 2,
    INTLOOM_OPCODE_LOAD = 16,
    INTLOOM_OPCODE_STORE = 32,
    INTLOOM_OPCODE_CONV = 48,
    INTLOOM_OPCODE_VTABLE = 64,
    INTLOOM_OPCODE_VCOPY = 65,
    INTLOOM_OPCODE_VADD = 66,
    INTLOOM_OPCODE_VMUL = 67,
    INTLOOM_OPCODE_VMAX = 68,
    INTLOOM_OPCODE_VAVG = 69,
};

enum intloom_unit {
    INTLOOM_UNIT_LOAD = 0,
    INTLOOM_UNIT_MAC = 1,
    INTLOOM_UNIT_VEC = 2,
    INTLOOM_UNIT_STORE = 3,
    INTLOOM_UNIT_CONTROL = 4,
};

enum intloom_target {
    INTLOOM_TARGET_SCRATCH = 0,
    INTLOOM_TARGET_WEIGHT = 1,
};

enum intloom_cause {
    INTLOOM_CAUSE_NONE = 0,
    INTLOOM_CAUSE_BAD_OPCODE = 1,
    INTLOOM_CAUSE_BAD_FIELD = 2,
    INTLOOM_CAUSE_WRONG_PROGRAM = 3,
    INTLOOM_CAUSE_SCRATCH_RANGE = 4,
    INTLOOM_CAUSE_READ_SLVERR = 5,
    INTLOOM_CAUSE_READ_DECERR = 6,
    INTLOOM_CAUSE_WRITE_SLVERR = 7,
    INTLOOM_CAUSE_WRITE_DECERR = 8,
    INTLOOM_CAUSE_WATCHDOG = 9,
    INTLOOM_CAUSE_NO_END = 10,
    INTLOOM_CAUSE_FETCH_ERROR = 11,
};

enum intloom_stall {
    INTLOOM_STALL_NO_INSTRUCTION = 0,
    INTLOOM_STALL_WAIT = 1,
    INTLOOM_STALL_MEMORY = 2,
    INTLOOM_STALL_WEIGHTS = 3,
    INTLOOM_STALL_DRAIN = 4,
};

enum intloom_table_use {
    INTLOOM_TABLE_NONE = 0,
    INTLOOM_TABLE_KEEP = 1,
    INTLOOM_TABLE_LOAD = 2,
};

/* Registers: byte offsets from the AXI4-Lite base. */
#define INTLOOM_REG_MAGIC 0x000u /* ro: Always `LOOM`. */
#define INTLOOM_REG_VERSION 0x004u /* ro: Register map version (low half) and instruction set version (high half). */
#define INTLOOM_REG_FINGERPRINT 0x008u /* ro: Fingerprint of the hardware parameters. */
#define INTLOOM_REG_CONTROL 0x010u /* wo: Commands. */
#define INTLOOM_REG_CONTROL_START_LSB 0u
#define INTLOOM_REG_CONTROL_START_MASK 0x00000001u /* Run the program; ignored while busy or in error. */
#define INTLOOM_REG_CONTROL_RESET_LSB 1u
#define INTLOOM_REG_CONTROL_RESET_MASK 0x00000002u /* Soft reset: complete outstanding bus transfers, then clear all state but the registers below. */
#define INTLOOM_REG_STATUS 0x014u /* ro: Status. */
#define INTLOOM_REG_STATUS_BUSY_LSB 0u
#define INTLOOM_REG_STATUS_BUSY_MASK 0x00000001u /* A program or a soft reset is in progress. */
#define INTLOOM_REG_STATUS_DONE_LSB 1u
#define INTLOOM_REG_STATUS_DONE_MASK 0x00000002u /* The program has ended. */
#define INTLOOM_REG_STATUS_ERROR_LSB 2u
#define INTLOOM_REG_STATUS_ERROR_MASK 0x00000004u /* The accelerator has stopped with an error. */
#define INTLOOM_REG_STATUS_CAUSE_LSB 8u
#define INTLOOM_REG_STATUS_CAUSE_MASK 0x00000f00u /* Error cause; see below. */
#define INTLOOM_REG_STATUS_UNIT_LSB 12u
#define INTLOOM_REG_STATUS_UNIT_MASK 0x00007000u /* The unit that reported the error. */
#define INTLOOM_REG_ERROR_INDEX 0x018u /* ro: Index of the instruction that caused the error, from 0. */
#define INTLOOM_REG_IRQ_ENABLE 0x01cu /* rw: Flags that raise the interrupt. */
#define INTLOOM_REG_IRQ_ENABLE_DONE_LSB 0u
#define INTLOOM_REG_IRQ_ENABLE_DONE_MASK 0x00000001u /* The program has ended. */
#define INTLOOM_REG_IRQ_ENABLE_ERROR_LSB 1u
#define INTLOOM_REG_IRQ_ENABLE_ERROR_MASK 0x00000002u /* The accelerator has stopped with an error. */
#define INTLOOM_REG_IRQ_STATUS 0x020u /* w1c: Flags set since they were last cleared. */
#define INTLOOM_REG_IRQ_STATUS_DONE_LSB 0u
#define INTLOOM_REG_IRQ_STATUS_DONE_MASK 0x00000001u /* The program has ended. */
#define INTLOOM_REG_IRQ_STATUS_ERROR_LSB 1u
#define INTLOOM_REG_IRQ_STATUS_ERROR_MASK 0x00000002u /* The accelerator has stopped with an error. */
#define INTLOOM_REG_PROGRAM 0x024u /* rw: First word of the program, relative to the memory base. */
#define INTLOOM_REG_LENGTH 0x028u /* rw: Number of instructions in the program. */
#define INTLOOM_REG_BASE_LOW 0x02cu /* rw: Memory base, lower half: a byte address. Bits below the word size are 0. */
#define INTLOOM_REG_BASE_HIGH 0x030u /* rw: Memory base, upper half. */
#define INTLOOM_REG_WATCHDOG 0x034u /* rw: Cycles without a finished instruction or bus beat after which the program stops with an error; 0: disabled. */
#define INTLOOM_REG_CAP_ROWS 0x080u /* ro: Parameter rows. Input-channel lanes of the MAC array, and bytes in a word of every memory. A power of two, 4 to 32. */
#define INTLOOM_REG_CAP_COLS 0x084u /* ro: Parameter cols. Output-channel lanes of the MAC array. A power of two, 4 to 32. */
#define INTLOOM_REG_CAP_LANES 0x088u /* ro: Parameter lanes. Parallel requantizer lanes; an output pixel is read out of the accumulators in cols/lanes cycles. Divides rows and cols. */
#define INTLOOM_REG_CAP_STRIP 0x08cu /* ro: Parameter strip. Accumulators in a bank: the longest strip of pixels that is multiplied by one weight tile. A power of two, 16 to 256. */
#define INTLOOM_REG_CAP_SCRATCH_KIB 0x090u /* ro: Parameter scratch_kib. Scratchpad for activations, KiB. A power of two, 4 to 1024. */
#define INTLOOM_REG_CAP_SCRATCH_BANKS 0x094u /* ro: Parameter scratch_banks. Scratchpad banks, interleaved by word. A power of two, 2 to 16. */
#define INTLOOM_REG_CAP_WEIGHT_KIB 0x098u /* ro: Parameter weight_kib. Weight memory, KiB: a circular buffer. A power of two, 2 to 1024. */
#define INTLOOM_REG_CAP_AXI_DATA_BITS 0x09cu /* ro: Parameter axi_data_bits. AXI4 data width; must equal 8*rows: one beat is one word. */
#define INTLOOM_REG_CAP_AXI_ADDR_BITS 0x0a0u /* ro: Parameter axi_addr_bits. AXI4 address width, 32 to 64. */
#define INTLOOM_REG_CAP_AXI_BURST 0x0a4u /* ro: Parameter axi_burst. Longest AXI burst in beats. A power of two, 4 to 256, and at most 4 KiB. */
#define INTLOOM_REG_CAP_AXI_OUTSTANDING 0x0a8u /* ro: Parameter axi_outstanding. Outstanding AXI bursts in each direction. A power of two, 1 to 32. */
#define INTLOOM_REG_CAP_MANTISSA_BITS 0x0acu /* ro: Parameter mantissa_bits. Significant bits of a requantization scale, 8 to 24; 24 represents an fp32 scale exactly. */
#define INTLOOM_REG_CAP_ACC_BITS 0x0b0u /* ro: Parameter acc_bits. Width of an accumulator, 20 to 32. */
#define INTLOOM_REG_CAP_MATCH 0x0b4u /* ro: Parameter match. Rounding mode of the requantizers: ort (as fp32 arithmetic) or exact (one rounding). */
#define INTLOOM_REG_CAP_QUEUE_DEPTH 0x0b8u /* ro: Parameter queue_depth. Depth of each unit's instruction queue. A power of two, 2 to 64. */
#define INTLOOM_REG_CAP_VECTOR_MULTIPLY 0x0bcu /* ro: Parameter vector_multiply. The vector unit can multiply tensors (VMUL). */
#define INTLOOM_REG_CAP_VECTOR_AVERAGE 0x0c0u /* ro: Parameter vector_average. The vector unit can average windows (VAVG). */
#define INTLOOM_REG_CAP_VECTOR_LANES 0x0c4u /* ro: Parameter vector_lanes. Bytes that the vector unit processes per cycle; a word takes rows/vector_lanes cycles. Divides rows; 0 means rows. */
#define INTLOOM_REG_CAP_LUT_PRODUCTS 0x0c8u /* ro: Parameter lut_products. Array multipliers built from LUTs instead of DSP blocks in FPGA synthesis, 0 to rows*cols. */
#define INTLOOM_REG_CAP_TRACE 0x0ccu /* ro: Parameter trace. The accelerator has a trace port that reports the start and end of every instruction. */
#define INTLOOM_REG_CYCLES 0x100u /* ro: Cycles from start to done or error. */
#define INTLOOM_REG_READ_BEATS 0x104u /* ro: AXI read beats, including instruction fetch. */
#define INTLOOM_REG_WRITE_BEATS 0x108u /* ro: AXI write beats. */
#define INTLOOM_REG_LOAD_BUSY 0x10cu /* ro: Cycles in which the LOAD unit processed a word. */
#define INTLOOM_REG_LOAD_STALL_NO_INSTRUCTION 0x110u /* ro: Cycles in which the LOAD unit stalled: NO_INSTRUCTION. */
#define INTLOOM_REG_LOAD_STALL_WAIT 0x114u /* ro: Cycles in which the LOAD unit stalled: WAIT. */
#define INTLOOM_REG_LOAD_STALL_MEMORY 0x118u /* ro: Cycles in which the LOAD unit stalled: MEMORY. */
#define INTLOOM_REG_LOAD_STALL_WEIGHTS 0x11cu /* ro: Cycles in which the LOAD unit stalled: WEIGHTS. */
#define INTLOOM_REG_LOAD_STALL_DRAIN 0x120u /* ro: Cycles in which the LOAD unit stalled: DRAIN. */
#define INTLOOM_REG_LOAD_DONE 0x124u /* ro: Instructions that the LOAD unit has finished; waits refer to it. */
#define INTLOOM_REG_MAC_BUSY 0x128u /* ro: Cycles in which the MAC unit processed a word. */
#define INTLOOM_REG_MAC_STALL_NO_INSTRUCTION 0x12cu /* ro: Cycles in which the MAC unit stalled: NO_INSTRUCTION. */
#define INTLOOM_REG_MAC_STALL_WAIT 0x130u /* ro: Cycles in which the MAC unit stalled: WAIT. */
#define INTLOOM_REG_MAC_STALL_MEMORY 0x134u /* ro: Cycles in which the MAC unit stalled: MEMORY. */
#define INTLOOM_REG_MAC_STALL_WEIGHTS 0x138u /* ro: Cycles in which the MAC unit stalled: WEIGHTS. */
#define INTLOOM_REG_MAC_STALL_DRAIN 0x13cu /* ro: Cycles in which the MAC unit stalled: DRAIN. */
#define INTLOOM_REG_MAC_DONE 0x140u /* ro: Instructions that the MAC unit has finished; waits refer to it. */
#define INTLOOM_REG_VEC_BUSY 0x144u /* ro: Cycles in which the VEC unit processed a word. */
#define INTLOOM_REG_VEC_STALL_NO_INSTRUCTION 0x148u /* ro: Cycles in which the VEC unit stalled: NO_INSTRUCTION. */
#define INTLOOM_REG_VEC_STALL_WAIT 0x14cu /* ro: Cycles in which the VEC unit stalled: WAIT. */
#define INTLOOM_REG_VEC_STALL_MEMORY 0x150u /* ro: Cycles in which the VEC unit stalled: MEMORY. */
#define INTLOOM_REG_VEC_STALL_WEIGHTS 0x154u /* ro: Cycles in which the VEC unit stalled: WEIGHTS. */
#define INTLOOM_REG_VEC_STALL_DRAIN 0x158u /* ro: Cycles in which the VEC unit stalled: DRAIN. */
#define INTLOOM_REG_VEC_DONE 0x15cu /* ro: Instructions that the VEC unit has finished; waits refer to it. */
#define INTLOOM_REG_STORE_BUSY 0x160u /* ro: Cycles in which the STORE unit processed a word. */
#define INTLOOM_REG_STORE_STALL_NO_INSTRUCTION 0x164u /* ro: Cycles in which the STORE unit stalled: NO_INSTRUCTION. */
#define INTLOOM_REG_STORE_STALL_WAIT 0x168u /* ro: Cycles in which the STORE unit stalled: WAIT. */
#define INTLOOM_REG_STORE_STALL_MEMORY 0x16cu /* ro: Cycles in which the STORE unit stalled: MEMORY. */
#define INTLOOM_REG_STORE_STALL_WEIGHTS 0x170u /* ro: Cycles in which the STORE unit stalled: WEIGHTS. */
#define INTLOOM_REG_STORE_STALL_DRAIN 0x174u /* ro: Cycles in which the STORE unit stalled: DRAIN. */
#define INTLOOM_REG_STORE_DONE 0x178u /* ro: Instructions that the STORE unit has finished; waits refer to it. */

static inline void intloom_put(uint8_t *bytes, unsigned lsb, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++) {
        unsigned bit = lsb + i;
        uint8_t mask = (uint8_t)(1u << (bit & 7u));
        bytes[bit >> 3] = (uint8_t)((value >> i & 1u) ? bytes[bit >> 3] | mask : bytes[bit >> 3] & (uint8_t)~mask);
    }
}

static inline uint64_t intloom_get(const uint8_t *bytes, unsigned lsb, unsigned width)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++) {
        unsigned bit = lsb + i;
        value |= (uint64_t)(bytes[bit >> 3] >> (bit & 7u) & 1u) << i;
    }
    return value;
}

static inline int64_t intloom_get_signed(const uint8_t *bytes, unsigned lsb, unsigned width)
{
    uint64_t sign = (uint64_t)1 << (width - 1u);
    return (int64_t)(intloom_get(bytes, lsb, width) ^ sign) - (int64_t)sign;
}

/* First instruction of every program. Another version or fingerprint stops the accelerator with cause WRONG_PROGRAM. */
struct intloom_begin {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t version; /* Instruction set version. 0 to 65535 */
    uint32_t fingerprint; /* Fingerprint of the hardware parameters that the program was compiled for. 0 to 4294967295 */
};

#define INTLOOM_BEGIN_OPCODE_LSB 0u
#define INTLOOM_BEGIN_OPCODE_WIDTH 8u
#define INTLOOM_BEGIN_WAIT_LOAD_LSB 8u
#define INTLOOM_BEGIN_WAIT_LOAD_WIDTH 20u
#define INTLOOM_BEGIN_WAIT_MAC_LSB 28u
#define INTLOOM_BEGIN_WAIT_MAC_WIDTH 20u
#define INTLOOM_BEGIN_WAIT_VEC_LSB 48u
#define INTLOOM_BEGIN_WAIT_VEC_WIDTH 20u
#define INTLOOM_BEGIN_WAIT_STORE_LSB 68u
#define INTLOOM_BEGIN_WAIT_STORE_WIDTH 20u
#define INTLOOM_BEGIN_VERSION_LSB 88u
#define INTLOOM_BEGIN_VERSION_WIDTH 16u
#define INTLOOM_BEGIN_FINGERPRINT_LSB 104u
#define INTLOOM_BEGIN_FINGERPRINT_WIDTH 32u

static inline void intloom_begin_defaults(struct intloom_begin *fields)
{
    memset(fields, 0, sizeof *fields);
}

static inline int intloom_begin_encode(const struct intloom_begin *fields, uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->version > 65535u)
        return 5;
    memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES);
    intloom_put(bytes, INTLOOM_BEGIN_OPCODE_LSB, INTLOOM_BEGIN_OPCODE_WIDTH, INTLOOM_OPCODE_BEGIN);
    intloom_put(bytes, INTLOOM_BEGIN_WAIT_LOAD_LSB, INTLOOM_BEGIN_WAIT_LOAD_WIDTH, (uint64_t)fields->wait_load);
    intloom_put(bytes, INTLOOM_BEGIN_WAIT_MAC_LSB, INTLOOM_BEGIN_WAIT_MAC_WIDTH, (uint64_t)fields->wait_mac);
    intloom_put(bytes, INTLOOM_BEGIN_WAIT_VEC_LSB, INTLOOM_BEGIN_WAIT_VEC_WIDTH, (uint64_t)fields->wait_vec);
    intloom_put(bytes, INTLOOM_BEGIN_WAIT_STORE_LSB, INTLOOM_BEGIN_WAIT_STORE_WIDTH, (uint64_t)fields->wait_store);
    intloom_put(bytes, INTLOOM_BEGIN_VERSION_LSB, INTLOOM_BEGIN_VERSION_WIDTH, (uint64_t)fields->version);
    intloom_put(bytes, INTLOOM_BEGIN_FINGERPRINT_LSB, INTLOOM_BEGIN_FINGERPRINT_WIDTH, (uint64_t)fields->fingerprint);
    return 0;
}

static inline int intloom_begin_decode(struct intloom_begin *out, const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    struct intloom_begin decoded, *fields = &decoded;
    if (bytes[0] != INTLOOM_OPCODE_BEGIN)
        return -1;
    for (unsigned bit = 136u; bit < 8u * INTLOOM_INSTRUCTION_BYTES; bit++)
        if (intloom_get(bytes, bit, 1u))
            return -1;
    fields->wait_load = (uint32_t)intloom_get(bytes, INTLOOM_BEGIN_WAIT_LOAD_LSB, INTLOOM_BEGIN_WAIT_LOAD_WIDTH);
    fields->wait_mac = (uint32_t)intloom_get(bytes, INTLOOM_BEGIN_WAIT_MAC_LSB, INTLOOM_BEGIN_WAIT_MAC_WIDTH);
    fields->wait_vec = (uint32_t)intloom_get(bytes, INTLOOM_BEGIN_WAIT_VEC_LSB, INTLOOM_BEGIN_WAIT_VEC_WIDTH);
    fields->wait_store = (uint32_t)intloom_get(bytes, INTLOOM_BEGIN_WAIT_STORE_LSB, INTLOOM_BEGIN_WAIT_STORE_WIDTH);
    fields->version = (uint32_t)intloom_get(bytes, INTLOOM_BEGIN_VERSION_LSB, INTLOOM_BEGIN_VERSION_WIDTH);
    fields->fingerprint = (uint32_t)intloom_get(bytes, INTLOOM_BEGIN_FINGERPRINT_LSB, INTLOOM_BEGIN_FINGERPRINT_WIDTH);
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->version > 65535u)
        return 5;
    *out = decoded;
    return 0;
}

/* Last instruction. The program is done when its waits are satisfied and all queues and units are empty. */
struct intloom_end {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
};

#define INTLOOM_END_OPCODE_LSB 0u
#define INTLOOM_END_OPCODE_WIDTH 8u
#define INTLOOM_END_WAIT_LOAD_LSB 8u
#define INTLOOM_END_WAIT_LOAD_WIDTH 20u
#define INTLOOM_END_WAIT_MAC_LSB 28u
#define INTLOOM_END_WAIT_MAC_WIDTH 20u
#define INTLOOM_END_WAIT_VEC_LSB 48u
#define INTLOOM_END_WAIT_VEC_WIDTH 20u
#define INTLOOM_END_WAIT_STORE_LSB 68u
#define INTLOOM_END_WAIT_STORE_WIDTH 20u

static inline void intloom_end_defaults(struct intloom_end *fields)
{
    memset(fields, 0, sizeof *fields);
}

static inline int intloom_end_encode(const struct intloom_end *fields, uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES);
    intloom_put(bytes, INTLOOM_END_OPCODE_LSB, INTLOOM_END_OPCODE_WIDTH, INTLOOM_OPCODE_END);
    intloom_put(bytes, INTLOOM_END_WAIT_LOAD_LSB, INTLOOM_END_WAIT_LOAD_WIDTH, (uint64_t)fields->wait_load);
    intloom_put(bytes, INTLOOM_END_WAIT_MAC_LSB, INTLOOM_END_WAIT_MAC_WIDTH, (uint64_t)fields->wait_mac);
    intloom_put(bytes, INTLOOM_END_WAIT_VEC_LSB, INTLOOM_END_WAIT_VEC_WIDTH, (uint64_t)fields->wait_vec);
    intloom_put(bytes, INTLOOM_END_WAIT_STORE_LSB, INTLOOM_END_WAIT_STORE_WIDTH, (uint64_t)fields->wait_store);
    return 0;
}

static inline int intloom_end_decode(struct intloom_end *out, const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    struct intloom_end decoded, *fields = &decoded;
    if (bytes[0] != INTLOOM_OPCODE_END)
        return -1;
    for (unsigned bit = 88u; bit < 8u * INTLOOM_INSTRUCTION_BYTES; bit++)
        if (intloom_get(bytes, bit, 1u))
            return -1;
    fields->wait_load = (uint32_t)intloom_get(bytes, INTLOOM_END_WAIT_LOAD_LSB, INTLOOM_END_WAIT_LOAD_WIDTH);
    fields->wait_mac = (uint32_t)intloom_get(bytes, INTLOOM_END_WAIT_MAC_LSB, INTLOOM_END_WAIT_MAC_WIDTH);
    fields->wait_vec = (uint32_t)intloom_get(bytes, INTLOOM_END_WAIT_VEC_LSB, INTLOOM_END_WAIT_VEC_WIDTH);
    fields->wait_store = (uint32_t)intloom_get(bytes, INTLOOM_END_WAIT_STORE_LSB, INTLOOM_END_WAIT_STORE_WIDTH);
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    *out = decoded;
    return 0;
}

/* Copy n2 planes of n1 runs of n0 words from memory. Weight memory addresses wrap at its end. */
struct intloom_load {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t target; /* 0: scratchpad, 1: weight memory. 0 to 1 */
    uint32_t dram; /* First word in memory, counted from the memory base register. 0 to 4294967295 [words] */
    uint32_t local; /* First word in the scratchpad or weight memory. 0 to 1048575 [words] */
    uint32_t n0; /* Words in a contiguous run. 1 to 1048575 [words] */
    uint32_t n1; /* Runs in a plane. 1 to 65535 */
    uint32_t n2; /* Planes. 1 to 65535 */
    uint32_t dram_s1; /* Step in memory from run to run. 0 to 4294967295 [words] */
    uint32_t dram_s2; /* Step in memory from plane to plane. 0 to 4294967295 [words] */
    uint32_t local_s1; /* Step in local memory from run to run. 0 to 1048575 [words] */
    uint32_t local_s2; /* Step in local memory from plane to plane. 0 to 1048575 [words] */
};

#define INTLOOM_LOAD_OPCODE_LSB 0u
#define INTLOOM_LOAD_OPCODE_WIDTH 8u
#define INTLOOM_LOAD_WAIT_LOAD_LSB 8u
#define INTLOOM_LOAD_WAIT_LOAD_WIDTH 20u
#define INTLOOM_LOAD_WAIT_MAC_LSB 28u
#define INTLOOM_LOAD_WAIT_MAC_WIDTH 20u
#define INTLOOM_LOAD_WAIT_VEC_LSB 48u
#define INTLOOM_LOAD_WAIT_VEC_WIDTH 20u
#define INTLOOM_LOAD_WAIT_STORE_LSB 68u
#define INTLOOM_LOAD_WAIT_STORE_WIDTH 20u
#define INTLOOM_LOAD_TARGET_LSB 88u
#define INTLOOM_LOAD_TARGET_WIDTH 1u
#define INTLOOM_LOAD_DRAM_LSB 89u
#define INTLOOM_LOAD_DRAM_WIDTH 32u
#define INTLOOM_LOAD_LOCAL_LSB 121u
#define INTLOOM_LOAD_LOCAL_WIDTH 20u
#define INTLOOM_LOAD_N0_LSB 141u
#define INTLOOM_LOAD_N0_WIDTH 20u
#define INTLOOM_LOAD_N1_LSB 161u
#define INTLOOM_LOAD_N1_WIDTH 16u
#define INTLOOM_LOAD_N2_LSB 177u
#define INTLOOM_LOAD_N2_WIDTH 16u
#define INTLOOM_LOAD_DRAM_S1_LSB 193u
#define INTLOOM_LOAD_DRAM_S1_WIDTH 32u
#define INTLOOM_LOAD_DRAM_S2_LSB 225u
#define INTLOOM_LOAD_DRAM_S2_WIDTH 32u
#define INTLOOM_LOAD_LOCAL_S1_LSB 257u
#define INTLOOM_LOAD_LOCAL_S1_WIDTH 20u
#define INTLOOM_LOAD_LOCAL_S2_LSB 277u
#define INTLOOM_LOAD_LOCAL_S2_WIDTH 20u

static inline void intloom_load_defaults(struct intloom_load *fields)
{
    memset(fields, 0, sizeof *fields);
    fields->n0 = 1u;
    fields->n1 = 1u;
    fields->n2 = 1u;
}

static inline int intloom_load_encode(const struct intloom_load *fields, uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->target > 1u)
        return 5;
    if (fields->local > 1048575u)
        return 7;
    if (fields->n0 < 1u || fields->n0 > 1048575u)
        return 8;
    if (fields->n1 < 1u || fields->n1 > 65535u)
        return 9;
    if (fields->n2 < 1u || fields->n2 > 65535u)
        return 10;
    if (fields->local_s1 > 1048575u)
        return 13;
    if (fields->local_s2 > 1048575u)
        return 14;
    memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES);
    intloom_put(bytes, INTLOOM_LOAD_OPCODE_LSB, INTLOOM_LOAD_OPCODE_WIDTH, INTLOOM_OPCODE_LOAD);
    intloom_put(bytes, INTLOOM_LOAD_WAIT_LOAD_LSB, INTLOOM_LOAD_WAIT_LOAD_WIDTH, (uint64_t)fields->wait_load);
    intloom_put(bytes, INTLOOM_LOAD_WAIT_MAC_LSB, INTLOOM_LOAD_WAIT_MAC_WIDTH, (uint64_t)fields->wait_mac);
    intloom_put(bytes, INTLOOM_LOAD_WAIT_VEC_LSB, INTLOOM_LOAD_WAIT_VEC_WIDTH, (uint64_t)fields->wait_vec);
    intloom_put(bytes, INTLOOM_LOAD_WAIT_STORE_LSB, INTLOOM_LOAD_WAIT_STORE_WIDTH, (uint64_t)fields->wait_store);
    intloom_put(bytes, INTLOOM_LOAD_TARGET_LSB, INTLOOM_LOAD_TARGET_WIDTH, (uint64_t)fields->target);
    intloom_put(bytes, INTLOOM_LOAD_DRAM_LSB, INTLOOM_LOAD_DRAM_WIDTH, (uint64_t)fields->dram);
    intloom_put(bytes, INTLOOM_LOAD_LOCAL_LSB, INTLOOM_LOAD_LOCAL_WIDTH, (uint64_t)fields->local);
    intloom_put(bytes, INTLOOM_LOAD_N0_LSB, INTLOOM_LOAD_N0_WIDTH, (uint64_t)fields->n0);
    intloom_put(bytes, INTLOOM_LOAD_N1_LSB, INTLOOM_LOAD_N1_WIDTH, (uint64_t)fields->n1);
    intloom_put(bytes, INTLOOM_LOAD_N2_LSB, INTLOOM_LOAD_N2_WIDTH, (uint64_t)fields->n2);
    intloom_put(bytes, INTLOOM_LOAD_DRAM_S1_LSB, INTLOOM_LOAD_DRAM_S1_WIDTH, (uint64_t)fields->dram_s1);
    intloom_put(bytes, INTLOOM_LOAD_DRAM_S2_LSB, INTLOOM_LOAD_DRAM_S2_WIDTH, (uint64_t)fields->dram_s2);
    intloom_put(bytes, INTLOOM_LOAD_LOCAL_S1_LSB, INTLOOM_LOAD_LOCAL_S1_WIDTH, (uint64_t)fields->local_s1);
    intloom_put(bytes, INTLOOM_LOAD_LOCAL_S2_LSB, INTLOOM_LOAD_LOCAL_S2_WIDTH, (uint64_t)fields->local_s2);
    return 0;
}

static inline int intloom_load_decode(struct intloom_load *out, const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    struct intloom_load decoded, *fields = &decoded;
    if (bytes[0] != INTLOOM_OPCODE_LOAD)
        return -1;
    for (unsigned bit = 297u; bit < 8u * INTLOOM_INSTRUCTION_BYTES; bit++)
        if (intloom_get(bytes, bit, 1u))
            return -1;
    fields->wait_load = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_WAIT_LOAD_LSB, INTLOOM_LOAD_WAIT_LOAD_WIDTH);
    fields->wait_mac = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_WAIT_MAC_LSB, INTLOOM_LOAD_WAIT_MAC_WIDTH);
    fields->wait_vec = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_WAIT_VEC_LSB, INTLOOM_LOAD_WAIT_VEC_WIDTH);
    fields->wait_store = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_WAIT_STORE_LSB, INTLOOM_LOAD_WAIT_STORE_WIDTH);
    fields->target = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_TARGET_LSB, INTLOOM_LOAD_TARGET_WIDTH);
    fields->dram = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_DRAM_LSB, INTLOOM_LOAD_DRAM_WIDTH);
    fields->local = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_LOCAL_LSB, INTLOOM_LOAD_LOCAL_WIDTH);
    fields->n0 = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_N0_LSB, INTLOOM_LOAD_N0_WIDTH);
    fields->n1 = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_N1_LSB, INTLOOM_LOAD_N1_WIDTH);
    fields->n2 = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_N2_LSB, INTLOOM_LOAD_N2_WIDTH);
    fields->dram_s1 = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_DRAM_S1_LSB, INTLOOM_LOAD_DRAM_S1_WIDTH);
    fields->dram_s2 = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_DRAM_S2_LSB, INTLOOM_LOAD_DRAM_S2_WIDTH);
    fields->local_s1 = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_LOCAL_S1_LSB, INTLOOM_LOAD_LOCAL_S1_WIDTH);
    fields->local_s2 = (uint32_t)intloom_get(bytes, INTLOOM_LOAD_LOCAL_S2_LSB, INTLOOM_LOAD_LOCAL_S2_WIDTH);
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->target > 1u)
        return 5;
    if (fields->local > 1048575u)
        return 7;
    if (fields->n0 < 1u || fields->n0 > 1048575u)
        return 8;
    if (fields->n1 < 1u || fields->n1 > 65535u)
        return 9;
    if (fields->n2 < 1u || fields->n2 > 65535u)
        return 10;
    if (fields->local_s1 > 1048575u)
        return 13;
    if (fields->local_s2 > 1048575u)
        return 14;
    *out = decoded;
    return 0;
}

/* Copy n2 planes of n1 runs of n0 words to memory. */
struct intloom_store {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t dram; /* First word in memory, counted from the memory base register. 0 to 4294967295 [words] */
    uint32_t local; /* First word in the scratchpad or weight memory. 0 to 1048575 [words] */
    uint32_t n0; /* Words in a contiguous run. 1 to 1048575 [words] */
    uint32_t n1; /* Runs in a plane. 1 to 65535 */
    uint32_t n2; /* Planes. 1 to 65535 */
    uint32_t dram_s1; /* Step in memory from run to run. 0 to 4294967295 [words] */
    uint32_t dram_s2; /* Step in memory from plane to plane. 0 to 4294967295 [words] */
    uint32_t local_s1; /* Step in local memory from run to run. 0 to 1048575 [words] */
    uint32_t local_s2; /* Step in local memory from plane to plane. 0 to 1048575 [words] */
};

#define INTLOOM_STORE_OPCODE_LSB 0u
#define INTLOOM_STORE_OPCODE_WIDTH 8u
#define INTLOOM_STORE_WAIT_LOAD_LSB 8u
#define INTLOOM_STORE_WAIT_LOAD_WIDTH 20u
#define INTLOOM_STORE_WAIT_MAC_LSB 28u
#define INTLOOM_STORE_WAIT_MAC_WIDTH 20u
#define INTLOOM_STORE_WAIT_VEC_LSB 48u
#define INTLOOM_STORE_WAIT_VEC_WIDTH 20u
#define INTLOOM_STORE_WAIT_STORE_LSB 68u
#define INTLOOM_STORE_WAIT_STORE_WIDTH 20u
#define INTLOOM_STORE_DRAM_LSB 88u
#define INTLOOM_STORE_DRAM_WIDTH 32u
#define INTLOOM_STORE_LOCAL_LSB 120u
#define INTLOOM_STORE_LOCAL_WIDTH 20u
#define INTLOOM_STORE_N0_LSB 140u
#define INTLOOM_STORE_N0_WIDTH 20u
#define INTLOOM_STORE_N1_LSB 160u
#define INTLOOM_STORE_N1_WIDTH 16u
#define INTLOOM_STORE_N2_LSB 176u
#define INTLOOM_STORE_N2_WIDTH 16u
#define INTLOOM_STORE_DRAM_S1_LSB 192u
#define INTLOOM_STORE_DRAM_S1_WIDTH 32u
#define INTLOOM_STORE_DRAM_S2_LSB 224u
#define INTLOOM_STORE_DRAM_S2_WIDTH 32u
#define INTLOOM_STORE_LOCAL_S1_LSB 256u
#define INTLOOM_STORE_LOCAL_S1_WIDTH 20u
#define INTLOOM_STORE_LOCAL_S2_LSB 276u
#define INTLOOM_STORE_LOCAL_S2_WIDTH 20u

static inline void intloom_store_defaults(struct intloom_store *fields)
{
    memset(fields, 0, sizeof *fields);
    fields->n0 = 1u;
    fields->n1 = 1u;
    fields->n2 = 1u;
}

static inline int intloom_store_encode(const struct intloom_store *fields, uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->local > 1048575u)
        return 6;
    if (fields->n0 < 1u || fields->n0 > 1048575u)
        return 7;
    if (fields->n1 < 1u || fields->n1 > 65535u)
        return 8;
    if (fields->n2 < 1u || fields->n2 > 65535u)
        return 9;
    if (fields->local_s1 > 1048575u)
        return 12;
    if (fields->local_s2 > 1048575u)
        return 13;
    memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES);
    intloom_put(bytes, INTLOOM_STORE_OPCODE_LSB, INTLOOM_STORE_OPCODE_WIDTH, INTLOOM_OPCODE_STORE);
    intloom_put(bytes, INTLOOM_STORE_WAIT_LOAD_LSB, INTLOOM_STORE_WAIT_LOAD_WIDTH, (uint64_t)fields->wait_load);
    intloom_put(bytes, INTLOOM_STORE_WAIT_MAC_LSB, INTLOOM_STORE_WAIT_MAC_WIDTH, (uint64_t)fields->wait_mac);
    intloom_put(bytes, INTLOOM_STORE_WAIT_VEC_LSB, INTLOOM_STORE_WAIT_VEC_WIDTH, (uint64_t)fields->wait_vec);
    intloom_put(bytes, INTLOOM_STORE_WAIT_STORE_LSB, INTLOOM_STORE_WAIT_STORE_WIDTH, (uint64_t)fields->wait_store);
    intloom_put(bytes, INTLOOM_STORE_DRAM_LSB, INTLOOM_STORE_DRAM_WIDTH, (uint64_t)fields->dram);
    intloom_put(bytes, INTLOOM_STORE_LOCAL_LSB, INTLOOM_STORE_LOCAL_WIDTH, (uint64_t)fields->local);
    intloom_put(bytes, INTLOOM_STORE_N0_LSB, INTLOOM_STORE_N0_WIDTH, (uint64_t)fields->n0);
    intloom_put(bytes, INTLOOM_STORE_N1_LSB, INTLOOM_STORE_N1_WIDTH, (uint64_t)fields->n1);
    intloom_put(bytes, INTLOOM_STORE_N2_LSB, INTLOOM_STORE_N2_WIDTH, (uint64_t)fields->n2);
    intloom_put(bytes, INTLOOM_STORE_DRAM_S1_LSB, INTLOOM_STORE_DRAM_S1_WIDTH, (uint64_t)fields->dram_s1);
    intloom_put(bytes, INTLOOM_STORE_DRAM_S2_LSB, INTLOOM_STORE_DRAM_S2_WIDTH, (uint64_t)fields->dram_s2);
    intloom_put(bytes, INTLOOM_STORE_LOCAL_S1_LSB, INTLOOM_STORE_LOCAL_S1_WIDTH, (uint64_t)fields->local_s1);
    intloom_put(bytes, INTLOOM_STORE_LOCAL_S2_LSB, INTLOOM_STORE_LOCAL_S2_WIDTH, (uint64_t)fields->local_s2);
    return 0;
}

static inline int intloom_store_decode(struct intloom_store *out, const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    struct intloom_store decoded, *fields = &decoded;
    if (bytes[0] != INTLOOM_OPCODE_STORE)
        return -1;
    for (unsigned bit = 296u; bit < 8u * INTLOOM_INSTRUCTION_BYTES; bit++)
        if (intloom_get(bytes, bit, 1u))
            return -1;
    fields->wait_load = (uint32_t)intloom_get(bytes, INTLOOM_STORE_WAIT_LOAD_LSB, INTLOOM_STORE_WAIT_LOAD_WIDTH);
    fields->wait_mac = (uint32_t)intloom_get(bytes, INTLOOM_STORE_WAIT_MAC_LSB, INTLOOM_STORE_WAIT_MAC_WIDTH);
    fields->wait_vec = (uint32_t)intloom_get(bytes, INTLOOM_STORE_WAIT_VEC_LSB, INTLOOM_STORE_WAIT_VEC_WIDTH);
    fields->wait_store = (uint32_t)intloom_get(bytes, INTLOOM_STORE_WAIT_STORE_LSB, INTLOOM_STORE_WAIT_STORE_WIDTH);
    fields->dram = (uint32_t)intloom_get(bytes, INTLOOM_STORE_DRAM_LSB, INTLOOM_STORE_DRAM_WIDTH);
    fields->local = (uint32_t)intloom_get(bytes, INTLOOM_STORE_LOCAL_LSB, INTLOOM_STORE_LOCAL_WIDTH);
    fields->n0 = (uint32_t)intloom_get(bytes, INTLOOM_STORE_N0_LSB, INTLOOM_STORE_N0_WIDTH);
    fields->n1 = (uint32_t)intloom_get(bytes, INTLOOM_STORE_N1_LSB, INTLOOM_STORE_N1_WIDTH);
    fields->n2 = (uint32_t)intloom_get(bytes, INTLOOM_STORE_N2_LSB, INTLOOM_STORE_N2_WIDTH);
    fields->dram_s1 = (uint32_t)intloom_get(bytes, INTLOOM_STORE_DRAM_S1_LSB, INTLOOM_STORE_DRAM_S1_WIDTH);
    fields->dram_s2 = (uint32_t)intloom_get(bytes, INTLOOM_STORE_DRAM_S2_LSB, INTLOOM_STORE_DRAM_S2_WIDTH);
    fields->local_s1 = (uint32_t)intloom_get(bytes, INTLOOM_STORE_LOCAL_S1_LSB, INTLOOM_STORE_LOCAL_S1_WIDTH);
    fields->local_s2 = (uint32_t)intloom_get(bytes, INTLOOM_STORE_LOCAL_S2_LSB, INTLOOM_STORE_LOCAL_S2_WIDTH);
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->local > 1048575u)
        return 6;
    if (fields->n0 < 1u || fields->n0 > 1048575u)
        return 7;
    if (fields->n1 < 1u || fields->n1 > 65535u)
        return 8;
    if (fields->n2 < 1u || fields->n2 > 65535u)
        return 9;
    if (fields->local_s1 > 1048575u)
        return 12;
    if (fields->local_s2 > 1048575u)
        return 13;
    *out = decoded;
    return 0;
}

/* Convolve one tile: loop over output blocks, strips of pixels, weight planes, kernel rows, kernel columns and input blocks. Each step multiplies a strip by one weight tile. After the last step of a strip, its sums are requantized and written. Input words outside in_h x in_w read as zp_in. */
struct intloom_conv {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t in_base; /* First word of the input buffer. 0 to 1048575 [words] */
    uint32_t in_row_off; /* Offset in a plane of input row iy0, modulo in_ring when that is not 0. 0 to 1048575 [words] */
    uint32_t in_ring; /* Words after which row offsets wrap to 0; 0: they never wrap. 0 to 1048575 [words] */
    uint32_t in_plane; /* Step from one input channel block to the next. 0 to 1048575 [words] */
    uint32_t in_row; /* Step from one input row to the next. 0 to 65535 [words] */
    uint32_t in_block_step; /* Added to in_base after every output block: 0 for a full, in_plane for a depthwise convolution. 0 to 1048575 [words] */
    uint32_t in_h; /* Rows of the whole input. 1 to 16383 [pixels] */
    uint32_t in_w; /* Pixels in an input row. 1 to 16383 [pixels] */
    int32_t iy0; /* Input row under the kernel's first row at output row 0. -16384 to 16383 [pixels] */
    int32_t ix0; /* Input column under the kernel's first column at output column 0. -16384 to 16383 [pixels] */
    uint32_t packed; /* Input words hold rows/4 pixels of 4 channels, and kernel_w counts groups of rows/4 pixels. 0 to 1 */
    uint32_t kernel_h; /* Kernel rows. 1 to 15 */
    uint32_t kernel_w; /* Kernel columns. 1 to 15 */
    uint32_t stride_h; /* Input rows from one output row to the next. 1 to 4 */
    uint32_t stride_w; /* Input pixels from one output pixel to the next. 1 to 4 */
    uint32_t dilation_h; /* Input rows from one kernel row to the next. 1 to 15 */
    uint32_t dilation_w; /* Input pixels from one kernel column to the next. 1 to 15 */
    uint32_t in_blocks; /* Input channel blocks that contribute to each output block. 1 to 4095 */
    uint32_t out_blocks; /* Output channel blocks, of cols channels each. 1 to 4095 */
    uint32_t two_planes; /* Weights are the sum of two int8 planes. 0 to 1 */
    uint32_t weights; /* First word of the constants in the weight memory; see Constants of CONV. 0 to 1048575 [words] */
    int32_t zp_in; /* Zero point of the input, the value of padding. -128 to 127 */
    int32_t zp_out; /* Zero point that the requantizer adds. -128 to 127 */
    uint32_t table; /* 0: no table, 1: use the loaded table, 2: load a table first. 0 to 2 */
    uint32_t out_h; /* Output rows. 1 to 16383 [pixels] */
    uint32_t out_w; /* Output pixels in a row. 1 to 16383 [pixels] */
    uint32_t out_base; /* First output word. 0 to 1048575 [words] */
    uint32_t out_plane; /* Step from one output channel block to the next. 0 to 1048575 [words] */
    uint32_t out_row; /* Step from one output row to the next. 0 to 65535 [words] */
    uint32_t out_x; /* Step from one output pixel to the next. 1 to 15 [words] */
    uint32_t out_lane; /* Byte of the first output word for the first channel; a multiple of lanes. 0 to 31 */
    uint32_t residual; /* Add a residual operand to every result byte. 0 to 1 */
    uint32_t res_base; /* First word of the residual operand, which has the output's shape; its channels start at byte 0. 0 to 1048575 [words] */
    uint32_t res_plane; /* Step of the residual from one channel block to the next. 0 to 1048575 [words] */
    uint32_t res_row; /* Step of the residual from one row to the next. 0 to 65535 [words] */
    uint32_t res_shift; /* Right shift of the residual addition. 0 to 47 [bits] */
    uint32_t res_even; /* The residual addition rounds ties to even; else up. 0 to 1 */
};

#define INTLOOM_CONV_OPCODE_LSB 0u
#define INTLOOM_CONV_OPCODE_WIDTH 8u
#define INTLOOM_CONV_WAIT_LOAD_LSB 8u
#define INTLOOM_CONV_WAIT_LOAD_WIDTH 20u
#define INTLOOM_CONV_WAIT_MAC_LSB 28u
#define INTLOOM_CONV_WAIT_MAC_WIDTH 20u
#define INTLOOM_CONV_WAIT_VEC_LSB 48u
#define INTLOOM_CONV_WAIT_VEC_WIDTH 20u
#define INTLOOM_CONV_WAIT_STORE_LSB 68u
#define INTLOOM_CONV_WAIT_STORE_WIDTH 20u
#define INTLOOM_CONV_IN_BASE_LSB 88u
#define INTLOOM_CONV_IN_BASE_WIDTH 20u
#define INTLOOM_CONV_IN_ROW_OFF_LSB 108u
#define INTLOOM_CONV_IN_ROW_OFF_WIDTH 20u
#define INTLOOM_CONV_IN_RING_LSB 128u
#define INTLOOM_CONV_IN_RING_WIDTH 20u
#define INTLOOM_CONV_IN_PLANE_LSB 148u
#define INTLOOM_CONV_IN_PLANE_WIDTH 20u
#define INTLOOM_CONV_IN_ROW_LSB 168u
#define INTLOOM_CONV_IN_ROW_WIDTH 16u
#define INTLOOM_CONV_IN_BLOCK_STEP_LSB 184u
#define INTLOOM_CONV_IN_BLOCK_STEP_WIDTH 20u
#define INTLOOM_CONV_IN_H_LSB 204u
#define INTLOOM_CONV_IN_H_WIDTH 14u
#define INTLOOM_CONV_IN_W_LSB 218u
#define INTLOOM_CONV_IN_W_WIDTH 14u
#define INTLOOM_CONV_IY0_LSB 232u
#define INTLOOM_CONV_IY0_WIDTH 15u
#define INTLOOM_CONV_IX0_LSB 247u
#define INTLOOM_CONV_IX0_WIDTH 15u
#define INTLOOM_CONV_PACKED_LSB 262u
#define INTLOOM_CONV_PACKED_WIDTH 1u
#define INTLOOM_CONV_KERNEL_H_LSB 263u
#define INTLOOM_CONV_KERNEL_H_WIDTH 4u
#define INTLOOM_CONV_KERNEL_W_LSB 267u
#define INTLOOM_CONV_KERNEL_W_WIDTH 4u
#define INTLOOM_CONV_STRIDE_H_LSB 271u
#define INTLOOM_CONV_STRIDE_H_WIDTH 3u
#define INTLOOM_CONV_STRIDE_W_LSB 274u
#define INTLOOM_CONV_STRIDE_W_WIDTH 3u
#define INTLOOM_CONV_DILATION_H_LSB 277u
#define INTLOOM_CONV_DILATION_H_WIDTH 4u
#define INTLOOM_CONV_DILATION_W_LSB 281u
#define INTLOOM_CONV_DILATION_W_WIDTH 4u
#define INTLOOM_CONV_IN_BLOCKS_LSB 285u
#define INTLOOM_CONV_IN_BLOCKS_WIDTH 12u
#define INTLOOM_CONV_OUT_BLOCKS_LSB 297u
#define INTLOOM_CONV_OUT_BLOCKS_WIDTH 12u
#define INTLOOM_CONV_TWO_PLANES_LSB 309u
#define INTLOOM_CONV_TWO_PLANES_WIDTH 1u
#define INTLOOM_CONV_WEIGHTS_LSB 310u
#define INTLOOM_CONV_WEIGHTS_WIDTH 20u
#define INTLOOM_CONV_ZP_IN_LSB 330u
#define INTLOOM_CONV_ZP_IN_WIDTH 8u
#define INTLOOM_CONV_ZP_OUT_LSB 338u
#define INTLOOM_CONV_ZP_OUT_WIDTH 8u
#define INTLOOM_CONV_TABLE_LSB 346u
#define INTLOOM_CONV_TABLE_WIDTH 2u
#define INTLOOM_CONV_OUT_H_LSB 348u
#define INTLOOM_CONV_OUT_H_WIDTH 14u
#define INTLOOM_CONV_OUT_W_LSB 362u
#define INTLOOM_CONV_OUT_W_WIDTH 14u
#define INTLOOM_CONV_OUT_BASE_LSB 376u
#define INTLOOM_CONV_OUT_BASE_WIDTH 20u
#define INTLOOM_CONV_OUT_PLANE_LSB 396u
#define INTLOOM_CONV_OUT_PLANE_WIDTH 20u
#define INTLOOM_CONV_OUT_ROW_LSB 416u
#define INTLOOM_CONV_OUT_ROW_WIDTH 16u
#define INTLOOM_CONV_OUT_X_LSB 432u
#define INTLOOM_CONV_OUT_X_WIDTH 4u
#define INTLOOM_CONV_OUT_LANE_LSB 436u
#define INTLOOM_CONV_OUT_LANE_WIDTH 5u
#define INTLOOM_CONV_RESIDUAL_LSB 441u
#define INTLOOM_CONV_RESIDUAL_WIDTH 1u
#define INTLOOM_CONV_RES_BASE_LSB 442u
#define INTLOOM_CONV_RES_BASE_WIDTH 20u
#define INTLOOM_CONV_RES_PLANE_LSB 462u
#define INTLOOM_CONV_RES_PLANE_WIDTH 20u
#define INTLOOM_CONV_RES_ROW_LSB 482u
#define INTLOOM_CONV_RES_ROW_WIDTH 16u
#define INTLOOM_CONV_RES_SHIFT_LSB 498u
#define INTLOOM_CONV_RES_SHIFT_WIDTH 6u
#define INTLOOM_CONV_RES_EVEN_LSB 504u
#define INTLOOM_CONV_RES_EVEN_WIDTH 1u

static inline void intloom_conv_defaults(struct intloom_conv *fields)
{
    memset(fields, 0, sizeof *fields);
    fields->in_h = 1u;
    fields->in_w = 1u;
    fields->kernel_h = 1u;
    fields->kernel_w = 1u;
    fields->stride_h = 1u;
    fields->stride_w = 1u;
    fields->dilation_h = 1u;
    fields->dilation_w = 1u;
    fields->in_blocks = 1u;
    fields->out_blocks = 1u;
    fields->out_h = 1u;
    fields->out_w = 1u;
    fields->out_x = 1u;
}

static inline int intloom_conv_encode(const struct intloom_conv *fields, uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->in_base > 1048575u)
        return 5;
    if (fields->in_row_off > 1048575u)
        return 6;
    if (fields->in_ring > 1048575u)
        return 7;
    if (fields->in_plane > 1048575u)
        return 8;
    if (fields->in_row > 65535u)
        return 9;
    if (fields->in_block_step > 1048575u)
        return 10;
    if (fields->in_h < 1u || fields->in_h > 16383u)
        return 11;
    if (fields->in_w < 1u || fields->in_w > 16383u)
        return 12;
    if (fields->iy0 < (-16383 - 1) || fields->iy0 > 16383)
        return 13;
    if (fields->ix0 < (-16383 - 1) || fields->ix0 > 16383)
        return 14;
    if (fields->packed > 1u)
        return 15;
    if (fields->kernel_h < 1u || fields->kernel_h > 15u)
        return 16;
    if (fields->kernel_w < 1u || fields->kernel_w > 15u)
        return 17;
    if (fields->stride_h < 1u || fields->stride_h > 4u)
        return 18;
    if (fields->stride_w < 1u || fields->stride_w > 4u)
        return 19;
    if (fields->dilation_h < 1u || fields->dilation_h > 15u)
        return 20;
    if (fields->dilation_w < 1u || fields->dilation_w > 15u)
        return 21;
    if (fields->in_blocks < 1u || fields->in_blocks > 4095u)
        return 22;
    if (fields->out_blocks < 1u || fields->out_blocks > 4095u)
        return 23;
    if (fields->two_planes > 1u)
        return 24;
    if (fields->weights > 1048575u)
        return 25;
    if (fields->zp_in < (-127 - 1) || fields->zp_in > 127)
        return 26;
    if (fields->zp_out < (-127 - 1) || fields->zp_out > 127)
        return 27;
    if (fields->table > 2u)
        return 28;
    if (fields->out_h < 1u || fields->out_h > 16383u)
        return 29;
    if (fields->out_w < 1u || fields->out_w > 16383u)
        return 30;
    if (fields->out_base > 1048575u)
        return 31;
    if (fields->out_plane > 1048575u)
        return 32;
    if (fields->out_row > 65535u)
        return 33;
    if (fields->out_x < 1u || fields->out_x > 15u)
        return 34;
    if (fields->out_lane > 31u)
        return 35;
    if (fields->residual > 1u)
        return 36;
    if (fields->res_base > 1048575u)
        return 37;
    if (fields->res_plane > 1048575u)
        return 38;
    if (fields->res_row > 65535u)
        return 39;
    if (fields->res_shift > 47u)
        return 40;
    if (fields->res_even > 1u)
        return 41;
    memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES);
    intloom_put(bytes, INTLOOM_CONV_OPCODE_LSB, INTLOOM_CONV_OPCODE_WIDTH, INTLOOM_OPCODE_CONV);
    intloom_put(bytes, INTLOOM_CONV_WAIT_LOAD_LSB, INTLOOM_CONV_WAIT_LOAD_WIDTH, (uint64_t)fields->wait_load);
    intloom_put(bytes, INTLOOM_CONV_WAIT_MAC_LSB, INTLOOM_CONV_WAIT_MAC_WIDTH, (uint64_t)fields->wait_mac);
    intloom_put(bytes, INTLOOM_CONV_WAIT_VEC_LSB, INTLOOM_CONV_WAIT_VEC_WIDTH, (uint64_t)fields->wait_vec);
    intloom_put(bytes, INTLOOM_CONV_WAIT_STORE_LSB, INTLOOM_CONV_WAIT_STORE_WIDTH, (uint64_t)fields->wait_store);
    intloom_put(bytes, INTLOOM_CONV_IN_BASE_LSB, INTLOOM_CONV_IN_BASE_WIDTH, (uint64_t)fields->in_base);
    intloom_put(bytes, INTLOOM_CONV_IN_ROW_OFF_LSB, INTLOOM_CONV_IN_ROW_OFF_WIDTH, (uint64_t)fields->in_row_off);
    intloom_put(bytes, INTLOOM_CONV_IN_RING_LSB, INTLOOM_CONV_IN_RING_WIDTH, (uint64_t)fields->in_ring);
    intloom_put(bytes, INTLOOM_CONV_IN_PLANE_LSB, INTLOOM_CONV_IN_PLANE_WIDTH, (uint64_t)fields->in_plane);
    intloom_put(bytes, INTLOOM_CONV_IN_ROW_LSB, INTLOOM_CONV_IN_ROW_WIDTH, (uint64_t)fields->in_row);
    intloom_put(bytes, INTLOOM_CONV_IN_BLOCK_STEP_LSB, INTLOOM_CONV_IN_BLOCK_STEP_WIDTH, (uint64_t)fields->in_block_step);
    intloom_put(bytes, INTLOOM_CONV_IN_H_LSB, INTLOOM_CONV_IN_H_WIDTH, (uint64_t)fields->in_h);
    intloom_put(bytes, INTLOOM_CONV_IN_W_LSB, INTLOOM_CONV_IN_W_WIDTH, (uint64_t)fields->in_w);
    intloom_put(bytes, INTLOOM_CONV_IY0_LSB, INTLOOM_CONV_IY0_WIDTH, (uint64_t)fields->iy0);
    intloom_put(bytes, INTLOOM_CONV_IX0_LSB, INTLOOM_CONV_IX0_WIDTH, (uint64_t)fields->ix0);
    intloom_put(bytes, INTLOOM_CONV_PACKED_LSB, INTLOOM_CONV_PACKED_WIDTH, (uint64_t)fields->packed);
    intloom_put(bytes, INTLOOM_CONV_KERNEL_H_LSB, INTLOOM_CONV_KERNEL_H_WIDTH, (uint64_t)fields->kernel_h);
    intloom_put(bytes, INTLOOM_CONV_KERNEL_W_LSB, INTLOOM_CONV_KERNEL_W_WIDTH, (uint64_t)fields->kernel_w);
    intloom_put(bytes, INTLOOM_CONV_STRIDE_H_LSB, INTLOOM_CONV_STRIDE_H_WIDTH, (uint64_t)fields->stride_h);
    intloom_put(bytes, INTLOOM_CONV_STRIDE_W_LSB, INTLOOM_CONV_STRIDE_W_WIDTH, (uint64_t)fields->stride_w);
    intloom_put(bytes, INTLOOM_CONV_DILATION_H_LSB, INTLOOM_CONV_DILATION_H_WIDTH, (uint64_t)fields->dilation_h);
    intloom_put(bytes, INTLOOM_CONV_DILATION_W_LSB, INTLOOM_CONV_DILATION_W_WIDTH, (uint64_t)fields->dilation_w);
    intloom_put(bytes, INTLOOM_CONV_IN_BLOCKS_LSB, INTLOOM_CONV_IN_BLOCKS_WIDTH, (uint64_t)fields->in_blocks);
    intloom_put(bytes, INTLOOM_CONV_OUT_BLOCKS_LSB, INTLOOM_CONV_OUT_BLOCKS_WIDTH, (uint64_t)fields->out_blocks);
    intloom_put(bytes, INTLOOM_CONV_TWO_PLANES_LSB, INTLOOM_CONV_TWO_PLANES_WIDTH, (uint64_t)fields->two_planes);
    intloom_put(bytes, INTLOOM_CONV_WEIGHTS_LSB, INTLOOM_CONV_WEIGHTS_WIDTH, (uint64_t)fields->weights);
    intloom_put(bytes, INTLOOM_CONV_ZP_IN_LSB, INTLOOM_CONV_ZP_IN_WIDTH, (uint64_t)fields->zp_in);
    intloom_put(bytes, INTLOOM_CONV_ZP_OUT_LSB, INTLOOM_CONV_ZP_OUT_WIDTH, (uint64_t)fields->zp_out);
    intloom_put(bytes, INTLOOM_CONV_TABLE_LSB, INTLOOM_CONV_TABLE_WIDTH, (uint64_t)fields->table);
    intloom_put(bytes, INTLOOM_CONV_OUT_H_LSB, INTLOOM_CONV_OUT_H_WIDTH, (uint64_t)fields->out_h);
    intloom_put(bytes, INTLOOM_CONV_OUT_W_LSB, INTLOOM_CONV_OUT_W_WIDTH, (uint64_t)fields->out_w);
    intloom_put(bytes, INTLOOM_CONV_OUT_BASE_LSB, INTLOOM_CONV_OUT_BASE_WIDTH, (uint64_t)fields->out_base);
    intloom_put(bytes, INTLOOM_CONV_OUT_PLANE_LSB, INTLOOM_CONV_OUT_PLANE_WIDTH, (uint64_t)fields->out_plane);
    intloom_put(bytes, INTLOOM_CONV_OUT_ROW_LSB, INTLOOM_CONV_OUT_ROW_WIDTH, (uint64_t)fields->out_row);
    intloom_put(bytes, INTLOOM_CONV_OUT_X_LSB, INTLOOM_CONV_OUT_X_WIDTH, (uint64_t)fields->out_x);
    intloom_put(bytes, INTLOOM_CONV_OUT_LANE_LSB, INTLOOM_CONV_OUT_LANE_WIDTH, (uint64_t)fields->out_lane);
    intloom_put(bytes, INTLOOM_CONV_RESIDUAL_LSB, INTLOOM_CONV_RESIDUAL_WIDTH, (uint64_t)fields->residual);
    intloom_put(bytes, INTLOOM_CONV_RES_BASE_LSB, INTLOOM_CONV_RES_BASE_WIDTH, (uint64_t)fields->res_base);
    intloom_put(bytes, INTLOOM_CONV_RES_PLANE_LSB, INTLOOM_CONV_RES_PLANE_WIDTH, (uint64_t)fields->res_plane);
    intloom_put(bytes, INTLOOM_CONV_RES_ROW_LSB, INTLOOM_CONV_RES_ROW_WIDTH, (uint64_t)fields->res_row);
    intloom_put(bytes, INTLOOM_CONV_RES_SHIFT_LSB, INTLOOM_CONV_RES_SHIFT_WIDTH, (uint64_t)fields->res_shift);
    intloom_put(bytes, INTLOOM_CONV_RES_EVEN_LSB, INTLOOM_CONV_RES_EVEN_WIDTH, (uint64_t)fields->res_even);
    return 0;
}

static inline int intloom_conv_decode(struct intloom_conv *out, const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    struct intloom_conv decoded, *fields = &decoded;
    if (bytes[0] != INTLOOM_OPCODE_CONV)
        return -1;
    for (unsigned bit = 505u; bit < 8u * INTLOOM_INSTRUCTION_BYTES; bit++)
        if (intloom_get(bytes, bit, 1u))
            return -1;
    fields->wait_load = (uint32_t)intloom_get(bytes, INTLOOM_CONV_WAIT_LOAD_LSB, INTLOOM_CONV_WAIT_LOAD_WIDTH);
    fields->wait_mac = (uint32_t)intloom_get(bytes, INTLOOM_CONV_WAIT_MAC_LSB, INTLOOM_CONV_WAIT_MAC_WIDTH);
    fields->wait_vec = (uint32_t)intloom_get(bytes, INTLOOM_CONV_WAIT_VEC_LSB, INTLOOM_CONV_WAIT_VEC_WIDTH);
    fields->wait_store = (uint32_t)intloom_get(bytes, INTLOOM_CONV_WAIT_STORE_LSB, INTLOOM_CONV_WAIT_STORE_WIDTH);
    fields->in_base = (uint32_t)intloom_get(bytes, INTLOOM_CONV_IN_BASE_LSB, INTLOOM_CONV_IN_BASE_WIDTH);
    fields->in_row_off = (uint32_t)intloom_get(bytes, INTLOOM_CONV_IN_ROW_OFF_LSB, INTLOOM_CONV_IN_ROW_OFF_WIDTH);
    fields->in_ring = (uint32_t)intloom_get(bytes, INTLOOM_CONV_IN_RING_LSB, INTLOOM_CONV_IN_RING_WIDTH);
    fields->in_plane = (uint32_t)intloom_get(bytes, INTLOOM_CONV_IN_PLANE_LSB, INTLOOM_CONV_IN_PLANE_WIDTH);
    fields->in_row = (uint32_t)intloom_get(bytes, INTLOOM_CONV_IN_ROW_LSB, INTLOOM_CONV_IN_ROW_WIDTH);
    fields->in_block_step = (uint32_t)intloom_get(bytes, INTLOOM_CONV_IN_BLOCK_STEP_LSB, INTLOOM_CONV_IN_BLOCK_STEP_WIDTH);
    fields->in_h = (uint32_t)intloom_get(bytes, INTLOOM_CONV_IN_H_LSB, INTLOOM_CONV_IN_H_WIDTH);
    fields->in_w = (uint32_t)intloom_get(bytes, INTLOOM_CONV_IN_W_LSB, INTLOOM_CONV_IN_W_WIDTH);
    fields->iy0 = (int32_t)intloom_get_signed(bytes, INTLOOM_CONV_IY0_LSB, INTLOOM_CONV_IY0_WIDTH);
    fields->ix0 = (int32_t)intloom_get_signed(bytes, INTLOOM_CONV_IX0_LSB, INTLOOM_CONV_IX0_WIDTH);
    fields->packed = (uint32_t)intloom_get(bytes, INTLOOM_CONV_PACKED_LSB, INTLOOM_CONV_PACKED_WIDTH);
    fields->kernel_h = (uint32_t)intloom_get(bytes, INTLOOM_CONV_KERNEL_H_LSB, INTLOOM_CONV_KERNEL_H_WIDTH);
    fields->kernel_w = (uint32_t)intloom_get(bytes, INTLOOM_CONV_KERNEL_W_LSB, INTLOOM_CONV_KERNEL_W_WIDTH);
    fields->stride_h = (uint32_t)intloom_get(bytes, INTLOOM_CONV_STRIDE_H_LSB, INTLOOM_CONV_STRIDE_H_WIDTH);
    fields->stride_w = (uint32_t)intloom_get(bytes, INTLOOM_CONV_STRIDE_W_LSB, INTLOOM_CONV_STRIDE_W_WIDTH);
    fields->dilation_h = (uint32_t)intloom_get(bytes, INTLOOM_CONV_DILATION_H_LSB, INTLOOM_CONV_DILATION_H_WIDTH);
    fields->dilation_w = (uint32_t)intloom_get(bytes, INTLOOM_CONV_DILATION_W_LSB, INTLOOM_CONV_DILATION_W_WIDTH);
    fields->in_blocks = (uint32_t)intloom_get(bytes, INTLOOM_CONV_IN_BLOCKS_LSB, INTLOOM_CONV_IN_BLOCKS_WIDTH);
    fields->out_blocks = (uint32_t)intloom_get(bytes, INTLOOM_CONV_OUT_BLOCKS_LSB, INTLOOM_CONV_OUT_BLOCKS_WIDTH);
    fields->two_planes = (uint32_t)intloom_get(bytes, INTLOOM_CONV_TWO_PLANES_LSB, INTLOOM_CONV_TWO_PLANES_WIDTH);
    fields->weights = (uint32_t)intloom_get(bytes, INTLOOM_CONV_WEIGHTS_LSB, INTLOOM_CONV_WEIGHTS_WIDTH);
    fields->zp_in = (int32_t)intloom_get_signed(bytes, INTLOOM_CONV_ZP_IN_LSB, INTLOOM_CONV_ZP_IN_WIDTH);
    fields->zp_out = (int32_t)intloom_get_signed(bytes, INTLOOM_CONV_ZP_OUT_LSB, INTLOOM_CONV_ZP_OUT_WIDTH);
    fields->table = (uint32_t)intloom_get(bytes, INTLOOM_CONV_TABLE_LSB, INTLOOM_CONV_TABLE_WIDTH);
    fields->out_h = (uint32_t)intloom_get(bytes, INTLOOM_CONV_OUT_H_LSB, INTLOOM_CONV_OUT_H_WIDTH);
    fields->out_w = (uint32_t)intloom_get(bytes, INTLOOM_CONV_OUT_W_LSB, INTLOOM_CONV_OUT_W_WIDTH);
    fields->out_base = (uint32_t)intloom_get(bytes, INTLOOM_CONV_OUT_BASE_LSB, INTLOOM_CONV_OUT_BASE_WIDTH);
    fields->out_plane = (uint32_t)intloom_get(bytes, INTLOOM_CONV_OUT_PLANE_LSB, INTLOOM_CONV_OUT_PLANE_WIDTH);
    fields->out_row = (uint32_t)intloom_get(bytes, INTLOOM_CONV_OUT_ROW_LSB, INTLOOM_CONV_OUT_ROW_WIDTH);
    fields->out_x = (uint32_t)intloom_get(bytes, INTLOOM_CONV_OUT_X_LSB, INTLOOM_CONV_OUT_X_WIDTH);
    fields->out_lane = (uint32_t)intloom_get(bytes, INTLOOM_CONV_OUT_LANE_LSB, INTLOOM_CONV_OUT_LANE_WIDTH);
    fields->residual = (uint32_t)intloom_get(bytes, INTLOOM_CONV_RESIDUAL_LSB, INTLOOM_CONV_RESIDUAL_WIDTH);
    fields->res_base = (uint32_t)intloom_get(bytes, INTLOOM_CONV_RES_BASE_LSB, INTLOOM_CONV_RES_BASE_WIDTH);
    fields->res_plane = (uint32_t)intloom_get(bytes, INTLOOM_CONV_RES_PLANE_LSB, INTLOOM_CONV_RES_PLANE_WIDTH);
    fields->res_row = (uint32_t)intloom_get(bytes, INTLOOM_CONV_RES_ROW_LSB, INTLOOM_CONV_RES_ROW_WIDTH);
    fields->res_shift = (uint32_t)intloom_get(bytes, INTLOOM_CONV_RES_SHIFT_LSB, INTLOOM_CONV_RES_SHIFT_WIDTH);
    fields->res_even = (uint32_t)intloom_get(bytes, INTLOOM_CONV_RES_EVEN_LSB, INTLOOM_CONV_RES_EVEN_WIDTH);
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->in_base > 1048575u)
        return 5;
    if (fields->in_row_off > 1048575u)
        return 6;
    if (fields->in_ring > 1048575u)
        return 7;
    if (fields->in_plane > 1048575u)
        return 8;
    if (fields->in_row > 65535u)
        return 9;
    if (fields->in_block_step > 1048575u)
        return 10;
    if (fields->in_h < 1u || fields->in_h > 16383u)
        return 11;
    if (fields->in_w < 1u || fields->in_w > 16383u)
        return 12;
    if (fields->iy0 < (-16383 - 1) || fields->iy0 > 16383)
        return 13;
    if (fields->ix0 < (-16383 - 1) || fields->ix0 > 16383)
        return 14;
    if (fields->packed > 1u)
        return 15;
    if (fields->kernel_h < 1u || fields->kernel_h > 15u)
        return 16;
    if (fields->kernel_w < 1u || fields->kernel_w > 15u)
        return 17;
    if (fields->stride_h < 1u || fields->stride_h > 4u)
        return 18;
    if (fields->stride_w < 1u || fields->stride_w > 4u)
        return 19;
    if (fields->dilation_h < 1u || fields->dilation_h > 15u)
        return 20;
    if (fields->dilation_w < 1u || fields->dilation_w > 15u)
        return 21;
    if (fields->in_blocks < 1u || fields->in_blocks > 4095u)
        return 22;
    if (fields->out_blocks < 1u || fields->out_blocks > 4095u)
        return 23;
    if (fields->two_planes > 1u)
        return 24;
    if (fields->weights > 1048575u)
        return 25;
    if (fields->zp_in < (-127 - 1) || fields->zp_in > 127)
        return 26;
    if (fields->zp_out < (-127 - 1) || fields->zp_out > 127)
        return 27;
    if (fields->table > 2u)
        return 28;
    if (fields->out_h < 1u || fields->out_h > 16383u)
        return 29;
    if (fields->out_w < 1u || fields->out_w > 16383u)
        return 30;
    if (fields->out_base > 1048575u)
        return 31;
    if (fields->out_plane > 1048575u)
        return 32;
    if (fields->out_row > 65535u)
        return 33;
    if (fields->out_x < 1u || fields->out_x > 15u)
        return 34;
    if (fields->out_lane > 31u)
        return 35;
    if (fields->residual > 1u)
        return 36;
    if (fields->res_base > 1048575u)
        return 37;
    if (fields->res_plane > 1048575u)
        return 38;
    if (fields->res_row > 65535u)
        return 39;
    if (fields->res_shift > 47u)
        return 40;
    if (fields->res_even > 1u)
        return 41;
    *out = decoded;
    return 0;
}

/* Load the vector unit's 256-byte table from the scratchpad. */
struct intloom_vtable {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t a_base; /* First word of the table. 0 to 1048575 [words] */
};

#define INTLOOM_VTABLE_OPCODE_LSB 0u
#define INTLOOM_VTABLE_OPCODE_WIDTH 8u
#define INTLOOM_VTABLE_WAIT_LOAD_LSB 8u
#define INTLOOM_VTABLE_WAIT_LOAD_WIDTH 20u
#define INTLOOM_VTABLE_WAIT_MAC_LSB 28u
#define INTLOOM_VTABLE_WAIT_MAC_WIDTH 20u
#define INTLOOM_VTABLE_WAIT_VEC_LSB 48u
#define INTLOOM_VTABLE_WAIT_VEC_WIDTH 20u
#define INTLOOM_VTABLE_WAIT_STORE_LSB 68u
#define INTLOOM_VTABLE_WAIT_STORE_WIDTH 20u
#define INTLOOM_VTABLE_A_BASE_LSB 88u
#define INTLOOM_VTABLE_A_BASE_WIDTH 20u

static inline void intloom_vtable_defaults(struct intloom_vtable *fields)
{
    memset(fields, 0, sizeof *fields);
}

static inline int intloom_vtable_encode(const struct intloom_vtable *fields, uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->a_base > 1048575u)
        return 5;
    memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES);
    intloom_put(bytes, INTLOOM_VTABLE_OPCODE_LSB, INTLOOM_VTABLE_OPCODE_WIDTH, INTLOOM_OPCODE_VTABLE);
    intloom_put(bytes, INTLOOM_VTABLE_WAIT_LOAD_LSB, INTLOOM_VTABLE_WAIT_LOAD_WIDTH, (uint64_t)fields->wait_load);
    intloom_put(bytes, INTLOOM_VTABLE_WAIT_MAC_LSB, INTLOOM_VTABLE_WAIT_MAC_WIDTH, (uint64_t)fields->wait_mac);
    intloom_put(bytes, INTLOOM_VTABLE_WAIT_VEC_LSB, INTLOOM_VTABLE_WAIT_VEC_WIDTH, (uint64_t)fields->wait_vec);
    intloom_put(bytes, INTLOOM_VTABLE_WAIT_STORE_LSB, INTLOOM_VTABLE_WAIT_STORE_WIDTH, (uint64_t)fields->wait_store);
    intloom_put(bytes, INTLOOM_VTABLE_A_BASE_LSB, INTLOOM_VTABLE_A_BASE_WIDTH, (uint64_t)fields->a_base);
    return 0;
}

static inline int intloom_vtable_decode(struct intloom_vtable *out, const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    struct intloom_vtable decoded, *fields = &decoded;
    if (bytes[0] != INTLOOM_OPCODE_VTABLE)
        return -1;
    for (unsigned bit = 108u; bit < 8u * INTLOOM_INSTRUCTION_BYTES; bit++)
        if (intloom_get(bytes, bit, 1u))
            return -1;
    fields->wait_load = (uint32_t)intloom_get(bytes, INTLOOM_VTABLE_WAIT_LOAD_LSB, INTLOOM_VTABLE_WAIT_LOAD_WIDTH);
    fields->wait_mac = (uint32_t)intloom_get(bytes, INTLOOM_VTABLE_WAIT_MAC_LSB, INTLOOM_VTABLE_WAIT_MAC_WIDTH);
    fields->wait_vec = (uint32_t)intloom_get(bytes, INTLOOM_VTABLE_WAIT_VEC_LSB, INTLOOM_VTABLE_WAIT_VEC_WIDTH);
    fields->wait_store = (uint32_t)intloom_get(bytes, INTLOOM_VTABLE_WAIT_STORE_LSB, INTLOOM_VTABLE_WAIT_STORE_WIDTH);
    fields->a_base = (uint32_t)intloom_get(bytes, INTLOOM_VTABLE_A_BASE_LSB, INTLOOM_VTABLE_A_BASE_WIDTH);
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->a_base > 1048575u)
        return 5;
    *out = decoded;
    return 0;
}

/* Copy words, with nearest-neighbor upsampling, byte rotation and byte selection: output pixel (y, x) takes input pixel (y/up_h, x/up_w), so a_x and a_row give strided reads. */
struct intloom_vcopy {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t a_base; /* First word of operand A. 0 to 1048575 [words] */
    uint32_t a_plane; /* Step of A from one channel block to the next. 0 to 1048575 [words] */
    uint32_t a_row; /* Step of A from one row to the next. 0 to 65535 [words] */
    uint32_t a_x; /* Step of A from one input pixel to the next. 0 to 255 [words] */
    uint32_t out_h; /* Output rows. 1 to 16383 [pixels] */
    uint32_t out_w; /* Output pixels in a row. 1 to 16383 [pixels] */
    uint32_t out_base; /* First output word. 0 to 1048575 [words] */
    uint32_t out_plane; /* Step from one output channel block to the next. 0 to 1048575 [words] */
    uint32_t out_row; /* Step from one output row to the next. 0 to 65535 [words] */
    uint32_t out_x; /* Step from one output pixel to the next. 1 to 15 [words] */
    uint32_t blocks; /* Channel blocks. 1 to 4095 */
    uint32_t table; /* Pass every result byte through the vector table. 0 to 1 */
    uint32_t up_h; /* Vertical upsampling factor. 1 to 15 */
    uint32_t up_w; /* Horizontal upsampling factor. 1 to 15 */
    uint32_t rotate; /* Result byte (i + rotate) mod word takes input byte i. 0 to 31 */
    uint32_t first_byte; /* First byte that is written. 0 to 31 */
    uint32_t byte_count; /* Bytes that are written. 1 to 32 */
};

#define INTLOOM_VCOPY_OPCODE_LSB 0u
#define INTLOOM_VCOPY_OPCODE_WIDTH 8u
#define INTLOOM_VCOPY_WAIT_LOAD_LSB 8u
#define INTLOOM_VCOPY_WAIT_LOAD_WIDTH 20u
#define INTLOOM_VCOPY_WAIT_MAC_LSB 28u
#define INTLOOM_VCOPY_WAIT_MAC_WIDTH 20u
#define INTLOOM_VCOPY_WAIT_VEC_LSB 48u
#define INTLOOM_VCOPY_WAIT_VEC_WIDTH 20u
#define INTLOOM_VCOPY_WAIT_STORE_LSB 68u
#define INTLOOM_VCOPY_WAIT_STORE_WIDTH 20u
#define INTLOOM_VCOPY_A_BASE_LSB 88u
#define INTLOOM_VCOPY_A_BASE_WIDTH 20u
#define INTLOOM_VCOPY_A_PLANE_LSB 108u
#define INTLOOM_VCOPY_A_PLANE_WIDTH 20u
#define INTLOOM_VCOPY_A_ROW_LSB 128u
#define INTLOOM_VCOPY_A_ROW_WIDTH 16u
#define INTLOOM_VCOPY_A_X_LSB 144u
#define INTLOOM_VCOPY_A_X_WIDTH 8u
#define INTLOOM_VCOPY_OUT_H_LSB 152u
#define INTLOOM_VCOPY_OUT_H_WIDTH 14u
#define INTLOOM_VCOPY_OUT_W_LSB 166u
#define INTLOOM_VCOPY_OUT_W_WIDTH 14u
#define INTLOOM_VCOPY_OUT_BASE_LSB 180u
#define INTLOOM_VCOPY_OUT_BASE_WIDTH 20u
#define INTLOOM_VCOPY_OUT_PLANE_LSB 200u
#define INTLOOM_VCOPY_OUT_PLANE_WIDTH 20u
#define INTLOOM_VCOPY_OUT_ROW_LSB 220u
#define INTLOOM_VCOPY_OUT_ROW_WIDTH 16u
#define INTLOOM_VCOPY_OUT_X_LSB 236u
#define INTLOOM_VCOPY_OUT_X_WIDTH 4u
#define INTLOOM_VCOPY_BLOCKS_LSB 240u
#define INTLOOM_VCOPY_BLOCKS_WIDTH 12u
#define INTLOOM_VCOPY_TABLE_LSB 252u
#define INTLOOM_VCOPY_TABLE_WIDTH 1u
#define INTLOOM_VCOPY_UP_H_LSB 253u
#define INTLOOM_VCOPY_UP_H_WIDTH 4u
#define INTLOOM_VCOPY_UP_W_LSB 257u
#define INTLOOM_VCOPY_UP_W_WIDTH 4u
#define INTLOOM_VCOPY_ROTATE_LSB 261u
#define INTLOOM_VCOPY_ROTATE_WIDTH 5u
#define INTLOOM_VCOPY_FIRST_BYTE_LSB 266u
#define INTLOOM_VCOPY_FIRST_BYTE_WIDTH 5u
#define INTLOOM_VCOPY_BYTE_COUNT_LSB 271u
#define INTLOOM_VCOPY_BYTE_COUNT_WIDTH 6u

static inline void intloom_vcopy_defaults(struct intloom_vcopy *fields)
{
    memset(fields, 0, sizeof *fields);
    fields->out_h = 1u;
    fields->out_w = 1u;
    fields->out_x = 1u;
    fields->blocks = 1u;
    fields->up_h = 1u;
    fields->up_w = 1u;
    fields->byte_count = 1u;
}

static inline int intloom_vcopy_encode(const struct intloom_vcopy *fields, uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->a_base > 1048575u)
        return 5;
    if (fields->a_plane > 1048575u)
        return 6;
    if (fields->a_row > 65535u)
        return 7;
    if (fields->a_x > 255u)
        return 8;
    if (fields->out_h < 1u || fields->out_h > 16383u)
        return 9;
    if (fields->out_w < 1u || fields->out_w > 16383u)
        return 10;
    if (fields->out_base > 1048575u)
        return 11;
    if (fields->out_plane > 1048575u)
        return 12;
    if (fields->out_row > 65535u)
        return 13;
    if (fields->out_x < 1u || fields->out_x > 15u)
        return 14;
    if (fields->blocks < 1u || fields->blocks > 4095u)
        return 15;
    if (fields->table > 1u)
        return 16;
    if (fields->up_h < 1u || fields->up_h > 15u)
        return 17;
    if (fields->up_w < 1u || fields->up_w > 15u)
        return 18;
    if (fields->rotate > 31u)
        return 19;
    if (fields->first_byte > 31u)
        return 20;
    if (fields->byte_count < 1u || fields->byte_count > 32u)
        return 21;
    memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES);
    intloom_put(bytes, INTLOOM_VCOPY_OPCODE_LSB, INTLOOM_VCOPY_OPCODE_WIDTH, INTLOOM_OPCODE_VCOPY);
    intloom_put(bytes, INTLOOM_VCOPY_WAIT_LOAD_LSB, INTLOOM_VCOPY_WAIT_LOAD_WIDTH, (uint64_t)fields->wait_load);
    intloom_put(bytes, INTLOOM_VCOPY_WAIT_MAC_LSB, INTLOOM_VCOPY_WAIT_MAC_WIDTH, (uint64_t)fields->wait_mac);
    intloom_put(bytes, INTLOOM_VCOPY_WAIT_VEC_LSB, INTLOOM_VCOPY_WAIT_VEC_WIDTH, (uint64_t)fields->wait_vec);
    intloom_put(bytes, INTLOOM_VCOPY_WAIT_STORE_LSB, INTLOOM_VCOPY_WAIT_STORE_WIDTH, (uint64_t)fields->wait_store);
    intloom_put(bytes, INTLOOM_VCOPY_A_BASE_LSB, INTLOOM_VCOPY_A_BASE_WIDTH, (uint64_t)fields->a_base);
    intloom_put(bytes, INTLOOM_VCOPY_A_PLANE_LSB, INTLOOM_VCOPY_A_PLANE_WIDTH, (uint64_t)fields->a_plane);
    intloom_put(bytes, INTLOOM_VCOPY_A_ROW_LSB, INTLOOM_VCOPY_A_ROW_WIDTH, (uint64_t)fields->a_row);
    intloom_put(bytes, INTLOOM_VCOPY_A_X_LSB, INTLOOM_VCOPY_A_X_WIDTH, (uint64_t)fields->a_x);
    intloom_put(bytes, INTLOOM_VCOPY_OUT_H_LSB, INTLOOM_VCOPY_OUT_H_WIDTH, (uint64_t)fields->out_h);
    intloom_put(bytes, INTLOOM_VCOPY_OUT_W_LSB, INTLOOM_VCOPY_OUT_W_WIDTH, (uint64_t)fields->out_w);
    intloom_put(bytes, INTLOOM_VCOPY_OUT_BASE_LSB, INTLOOM_VCOPY_OUT_BASE_WIDTH, (uint64_t)fields->out_base);
    intloom_put(bytes, INTLOOM_VCOPY_OUT_PLANE_LSB, INTLOOM_VCOPY_OUT_PLANE_WIDTH, (uint64_t)fields->out_plane);
    intloom_put(bytes, INTLOOM_VCOPY_OUT_ROW_LSB, INTLOOM_VCOPY_OUT_ROW_WIDTH, (uint64_t)fields->out_row);
    intloom_put(bytes, INTLOOM_VCOPY_OUT_X_LSB, INTLOOM_VCOPY_OUT_X_WIDTH, (uint64_t)fields->out_x);
    intloom_put(bytes, INTLOOM_VCOPY_BLOCKS_LSB, INTLOOM_VCOPY_BLOCKS_WIDTH, (uint64_t)fields->blocks);
    intloom_put(bytes, INTLOOM_VCOPY_TABLE_LSB, INTLOOM_VCOPY_TABLE_WIDTH, (uint64_t)fields->table);
    intloom_put(bytes, INTLOOM_VCOPY_UP_H_LSB, INTLOOM_VCOPY_UP_H_WIDTH, (uint64_t)fields->up_h);
    intloom_put(bytes, INTLOOM_VCOPY_UP_W_LSB, INTLOOM_VCOPY_UP_W_WIDTH, (uint64_t)fields->up_w);
    intloom_put(bytes, INTLOOM_VCOPY_ROTATE_LSB, INTLOOM_VCOPY_ROTATE_WIDTH, (uint64_t)fields->rotate);
    intloom_put(bytes, INTLOOM_VCOPY_FIRST_BYTE_LSB, INTLOOM_VCOPY_FIRST_BYTE_WIDTH, (uint64_t)fields->first_byte);
    intloom_put(bytes, INTLOOM_VCOPY_BYTE_COUNT_LSB, INTLOOM_VCOPY_BYTE_COUNT_WIDTH, (uint64_t)fields->byte_count);
    return 0;
}

static inline int intloom_vcopy_decode(struct intloom_vcopy *out, const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    struct intloom_vcopy decoded, *fields = &decoded;
    if (bytes[0] != INTLOOM_OPCODE_VCOPY)
        return -1;
    for (unsigned bit = 277u; bit < 8u * INTLOOM_INSTRUCTION_BYTES; bit++)
        if (intloom_get(bytes, bit, 1u))
            return -1;
    fields->wait_load = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_WAIT_LOAD_LSB, INTLOOM_VCOPY_WAIT_LOAD_WIDTH);
    fields->wait_mac = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_WAIT_MAC_LSB, INTLOOM_VCOPY_WAIT_MAC_WIDTH);
    fields->wait_vec = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_WAIT_VEC_LSB, INTLOOM_VCOPY_WAIT_VEC_WIDTH);
    fields->wait_store = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_WAIT_STORE_LSB, INTLOOM_VCOPY_WAIT_STORE_WIDTH);
    fields->a_base = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_A_BASE_LSB, INTLOOM_VCOPY_A_BASE_WIDTH);
    fields->a_plane = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_A_PLANE_LSB, INTLOOM_VCOPY_A_PLANE_WIDTH);
    fields->a_row = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_A_ROW_LSB, INTLOOM_VCOPY_A_ROW_WIDTH);
    fields->a_x = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_A_X_LSB, INTLOOM_VCOPY_A_X_WIDTH);
    fields->out_h = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_OUT_H_LSB, INTLOOM_VCOPY_OUT_H_WIDTH);
    fields->out_w = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_OUT_W_LSB, INTLOOM_VCOPY_OUT_W_WIDTH);
    fields->out_base = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_OUT_BASE_LSB, INTLOOM_VCOPY_OUT_BASE_WIDTH);
    fields->out_plane = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_OUT_PLANE_LSB, INTLOOM_VCOPY_OUT_PLANE_WIDTH);
    fields->out_row = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_OUT_ROW_LSB, INTLOOM_VCOPY_OUT_ROW_WIDTH);
    fields->out_x = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_OUT_X_LSB, INTLOOM_VCOPY_OUT_X_WIDTH);
    fields->blocks = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_BLOCKS_LSB, INTLOOM_VCOPY_BLOCKS_WIDTH);
    fields->table = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_TABLE_LSB, INTLOOM_VCOPY_TABLE_WIDTH);
    fields->up_h = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_UP_H_LSB, INTLOOM_VCOPY_UP_H_WIDTH);
    fields->up_w = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_UP_W_LSB, INTLOOM_VCOPY_UP_W_WIDTH);
    fields->rotate = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_ROTATE_LSB, INTLOOM_VCOPY_ROTATE_WIDTH);
    fields->first_byte = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_FIRST_BYTE_LSB, INTLOOM_VCOPY_FIRST_BYTE_WIDTH);
    fields->byte_count = (uint32_t)intloom_get(bytes, INTLOOM_VCOPY_BYTE_COUNT_LSB, INTLOOM_VCOPY_BYTE_COUNT_WIDTH);
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->a_base > 1048575u)
        return 5;
    if (fields->a_plane > 1048575u)
        return 6;
    if (fields->a_row > 65535u)
        return 7;
    if (fields->a_x > 255u)
        return 8;
    if (fields->out_h < 1u || fields->out_h > 16383u)
        return 9;
    if (fields->out_w < 1u || fields->out_w > 16383u)
        return 10;
    if (fields->out_base > 1048575u)
        return 11;
    if (fields->out_plane > 1048575u)
        return 12;
    if (fields->out_row > 65535u)
        return 13;
    if (fields->out_x < 1u || fields->out_x > 15u)
        return 14;
    if (fields->blocks < 1u || fields->blocks > 4095u)
        return 15;
    if (fields->table > 1u)
        return 16;
    if (fields->up_h < 1u || fields->up_h > 15u)
        return 17;
    if (fields->up_w < 1u || fields->up_w > 15u)
        return 18;
    if (fields->rotate > 31u)
        return 19;
    if (fields->first_byte > 31u)
        return 20;
    if (fields->byte_count < 1u || fields->byte_count > 32u)
        return 21;
    *out = decoded;
    return 0;
}

/* Quantized sum: clamp((a*m1 + b*m2 + c) * 2^-shift) for every byte. */
struct intloom_vadd {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t a_base; /* First word of operand A. 0 to 1048575 [words] */
    uint32_t a_plane; /* Step of A from one channel block to the next. 0 to 1048575 [words] */
    uint32_t a_row; /* Step of A from one row to the next. 0 to 65535 [words] */
    uint32_t b_base; /* First word of operand B. 0 to 1048575 [words] */
    uint32_t b_plane; /* Step of B from one channel block to the next. 0 to 1048575 [words] */
    uint32_t b_row; /* Step of B from one row to the next. 0 to 65535 [words] */
    uint32_t out_h; /* Output rows. 1 to 16383 [pixels] */
    uint32_t out_w; /* Output pixels in a row. 1 to 16383 [pixels] */
    uint32_t out_base; /* First output word. 0 to 1048575 [words] */
    uint32_t out_plane; /* Step from one output channel block to the next. 0 to 1048575 [words] */
    uint32_t out_row; /* Step from one output row to the next. 0 to 65535 [words] */
    uint32_t out_x; /* Step from one output pixel to the next. 1 to 15 [words] */
    uint32_t blocks; /* Channel blocks. 1 to 4095 */
    uint32_t table; /* Pass every result byte through the vector table. 0 to 1 */
    int32_t m1; /* Factor of the first operand. -2147483648 to 2147483647 */
    int32_t m2; /* Factor of the second operand. -2147483648 to 2147483647 */
    int64_t c; /* Constant added before the shift. -140737488355328 to 140737488355327 */
    uint32_t shift; /* Right shift. 0 to 47 [bits] */
    uint32_t even; /* Round ties to even; else up. 0 to 1 */
};

#define INTLOOM_VADD_OPCODE_LSB 0u
#define INTLOOM_VADD_OPCODE_WIDTH 8u
#define INTLOOM_VADD_WAIT_LOAD_LSB 8u
#define INTLOOM_VADD_WAIT_LOAD_WIDTH 20u
#define INTLOOM_VADD_WAIT_MAC_LSB 28u
#define INTLOOM_VADD_WAIT_MAC_WIDTH 20u
#define INTLOOM_VADD_WAIT_VEC_LSB 48u
#define INTLOOM_VADD_WAIT_VEC_WIDTH 20u
#define INTLOOM_VADD_WAIT_STORE_LSB 68u
#define INTLOOM_VADD_WAIT_STORE_WIDTH 20u
#define INTLOOM_VADD_A_BASE_LSB 88u
#define INTLOOM_VADD_A_BASE_WIDTH 20u
#define INTLOOM_VADD_A_PLANE_LSB 108u
#define INTLOOM_VADD_A_PLANE_WIDTH 20u
#define INTLOOM_VADD_A_ROW_LSB 128u
#define INTLOOM_VADD_A_ROW_WIDTH 16u
#define INTLOOM_VADD_B_BASE_LSB 144u
#define INTLOOM_VADD_B_BASE_WIDTH 20u
#define INTLOOM_VADD_B_PLANE_LSB 164u
#define INTLOOM_VADD_B_PLANE_WIDTH 20u
#define INTLOOM_VADD_B_ROW_LSB 184u
#define INTLOOM_VADD_B_ROW_WIDTH 16u
#define INTLOOM_VADD_OUT_H_LSB 200u
#define INTLOOM_VADD_OUT_H_WIDTH 14u
#define INTLOOM_VADD_OUT_W_LSB 214u
#define INTLOOM_VADD_OUT_W_WIDTH 14u
#define INTLOOM_VADD_OUT_BASE_LSB 228u
#define INTLOOM_VADD_OUT_BASE_WIDTH 20u
#define INTLOOM_VADD_OUT_PLANE_LSB 248u
#define INTLOOM_VADD_OUT_PLANE_WIDTH 20u
#define INTLOOM_VADD_OUT_ROW_LSB 268u
#define INTLOOM_VADD_OUT_ROW_WIDTH 16u
#define INTLOOM_VADD_OUT_X_LSB 284u
#define INTLOOM_VADD_OUT_X_WIDTH 4u
#define INTLOOM_VADD_BLOCKS_LSB 288u
#define INTLOOM_VADD_BLOCKS_WIDTH 12u
#define INTLOOM_VADD_TABLE_LSB 300u
#define INTLOOM_VADD_TABLE_WIDTH 1u
#define INTLOOM_VADD_M1_LSB 301u
#define INTLOOM_VADD_M1_WIDTH 32u
#define INTLOOM_VADD_M2_LSB 333u
#define INTLOOM_VADD_M2_WIDTH 32u
#define INTLOOM_VADD_C_LSB 365u
#define INTLOOM_VADD_C_WIDTH 48u
#define INTLOOM_VADD_SHIFT_LSB 413u
#define INTLOOM_VADD_SHIFT_WIDTH 6u
#define INTLOOM_VADD_EVEN_LSB 419u
#define INTLOOM_VADD_EVEN_WIDTH 1u

static inline void intloom_vadd_defaults(struct intloom_vadd *fields)
{
    memset(fields, 0, sizeof *fields);
    fields->out_h = 1u;
    fields->out_w = 1u;
    fields->out_x = 1u;
    fields->blocks = 1u;
}

static inline int intloom_vadd_encode(const struct intloom_vadd *fields, uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->a_base > 1048575u)
        return 5;
    if (fields->a_plane > 1048575u)
        return 6;
    if (fields->a_row > 65535u)
        return 7;
    if (fields->b_base > 1048575u)
        return 8;
    if (fields->b_plane > 1048575u)
        return 9;
    if (fields->b_row > 65535u)
        return 10;
    if (fields->out_h < 1u || fields->out_h > 16383u)
        return 11;
    if (fields->out_w < 1u || fields->out_w > 16383u)
        return 12;
    if (fields->out_base > 1048575u)
        return 13;
    if (fields->out_plane > 1048575u)
        return 14;
    if (fields->out_row > 65535u)
        return 15;
    if (fields->out_x < 1u || fields->out_x > 15u)
        return 16;
    if (fields->blocks < 1u || fields->blocks > 4095u)
        return 17;
    if (fields->table > 1u)
        return 18;
    if (fields->c < (-140737488355327LL - 1) || fields->c > 140737488355327LL)
        return 21;
    if (fields->shift > 47u)
        return 22;
    if (fields->even > 1u)
        return 23;
    memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES);
    intloom_put(bytes, INTLOOM_VADD_OPCODE_LSB, INTLOOM_VADD_OPCODE_WIDTH, INTLOOM_OPCODE_VADD);
    intloom_put(bytes, INTLOOM_VADD_WAIT_LOAD_LSB, INTLOOM_VADD_WAIT_LOAD_WIDTH, (uint64_t)fields->wait_load);
    intloom_put(bytes, INTLOOM_VADD_WAIT_MAC_LSB, INTLOOM_VADD_WAIT_MAC_WIDTH, (uint64_t)fields->wait_mac);
    intloom_put(bytes, INTLOOM_VADD_WAIT_VEC_LSB, INTLOOM_VADD_WAIT_VEC_WIDTH, (uint64_t)fields->wait_vec);
    intloom_put(bytes, INTLOOM_VADD_WAIT_STORE_LSB, INTLOOM_VADD_WAIT_STORE_WIDTH, (uint64_t)fields->wait_store);
    intloom_put(bytes, INTLOOM_VADD_A_BASE_LSB, INTLOOM_VADD_A_BASE_WIDTH, (uint64_t)fields->a_base);
    intloom_put(bytes, INTLOOM_VADD_A_PLANE_LSB, INTLOOM_VADD_A_PLANE_WIDTH, (uint64_t)fields->a_plane);
    intloom_put(bytes, INTLOOM_VADD_A_ROW_LSB, INTLOOM_VADD_A_ROW_WIDTH, (uint64_t)fields->a_row);
    intloom_put(bytes, INTLOOM_VADD_B_BASE_LSB, INTLOOM_VADD_B_BASE_WIDTH, (uint64_t)fields->b_base);
    intloom_put(bytes, INTLOOM_VADD_B_PLANE_LSB, INTLOOM_VADD_B_PLANE_WIDTH, (uint64_t)fields->b_plane);
    intloom_put(bytes, INTLOOM_VADD_B_ROW_LSB, INTLOOM_VADD_B_ROW_WIDTH, (uint64_t)fields->b_row);
    intloom_put(bytes, INTLOOM_VADD_OUT_H_LSB, INTLOOM_VADD_OUT_H_WIDTH, (uint64_t)fields->out_h);
    intloom_put(bytes, INTLOOM_VADD_OUT_W_LSB, INTLOOM_VADD_OUT_W_WIDTH, (uint64_t)fields->out_w);
    intloom_put(bytes, INTLOOM_VADD_OUT_BASE_LSB, INTLOOM_VADD_OUT_BASE_WIDTH, (uint64_t)fields->out_base);
    intloom_put(bytes, INTLOOM_VADD_OUT_PLANE_LSB, INTLOOM_VADD_OUT_PLANE_WIDTH, (uint64_t)fields->out_plane);
    intloom_put(bytes, INTLOOM_VADD_OUT_ROW_LSB, INTLOOM_VADD_OUT_ROW_WIDTH, (uint64_t)fields->out_row);
    intloom_put(bytes, INTLOOM_VADD_OUT_X_LSB, INTLOOM_VADD_OUT_X_WIDTH, (uint64_t)fields->out_x);
    intloom_put(bytes, INTLOOM_VADD_BLOCKS_LSB, INTLOOM_VADD_BLOCKS_WIDTH, (uint64_t)fields->blocks);
    intloom_put(bytes, INTLOOM_VADD_TABLE_LSB, INTLOOM_VADD_TABLE_WIDTH, (uint64_t)fields->table);
    intloom_put(bytes, INTLOOM_VADD_M1_LSB, INTLOOM_VADD_M1_WIDTH, (uint64_t)fields->m1);
    intloom_put(bytes, INTLOOM_VADD_M2_LSB, INTLOOM_VADD_M2_WIDTH, (uint64_t)fields->m2);
    intloom_put(bytes, INTLOOM_VADD_C_LSB, INTLOOM_VADD_C_WIDTH, (uint64_t)fields->c);
    intloom_put(bytes, INTLOOM_VADD_SHIFT_LSB, INTLOOM_VADD_SHIFT_WIDTH, (uint64_t)fields->shift);
    intloom_put(bytes, INTLOOM_VADD_EVEN_LSB, INTLOOM_VADD_EVEN_WIDTH, (uint64_t)fields->even);
    return 0;
}

static inline int intloom_vadd_decode(struct intloom_vadd *out, const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    struct intloom_vadd decoded, *fields = &decoded;
    if (bytes[0] != INTLOOM_OPCODE_VADD)
        return -1;
    for (unsigned bit = 420u; bit < 8u * INTLOOM_INSTRUCTION_BYTES; bit++)
        if (intloom_get(bytes, bit, 1u))
            return -1;
    fields->wait_load = (uint32_t)intloom_get(bytes, INTLOOM_VADD_WAIT_LOAD_LSB, INTLOOM_VADD_WAIT_LOAD_WIDTH);
    fields->wait_mac = (uint32_t)intloom_get(bytes, INTLOOM_VADD_WAIT_MAC_LSB, INTLOOM_VADD_WAIT_MAC_WIDTH);
    fields->wait_vec = (uint32_t)intloom_get(bytes, INTLOOM_VADD_WAIT_VEC_LSB, INTLOOM_VADD_WAIT_VEC_WIDTH);
    fields->wait_store = (uint32_t)intloom_get(bytes, INTLOOM_VADD_WAIT_STORE_LSB, INTLOOM_VADD_WAIT_STORE_WIDTH);
    fields->a_base = (uint32_t)intloom_get(bytes, INTLOOM_VADD_A_BASE_LSB, INTLOOM_VADD_A_BASE_WIDTH);
    fields->a_plane = (uint32_t)intloom_get(bytes, INTLOOM_VADD_A_PLANE_LSB, INTLOOM_VADD_A_PLANE_WIDTH);
    fields->a_row = (uint32_t)intloom_get(bytes, INTLOOM_VADD_A_ROW_LSB, INTLOOM_VADD_A_ROW_WIDTH);
    fields->b_base = (uint32_t)intloom_get(bytes, INTLOOM_VADD_B_BASE_LSB, INTLOOM_VADD_B_BASE_WIDTH);
    fields->b_plane = (uint32_t)intloom_get(bytes, INTLOOM_VADD_B_PLANE_LSB, INTLOOM_VADD_B_PLANE_WIDTH);
    fields->b_row = (uint32_t)intloom_get(bytes, INTLOOM_VADD_B_ROW_LSB, INTLOOM_VADD_B_ROW_WIDTH);
    fields->out_h = (uint32_t)intloom_get(bytes, INTLOOM_VADD_OUT_H_LSB, INTLOOM_VADD_OUT_H_WIDTH);
    fields->out_w = (uint32_t)intloom_get(bytes, INTLOOM_VADD_OUT_W_LSB, INTLOOM_VADD_OUT_W_WIDTH);
    fields->out_base = (uint32_t)intloom_get(bytes, INTLOOM_VADD_OUT_BASE_LSB, INTLOOM_VADD_OUT_BASE_WIDTH);
    fields->out_plane = (uint32_t)intloom_get(bytes, INTLOOM_VADD_OUT_PLANE_LSB, INTLOOM_VADD_OUT_PLANE_WIDTH);
    fields->out_row = (uint32_t)intloom_get(bytes, INTLOOM_VADD_OUT_ROW_LSB, INTLOOM_VADD_OUT_ROW_WIDTH);
    fields->out_x = (uint32_t)intloom_get(bytes, INTLOOM_VADD_OUT_X_LSB, INTLOOM_VADD_OUT_X_WIDTH);
    fields->blocks = (uint32_t)intloom_get(bytes, INTLOOM_VADD_BLOCKS_LSB, INTLOOM_VADD_BLOCKS_WIDTH);
    fields->table = (uint32_t)intloom_get(bytes, INTLOOM_VADD_TABLE_LSB, INTLOOM_VADD_TABLE_WIDTH);
    fields->m1 = (int32_t)intloom_get_signed(bytes, INTLOOM_VADD_M1_LSB, INTLOOM_VADD_M1_WIDTH);
    fields->m2 = (int32_t)intloom_get_signed(bytes, INTLOOM_VADD_M2_LSB, INTLOOM_VADD_M2_WIDTH);
    fields->c = (int64_t)intloom_get_signed(bytes, INTLOOM_VADD_C_LSB, INTLOOM_VADD_C_WIDTH);
    fields->shift = (uint32_t)intloom_get(bytes, INTLOOM_VADD_SHIFT_LSB, INTLOOM_VADD_SHIFT_WIDTH);
    fields->even = (uint32_t)intloom_get(bytes, INTLOOM_VADD_EVEN_LSB, INTLOOM_VADD_EVEN_WIDTH);
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->a_base > 1048575u)
        return 5;
    if (fields->a_plane > 1048575u)
        return 6;
    if (fields->a_row > 65535u)
        return 7;
    if (fields->b_base > 1048575u)
        return 8;
    if (fields->b_plane > 1048575u)
        return 9;
    if (fields->b_row > 65535u)
        return 10;
    if (fields->out_h < 1u || fields->out_h > 16383u)
        return 11;
    if (fields->out_w < 1u || fields->out_w > 16383u)
        return 12;
    if (fields->out_base > 1048575u)
        return 13;
    if (fields->out_plane > 1048575u)
        return 14;
    if (fields->out_row > 65535u)
        return 15;
    if (fields->out_x < 1u || fields->out_x > 15u)
        return 16;
    if (fields->blocks < 1u || fields->blocks > 4095u)
        return 17;
    if (fields->table > 1u)
        return 18;
    if (fields->c < (-140737488355327LL - 1) || fields->c > 140737488355327LL)
        return 21;
    if (fields->shift > 47u)
        return 22;
    if (fields->even > 1u)
        return 23;
    *out = decoded;
    return 0;
}

/* Quantized product: clamp(((a-zp_a)*(b-zp_b)*m1 + c) * 2^-shift) for every byte; m2 must equal m1. */
struct intloom_vmul {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t a_base; /* First word of operand A. 0 to 1048575 [words] */
    uint32_t a_plane; /* Step of A from one channel block to the next. 0 to 1048575 [words] */
    uint32_t a_row; /* Step of A from one row to the next. 0 to 65535 [words] */
    uint32_t b_base; /* First word of operand B. 0 to 1048575 [words] */
    uint32_t b_plane; /* Step of B from one channel block to the next. 0 to 1048575 [words] */
    uint32_t b_row; /* Step of B from one row to the next. 0 to 65535 [words] */
    uint32_t out_h; /* Output rows. 1 to 16383 [pixels] */
    uint32_t out_w; /* Output pixels in a row. 1 to 16383 [pixels] */
    uint32_t out_base; /* First output word. 0 to 1048575 [words] */
    uint32_t out_plane; /* Step from one output channel block to the next. 0 to 1048575 [words] */
    uint32_t out_row; /* Step from one output row to the next. 0 to 65535 [words] */
    uint32_t out_x; /* Step from one output pixel to the next. 1 to 15 [words] */
    uint32_t blocks; /* Channel blocks. 1 to 4095 */
    uint32_t table; /* Pass every result byte through the vector table. 0 to 1 */
    int32_t m1; /* Factor of the first operand. -2147483648 to 2147483647 */
    int32_t m2; /* Factor of the second operand. -2147483648 to 2147483647 */
    int64_t c; /* Constant added before the shift. -140737488355328 to 140737488355327 */
    uint32_t shift; /* Right shift. 0 to 47 [bits] */
    uint32_t even; /* Round ties to even; else up. 0 to 1 */
    int32_t zp_a; /* Zero point of A. -128 to 127 */
    int32_t zp_b; /* Zero point of B. -128 to 127 */
};

#define INTLOOM_VMUL_OPCODE_LSB 0u
#define INTLOOM_VMUL_OPCODE_WIDTH 8u
#define INTLOOM_VMUL_WAIT_LOAD_LSB 8u
#define INTLOOM_VMUL_WAIT_LOAD_WIDTH 20u
#define INTLOOM_VMUL_WAIT_MAC_LSB 28u
#define INTLOOM_VMUL_WAIT_MAC_WIDTH 20u
#define INTLOOM_VMUL_WAIT_VEC_LSB 48u
#define INTLOOM_VMUL_WAIT_VEC_WIDTH 20u
#define INTLOOM_VMUL_WAIT_STORE_LSB 68u
#define INTLOOM_VMUL_WAIT_STORE_WIDTH 20u
#define INTLOOM_VMUL_A_BASE_LSB 88u
#define INTLOOM_VMUL_A_BASE_WIDTH 20u
#define INTLOOM_VMUL_A_PLANE_LSB 108u
#define INTLOOM_VMUL_A_PLANE_WIDTH 20u
#define INTLOOM_VMUL_A_ROW_LSB 128u
#define INTLOOM_VMUL_A_ROW_WIDTH 16u
#define INTLOOM_VMUL_B_BASE_LSB 144u
#define INTLOOM_VMUL_B_BASE_WIDTH 20u
#define INTLOOM_VMUL_B_PLANE_LSB 164u
#define INTLOOM_VMUL_B_PLANE_WIDTH 20u
#define INTLOOM_VMUL_B_ROW_LSB 184u
#define INTLOOM_VMUL_B_ROW_WIDTH 16u
#define INTLOOM_VMUL_OUT_H_LSB 200u
#define INTLOOM_VMUL_OUT_H_WIDTH 14u
#define INTLOOM_VMUL_OUT_W_LSB 214u
#define INTLOOM_VMUL_OUT_W_WIDTH 14u
#define INTLOOM_VMUL_OUT_BASE_LSB 228u
#define INTLOOM_VMUL_OUT_BASE_WIDTH 20u
#define INTLOOM_VMUL_OUT_PLANE_LSB 248u
#define INTLOOM_VMUL_OUT_PLANE_WIDTH 20u
#define INTLOOM_VMUL_OUT_ROW_LSB 268u
#define INTLOOM_VMUL_OUT_ROW_WIDTH 16u
#define INTLOOM_VMUL_OUT_X_LSB 284u
#define INTLOOM_VMUL_OUT_X_WIDTH 4u
#define INTLOOM_VMUL_BLOCKS_LSB 288u
#define INTLOOM_VMUL_BLOCKS_WIDTH 12u
#define INTLOOM_VMUL_TABLE_LSB 300u
#define INTLOOM_VMUL_TABLE_WIDTH 1u
#define INTLOOM_VMUL_M1_LSB 301u
#define INTLOOM_VMUL_M1_WIDTH 32u
#define INTLOOM_VMUL_M2_LSB 333u
#define INTLOOM_VMUL_M2_WIDTH 32u
#define INTLOOM_VMUL_C_LSB 365u
#define INTLOOM_VMUL_C_WIDTH 48u
#define INTLOOM_VMUL_SHIFT_LSB 413u
#define INTLOOM_VMUL_SHIFT_WIDTH 6u
#define INTLOOM_VMUL_EVEN_LSB 419u
#define INTLOOM_VMUL_EVEN_WIDTH 1u
#define INTLOOM_VMUL_ZP_A_LSB 420u
#define INTLOOM_VMUL_ZP_A_WIDTH 8u
#define INTLOOM_VMUL_ZP_B_LSB 428u
#define INTLOOM_VMUL_ZP_B_WIDTH 8u

static inline void intloom_vmul_defaults(struct intloom_vmul *fields)
{
    memset(fields, 0, sizeof *fields);
    fields->out_h = 1u;
    fields->out_w = 1u;
    fields->out_x = 1u;
    fields->blocks = 1u;
}

static inline int intloom_vmul_encode(const struct intloom_vmul *fields, uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->a_base > 1048575u)
        return 5;
    if (fields->a_plane > 1048575u)
        return 6;
    if (fields->a_row > 65535u)
        return 7;
    if (fields->b_base > 1048575u)
        return 8;
    if (fields->b_plane > 1048575u)
        return 9;
    if (fields->b_row > 65535u)
        return 10;
    if (fields->out_h < 1u || fields->out_h > 16383u)
        return 11;
    if (fields->out_w < 1u || fields->out_w > 16383u)
        return 12;
    if (fields->out_base > 1048575u)
        return 13;
    if (fields->out_plane > 1048575u)
        return 14;
    if (fields->out_row > 65535u)
        return 15;
    if (fields->out_x < 1u || fields->out_x > 15u)
        return 16;
    if (fields->blocks < 1u || fields->blocks > 4095u)
        return 17;
    if (fields->table > 1u)
        return 18;
    if (fields->c < (-140737488355327LL - 1) || fields->c > 140737488355327LL)
        return 21;
    if (fields->shift > 47u)
        return 22;
    if (fields->even > 1u)
        return 23;
    if (fields->zp_a < (-127 - 1) || fields->zp_a > 127)
        return 24;
    if (fields->zp_b < (-127 - 1) || fields->zp_b > 127)
        return 25;
    memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES);
    intloom_put(bytes, INTLOOM_VMUL_OPCODE_LSB, INTLOOM_VMUL_OPCODE_WIDTH, INTLOOM_OPCODE_VMUL);
    intloom_put(bytes, INTLOOM_VMUL_WAIT_LOAD_LSB, INTLOOM_VMUL_WAIT_LOAD_WIDTH, (uint64_t)fields->wait_load);
    intloom_put(bytes, INTLOOM_VMUL_WAIT_MAC_LSB, INTLOOM_VMUL_WAIT_MAC_WIDTH, (uint64_t)fields->wait_mac);
    intloom_put(bytes, INTLOOM_VMUL_WAIT_VEC_LSB, INTLOOM_VMUL_WAIT_VEC_WIDTH, (uint64_t)fields->wait_vec);
    intloom_put(bytes, INTLOOM_VMUL_WAIT_STORE_LSB, INTLOOM_VMUL_WAIT_STORE_WIDTH, (uint64_t)fields->wait_store);
    intloom_put(bytes, INTLOOM_VMUL_A_BASE_LSB, INTLOOM_VMUL_A_BASE_WIDTH, (uint64_t)fields->a_base);
    intloom_put(bytes, INTLOOM_VMUL_A_PLANE_LSB, INTLOOM_VMUL_A_PLANE_WIDTH, (uint64_t)fields->a_plane);
    intloom_put(bytes, INTLOOM_VMUL_A_ROW_LSB, INTLOOM_VMUL_A_ROW_WIDTH, (uint64_t)fields->a_row);
    intloom_put(bytes, INTLOOM_VMUL_B_BASE_LSB, INTLOOM_VMUL_B_BASE_WIDTH, (uint64_t)fields->b_base);
    intloom_put(bytes, INTLOOM_VMUL_B_PLANE_LSB, INTLOOM_VMUL_B_PLANE_WIDTH, (uint64_t)fields->b_plane);
    intloom_put(bytes, INTLOOM_VMUL_B_ROW_LSB, INTLOOM_VMUL_B_ROW_WIDTH, (uint64_t)fields->b_row);
    intloom_put(bytes, INTLOOM_VMUL_OUT_H_LSB, INTLOOM_VMUL_OUT_H_WIDTH, (uint64_t)fields->out_h);
    intloom_put(bytes, INTLOOM_VMUL_OUT_W_LSB, INTLOOM_VMUL_OUT_W_WIDTH, (uint64_t)fields->out_w);
    intloom_put(bytes, INTLOOM_VMUL_OUT_BASE_LSB, INTLOOM_VMUL_OUT_BASE_WIDTH, (uint64_t)fields->out_base);
    intloom_put(bytes, INTLOOM_VMUL_OUT_PLANE_LSB, INTLOOM_VMUL_OUT_PLANE_WIDTH, (uint64_t)fields->out_plane);
    intloom_put(bytes, INTLOOM_VMUL_OUT_ROW_LSB, INTLOOM_VMUL_OUT_ROW_WIDTH, (uint64_t)fields->out_row);
    intloom_put(bytes, INTLOOM_VMUL_OUT_X_LSB, INTLOOM_VMUL_OUT_X_WIDTH, (uint64_t)fields->out_x);
    intloom_put(bytes, INTLOOM_VMUL_BLOCKS_LSB, INTLOOM_VMUL_BLOCKS_WIDTH, (uint64_t)fields->blocks);
    intloom_put(bytes, INTLOOM_VMUL_TABLE_LSB, INTLOOM_VMUL_TABLE_WIDTH, (uint64_t)fields->table);
    intloom_put(bytes, INTLOOM_VMUL_M1_LSB, INTLOOM_VMUL_M1_WIDTH, (uint64_t)fields->m1);
    intloom_put(bytes, INTLOOM_VMUL_M2_LSB, INTLOOM_VMUL_M2_WIDTH, (uint64_t)fields->m2);
    intloom_put(bytes, INTLOOM_VMUL_C_LSB, INTLOOM_VMUL_C_WIDTH, (uint64_t)fields->c);
    intloom_put(bytes, INTLOOM_VMUL_SHIFT_LSB, INTLOOM_VMUL_SHIFT_WIDTH, (uint64_t)fields->shift);
    intloom_put(bytes, INTLOOM_VMUL_EVEN_LSB, INTLOOM_VMUL_EVEN_WIDTH, (uint64_t)fields->even);
    intloom_put(bytes, INTLOOM_VMUL_ZP_A_LSB, INTLOOM_VMUL_ZP_A_WIDTH, (uint64_t)fields->zp_a);
    intloom_put(bytes, INTLOOM_VMUL_ZP_B_LSB, INTLOOM_VMUL_ZP_B_WIDTH, (uint64_t)fields->zp_b);
    return 0;
}

static inline int intloom_vmul_decode(struct intloom_vmul *out, const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    struct intloom_vmul decoded, *fields = &decoded;
    if (bytes[0] != INTLOOM_OPCODE_VMUL)
        return -1;
    for (unsigned bit = 436u; bit < 8u * INTLOOM_INSTRUCTION_BYTES; bit++)
        if (intloom_get(bytes, bit, 1u))
            return -1;
    fields->wait_load = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_WAIT_LOAD_LSB, INTLOOM_VMUL_WAIT_LOAD_WIDTH);
    fields->wait_mac = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_WAIT_MAC_LSB, INTLOOM_VMUL_WAIT_MAC_WIDTH);
    fields->wait_vec = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_WAIT_VEC_LSB, INTLOOM_VMUL_WAIT_VEC_WIDTH);
    fields->wait_store = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_WAIT_STORE_LSB, INTLOOM_VMUL_WAIT_STORE_WIDTH);
    fields->a_base = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_A_BASE_LSB, INTLOOM_VMUL_A_BASE_WIDTH);
    fields->a_plane = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_A_PLANE_LSB, INTLOOM_VMUL_A_PLANE_WIDTH);
    fields->a_row = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_A_ROW_LSB, INTLOOM_VMUL_A_ROW_WIDTH);
    fields->b_base = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_B_BASE_LSB, INTLOOM_VMUL_B_BASE_WIDTH);
    fields->b_plane = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_B_PLANE_LSB, INTLOOM_VMUL_B_PLANE_WIDTH);
    fields->b_row = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_B_ROW_LSB, INTLOOM_VMUL_B_ROW_WIDTH);
    fields->out_h = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_OUT_H_LSB, INTLOOM_VMUL_OUT_H_WIDTH);
    fields->out_w = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_OUT_W_LSB, INTLOOM_VMUL_OUT_W_WIDTH);
    fields->out_base = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_OUT_BASE_LSB, INTLOOM_VMUL_OUT_BASE_WIDTH);
    fields->out_plane = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_OUT_PLANE_LSB, INTLOOM_VMUL_OUT_PLANE_WIDTH);
    fields->out_row = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_OUT_ROW_LSB, INTLOOM_VMUL_OUT_ROW_WIDTH);
    fields->out_x = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_OUT_X_LSB, INTLOOM_VMUL_OUT_X_WIDTH);
    fields->blocks = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_BLOCKS_LSB, INTLOOM_VMUL_BLOCKS_WIDTH);
    fields->table = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_TABLE_LSB, INTLOOM_VMUL_TABLE_WIDTH);
    fields->m1 = (int32_t)intloom_get_signed(bytes, INTLOOM_VMUL_M1_LSB, INTLOOM_VMUL_M1_WIDTH);
    fields->m2 = (int32_t)intloom_get_signed(bytes, INTLOOM_VMUL_M2_LSB, INTLOOM_VMUL_M2_WIDTH);
    fields->c = (int64_t)intloom_get_signed(bytes, INTLOOM_VMUL_C_LSB, INTLOOM_VMUL_C_WIDTH);
    fields->shift = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_SHIFT_LSB, INTLOOM_VMUL_SHIFT_WIDTH);
    fields->even = (uint32_t)intloom_get(bytes, INTLOOM_VMUL_EVEN_LSB, INTLOOM_VMUL_EVEN_WIDTH);
    fields->zp_a = (int32_t)intloom_get_signed(bytes, INTLOOM_VMUL_ZP_A_LSB, INTLOOM_VMUL_ZP_A_WIDTH);
    fields->zp_b = (int32_t)intloom_get_signed(bytes, INTLOOM_VMUL_ZP_B_LSB, INTLOOM_VMUL_ZP_B_WIDTH);
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->a_base > 1048575u)
        return 5;
    if (fields->a_plane > 1048575u)
        return 6;
    if (fields->a_row > 65535u)
        return 7;
    if (fields->b_base > 1048575u)
        return 8;
    if (fields->b_plane > 1048575u)
        return 9;
    if (fields->b_row > 65535u)
        return 10;
    if (fields->out_h < 1u || fields->out_h > 16383u)
        return 11;
    if (fields->out_w < 1u || fields->out_w > 16383u)
        return 12;
    if (fields->out_base > 1048575u)
        return 13;
    if (fields->out_plane > 1048575u)
        return 14;
    if (fields->out_row > 65535u)
        return 15;
    if (fields->out_x < 1u || fields->out_x > 15u)
        return 16;
    if (fields->blocks < 1u || fields->blocks > 4095u)
        return 17;
    if (fields->table > 1u)
        return 18;
    if (fields->c < (-140737488355327LL - 1) || fields->c > 140737488355327LL)
        return 21;
    if (fields->shift > 47u)
        return 22;
    if (fields->even > 1u)
        return 23;
    if (fields->zp_a < (-127 - 1) || fields->zp_a > 127)
        return 24;
    if (fields->zp_b < (-127 - 1) || fields->zp_b > 127)
        return 25;
    *out = decoded;
    return 0;
}

/* Largest byte of each window; input outside in_h x in_w is ignored. a_base is the word of input row 0, column 0, modulo 2^20. */
struct intloom_vmax {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t a_base; /* First word of operand A. 0 to 1048575 [words] */
    uint32_t a_plane; /* Step of A from one channel block to the next. 0 to 1048575 [words] */
    uint32_t a_row; /* Step of A from one row to the next. 0 to 65535 [words] */
    uint32_t in_h; /* Rows of the input. 1 to 16383 [pixels] */
    uint32_t in_w; /* Pixels in an input row. 1 to 16383 [pixels] */
    int32_t iy0; /* Input row under the window's top row at output row 0. -16384 to 16383 [pixels] */
    int32_t ix0; /* Input column under the window's left column at output column 0. -16384 to 16383 [pixels] */
    uint32_t kernel_h; /* Window height. 1 to 255 */
    uint32_t kernel_w; /* Window width. 1 to 255 */
    uint32_t stride_h; /* Input rows from one output row to the next. 1 to 15 */
    uint32_t stride_w; /* Input pixels from one output pixel to the next. 1 to 15 */
    uint32_t out_h; /* Output rows. 1 to 16383 [pixels] */
    uint32_t out_w; /* Output pixels in a row. 1 to 16383 [pixels] */
    uint32_t out_base; /* First output word. 0 to 1048575 [words] */
    uint32_t out_plane; /* Step from one output channel block to the next. 0 to 1048575 [words] */
    uint32_t out_row; /* Step from one output row to the next. 0 to 65535 [words] */
    uint32_t out_x; /* Step from one output pixel to the next. 1 to 15 [words] */
    uint32_t blocks; /* Channel blocks. 1 to 4095 */
    uint32_t table; /* Pass every result byte through the vector table. 0 to 1 */
};

#define INTLOOM_VMAX_OPCODE_LSB 0u
#define INTLOOM_VMAX_OPCODE_WIDTH 8u
#define INTLOOM_VMAX_WAIT_LOAD_LSB 8u
#define INTLOOM_VMAX_WAIT_LOAD_WIDTH 20u
#define INTLOOM_VMAX_WAIT_MAC_LSB 28u
#define INTLOOM_VMAX_WAIT_MAC_WIDTH 20u
#define INTLOOM_VMAX_WAIT_VEC_LSB 48u
#define INTLOOM_VMAX_WAIT_VEC_WIDTH 20u
#define INTLOOM_VMAX_WAIT_STORE_LSB 68u
#define INTLOOM_VMAX_WAIT_STORE_WIDTH 20u
#define INTLOOM_VMAX_A_BASE_LSB 88u
#define INTLOOM_VMAX_A_BASE_WIDTH 20u
#define INTLOOM_VMAX_A_PLANE_LSB 108u
#define INTLOOM_VMAX_A_PLANE_WIDTH 20u
#define INTLOOM_VMAX_A_ROW_LSB 128u
#define INTLOOM_VMAX_A_ROW_WIDTH 16u
#define INTLOOM_VMAX_IN_H_LSB 144u
#define INTLOOM_VMAX_IN_H_WIDTH 14u
#define INTLOOM_VMAX_IN_W_LSB 158u
#define INTLOOM_VMAX_IN_W_WIDTH 14u
#define INTLOOM_VMAX_IY0_LSB 172u
#define INTLOOM_VMAX_IY0_WIDTH 15u
#define INTLOOM_VMAX_IX0_LSB 187u
#define INTLOOM_VMAX_IX0_WIDTH 15u
#define INTLOOM_VMAX_KERNEL_H_LSB 202u
#define INTLOOM_VMAX_KERNEL_H_WIDTH 8u
#define INTLOOM_VMAX_KERNEL_W_LSB 210u
#define INTLOOM_VMAX_KERNEL_W_WIDTH 8u
#define INTLOOM_VMAX_STRIDE_H_LSB 218u
#define INTLOOM_VMAX_STRIDE_H_WIDTH 4u
#define INTLOOM_VMAX_STRIDE_W_LSB 222u
#define INTLOOM_VMAX_STRIDE_W_WIDTH 4u
#define INTLOOM_VMAX_OUT_H_LSB 226u
#define INTLOOM_VMAX_OUT_H_WIDTH 14u
#define INTLOOM_VMAX_OUT_W_LSB 240u
#define INTLOOM_VMAX_OUT_W_WIDTH 14u
#define INTLOOM_VMAX_OUT_BASE_LSB 254u
#define INTLOOM_VMAX_OUT_BASE_WIDTH 20u
#define INTLOOM_VMAX_OUT_PLANE_LSB 274u
#define INTLOOM_VMAX_OUT_PLANE_WIDTH 20u
#define INTLOOM_VMAX_OUT_ROW_LSB 294u
#define INTLOOM_VMAX_OUT_ROW_WIDTH 16u
#define INTLOOM_VMAX_OUT_X_LSB 310u
#define INTLOOM_VMAX_OUT_X_WIDTH 4u
#define INTLOOM_VMAX_BLOCKS_LSB 314u
#define INTLOOM_VMAX_BLOCKS_WIDTH 12u
#define INTLOOM_VMAX_TABLE_LSB 326u
#define INTLOOM_VMAX_TABLE_WIDTH 1u

static inline void intloom_vmax_defaults(struct intloom_vmax *fields)
{
    memset(fields, 0, sizeof *fields);
    fields->in_h = 1u;
    fields->in_w = 1u;
    fields->kernel_h = 1u;
    fields->kernel_w = 1u;
    fields->stride_h = 1u;
    fields->stride_w = 1u;
    fields->out_h = 1u;
    fields->out_w = 1u;
    fields->out_x = 1u;
    fields->blocks = 1u;
}

static inline int intloom_vmax_encode(const struct intloom_vmax *fields, uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->a_base > 1048575u)
        return 5;
    if (fields->a_plane > 1048575u)
        return 6;
    if (fields->a_row > 65535u)
        return 7;
    if (fields->in_h < 1u || fields->in_h > 16383u)
        return 8;
    if (fields->in_w < 1u || fields->in_w > 16383u)
        return 9;
    if (fields->iy0 < (-16383 - 1) || fields->iy0 > 16383)
        return 10;
    if (fields->ix0 < (-16383 - 1) || fields->ix0 > 16383)
        return 11;
    if (fields->kernel_h < 1u || fields->kernel_h > 255u)
        return 12;
    if (fields->kernel_w < 1u || fields->kernel_w > 255u)
        return 13;
    if (fields->stride_h < 1u || fields->stride_h > 15u)
        return 14;
    if (fields->stride_w < 1u || fields->stride_w > 15u)
        return 15;
    if (fields->out_h < 1u || fields->out_h > 16383u)
        return 16;
    if (fields->out_w < 1u || fields->out_w > 16383u)
        return 17;
    if (fields->out_base > 1048575u)
        return 18;
    if (fields->out_plane > 1048575u)
        return 19;
    if (fields->out_row > 65535u)
        return 20;
    if (fields->out_x < 1u || fields->out_x > 15u)
        return 21;
    if (fields->blocks < 1u || fields->blocks > 4095u)
        return 22;
    if (fields->table > 1u)
        return 23;
    memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES);
    intloom_put(bytes, INTLOOM_VMAX_OPCODE_LSB, INTLOOM_VMAX_OPCODE_WIDTH, INTLOOM_OPCODE_VMAX);
    intloom_put(bytes, INTLOOM_VMAX_WAIT_LOAD_LSB, INTLOOM_VMAX_WAIT_LOAD_WIDTH, (uint64_t)fields->wait_load);
    intloom_put(bytes, INTLOOM_VMAX_WAIT_MAC_LSB, INTLOOM_VMAX_WAIT_MAC_WIDTH, (uint64_t)fields->wait_mac);
    intloom_put(bytes, INTLOOM_VMAX_WAIT_VEC_LSB, INTLOOM_VMAX_WAIT_VEC_WIDTH, (uint64_t)fields->wait_vec);
    intloom_put(bytes, INTLOOM_VMAX_WAIT_STORE_LSB, INTLOOM_VMAX_WAIT_STORE_WIDTH, (uint64_t)fields->wait_store);
    intloom_put(bytes, INTLOOM_VMAX_A_BASE_LSB, INTLOOM_VMAX_A_BASE_WIDTH, (uint64_t)fields->a_base);
    intloom_put(bytes, INTLOOM_VMAX_A_PLANE_LSB, INTLOOM_VMAX_A_PLANE_WIDTH, (uint64_t)fields->a_plane);
    intloom_put(bytes, INTLOOM_VMAX_A_ROW_LSB, INTLOOM_VMAX_A_ROW_WIDTH, (uint64_t)fields->a_row);
    intloom_put(bytes, INTLOOM_VMAX_IN_H_LSB, INTLOOM_VMAX_IN_H_WIDTH, (uint64_t)fields->in_h);
    intloom_put(bytes, INTLOOM_VMAX_IN_W_LSB, INTLOOM_VMAX_IN_W_WIDTH, (uint64_t)fields->in_w);
    intloom_put(bytes, INTLOOM_VMAX_IY0_LSB, INTLOOM_VMAX_IY0_WIDTH, (uint64_t)fields->iy0);
    intloom_put(bytes, INTLOOM_VMAX_IX0_LSB, INTLOOM_VMAX_IX0_WIDTH, (uint64_t)fields->ix0);
    intloom_put(bytes, INTLOOM_VMAX_KERNEL_H_LSB, INTLOOM_VMAX_KERNEL_H_WIDTH, (uint64_t)fields->kernel_h);
    intloom_put(bytes, INTLOOM_VMAX_KERNEL_W_LSB, INTLOOM_VMAX_KERNEL_W_WIDTH, (uint64_t)fields->kernel_w);
    intloom_put(bytes, INTLOOM_VMAX_STRIDE_H_LSB, INTLOOM_VMAX_STRIDE_H_WIDTH, (uint64_t)fields->stride_h);
    intloom_put(bytes, INTLOOM_VMAX_STRIDE_W_LSB, INTLOOM_VMAX_STRIDE_W_WIDTH, (uint64_t)fields->stride_w);
    intloom_put(bytes, INTLOOM_VMAX_OUT_H_LSB, INTLOOM_VMAX_OUT_H_WIDTH, (uint64_t)fields->out_h);
    intloom_put(bytes, INTLOOM_VMAX_OUT_W_LSB, INTLOOM_VMAX_OUT_W_WIDTH, (uint64_t)fields->out_w);
    intloom_put(bytes, INTLOOM_VMAX_OUT_BASE_LSB, INTLOOM_VMAX_OUT_BASE_WIDTH, (uint64_t)fields->out_base);
    intloom_put(bytes, INTLOOM_VMAX_OUT_PLANE_LSB, INTLOOM_VMAX_OUT_PLANE_WIDTH, (uint64_t)fields->out_plane);
    intloom_put(bytes, INTLOOM_VMAX_OUT_ROW_LSB, INTLOOM_VMAX_OUT_ROW_WIDTH, (uint64_t)fields->out_row);
    intloom_put(bytes, INTLOOM_VMAX_OUT_X_LSB, INTLOOM_VMAX_OUT_X_WIDTH, (uint64_t)fields->out_x);
    intloom_put(bytes, INTLOOM_VMAX_BLOCKS_LSB, INTLOOM_VMAX_BLOCKS_WIDTH, (uint64_t)fields->blocks);
    intloom_put(bytes, INTLOOM_VMAX_TABLE_LSB, INTLOOM_VMAX_TABLE_WIDTH, (uint64_t)fields->table);
    return 0;
}

static inline int intloom_vmax_decode(struct intloom_vmax *out, const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    struct intloom_vmax decoded, *fields = &decoded;
    if (bytes[0] != INTLOOM_OPCODE_VMAX)
        return -1;
    for (unsigned bit = 327u; bit < 8u * INTLOOM_INSTRUCTION_BYTES; bit++)
        if (intloom_get(bytes, bit, 1u))
            return -1;
    fields->wait_load = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_WAIT_LOAD_LSB, INTLOOM_VMAX_WAIT_LOAD_WIDTH);
    fields->wait_mac = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_WAIT_MAC_LSB, INTLOOM_VMAX_WAIT_MAC_WIDTH);
    fields->wait_vec = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_WAIT_VEC_LSB, INTLOOM_VMAX_WAIT_VEC_WIDTH);
    fields->wait_store = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_WAIT_STORE_LSB, INTLOOM_VMAX_WAIT_STORE_WIDTH);
    fields->a_base = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_A_BASE_LSB, INTLOOM_VMAX_A_BASE_WIDTH);
    fields->a_plane = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_A_PLANE_LSB, INTLOOM_VMAX_A_PLANE_WIDTH);
    fields->a_row = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_A_ROW_LSB, INTLOOM_VMAX_A_ROW_WIDTH);
    fields->in_h = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_IN_H_LSB, INTLOOM_VMAX_IN_H_WIDTH);
    fields->in_w = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_IN_W_LSB, INTLOOM_VMAX_IN_W_WIDTH);
    fields->iy0 = (int32_t)intloom_get_signed(bytes, INTLOOM_VMAX_IY0_LSB, INTLOOM_VMAX_IY0_WIDTH);
    fields->ix0 = (int32_t)intloom_get_signed(bytes, INTLOOM_VMAX_IX0_LSB, INTLOOM_VMAX_IX0_WIDTH);
    fields->kernel_h = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_KERNEL_H_LSB, INTLOOM_VMAX_KERNEL_H_WIDTH);
    fields->kernel_w = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_KERNEL_W_LSB, INTLOOM_VMAX_KERNEL_W_WIDTH);
    fields->stride_h = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_STRIDE_H_LSB, INTLOOM_VMAX_STRIDE_H_WIDTH);
    fields->stride_w = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_STRIDE_W_LSB, INTLOOM_VMAX_STRIDE_W_WIDTH);
    fields->out_h = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_OUT_H_LSB, INTLOOM_VMAX_OUT_H_WIDTH);
    fields->out_w = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_OUT_W_LSB, INTLOOM_VMAX_OUT_W_WIDTH);
    fields->out_base = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_OUT_BASE_LSB, INTLOOM_VMAX_OUT_BASE_WIDTH);
    fields->out_plane = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_OUT_PLANE_LSB, INTLOOM_VMAX_OUT_PLANE_WIDTH);
    fields->out_row = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_OUT_ROW_LSB, INTLOOM_VMAX_OUT_ROW_WIDTH);
    fields->out_x = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_OUT_X_LSB, INTLOOM_VMAX_OUT_X_WIDTH);
    fields->blocks = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_BLOCKS_LSB, INTLOOM_VMAX_BLOCKS_WIDTH);
    fields->table = (uint32_t)intloom_get(bytes, INTLOOM_VMAX_TABLE_LSB, INTLOOM_VMAX_TABLE_WIDTH);
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->a_base > 1048575u)
        return 5;
    if (fields->a_plane > 1048575u)
        return 6;
    if (fields->a_row > 65535u)
        return 7;
    if (fields->in_h < 1u || fields->in_h > 16383u)
        return 8;
    if (fields->in_w < 1u || fields->in_w > 16383u)
        return 9;
    if (fields->iy0 < (-16383 - 1) || fields->iy0 > 16383)
        return 10;
    if (fields->ix0 < (-16383 - 1) || fields->ix0 > 16383)
        return 11;
    if (fields->kernel_h < 1u || fields->kernel_h > 255u)
        return 12;
    if (fields->kernel_w < 1u || fields->kernel_w > 255u)
        return 13;
    if (fields->stride_h < 1u || fields->stride_h > 15u)
        return 14;
    if (fields->stride_w < 1u || fields->stride_w > 15u)
        return 15;
    if (fields->out_h < 1u || fields->out_h > 16383u)
        return 16;
    if (fields->out_w < 1u || fields->out_w > 16383u)
        return 17;
    if (fields->out_base > 1048575u)
        return 18;
    if (fields->out_plane > 1048575u)
        return 19;
    if (fields->out_row > 65535u)
        return 20;
    if (fields->out_x < 1u || fields->out_x > 15u)
        return 21;
    if (fields->blocks < 1u || fields->blocks > 4095u)
        return 22;
    if (fields->table > 1u)
        return 23;
    *out = decoded;
    return 0;
}

/* Scaled sum of each window: clamp((sum*m1 + c) * 2^-shift); input outside in_h x in_w counts as zp_in; m2 must equal m1; the sum must fit 18 bits with its sign. */
struct intloom_vavg {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t a_base; /* First word of operand A. 0 to 1048575 [words] */
    uint32_t a_plane; /* Step of A from one channel block to the next. 0 to 1048575 [words] */
    uint32_t a_row; /* Step of A from one row to the next. 0 to 65535 [words] */
    uint32_t in_h; /* Rows of the input. 1 to 16383 [pixels] */
    uint32_t in_w; /* Pixels in an input row. 1 to 16383 [pixels] */
    int32_t iy0; /* Input row under the window's top row at output row 0. -16384 to 16383 [pixels] */
    int32_t ix0; /* Input column under the window's left column at output column 0. -16384 to 16383 [pixels] */
    uint32_t kernel_h; /* Window height. 1 to 255 */
    uint32_t kernel_w; /* Window width. 1 to 255 */
    uint32_t stride_h; /* Input rows from one output row to the next. 1 to 15 */
    uint32_t stride_w; /* Input pixels from one output pixel to the next. 1 to 15 */
    uint32_t out_h; /* Output rows. 1 to 16383 [pixels] */
    uint32_t out_w; /* Output pixels in a row. 1 to 16383 [pixels] */
    uint32_t out_base; /* First output word. 0 to 1048575 [words] */
    uint32_t out_plane; /* Step from one output channel block to the next. 0 to 1048575 [words] */
    uint32_t out_row; /* Step from one output row to the next. 0 to 65535 [words] */
    uint32_t out_x; /* Step from one output pixel to the next. 1 to 15 [words] */
    uint32_t blocks; /* Channel blocks. 1 to 4095 */
    uint32_t table; /* Pass every result byte through the vector table. 0 to 1 */
    int32_t m1; /* Factor of the first operand. -2147483648 to 2147483647 */
    int32_t m2; /* Factor of the second operand. -2147483648 to 2147483647 */
    int64_t c; /* Constant added before the shift. -140737488355328 to 140737488355327 */
    uint32_t shift; /* Right shift. 0 to 47 [bits] */
    uint32_t even; /* Round ties to even; else up. 0 to 1 */
    int32_t zp_in; /* Value of input outside the tensor. -128 to 127 */
};

#define INTLOOM_VAVG_OPCODE_LSB 0u
#define INTLOOM_VAVG_OPCODE_WIDTH 8u
#define INTLOOM_VAVG_WAIT_LOAD_LSB 8u
#define INTLOOM_VAVG_WAIT_LOAD_WIDTH 20u
#define INTLOOM_VAVG_WAIT_MAC_LSB 28u
#define INTLOOM_VAVG_WAIT_MAC_WIDTH 20u
#define INTLOOM_VAVG_WAIT_VEC_LSB 48u
#define INTLOOM_VAVG_WAIT_VEC_WIDTH 20u
#define INTLOOM_VAVG_WAIT_STORE_LSB 68u
#define INTLOOM_VAVG_WAIT_STORE_WIDTH 20u
#define INTLOOM_VAVG_A_BASE_LSB 88u
#define INTLOOM_VAVG_A_BASE_WIDTH 20u
#define INTLOOM_VAVG_A_PLANE_LSB 108u
#define INTLOOM_VAVG_A_PLANE_WIDTH 20u
#define INTLOOM_VAVG_A_ROW_LSB 128u
#define INTLOOM_VAVG_A_ROW_WIDTH 16u
#define INTLOOM_VAVG_IN_H_LSB 144u
#define INTLOOM_VAVG_IN_H_WIDTH 14u
#define INTLOOM_VAVG_IN_W_LSB 158u
#define INTLOOM_VAVG_IN_W_WIDTH 14u
#define INTLOOM_VAVG_IY0_LSB 172u
#define INTLOOM_VAVG_IY0_WIDTH 15u
#define INTLOOM_VAVG_IX0_LSB 187u
#define INTLOOM_VAVG_IX0_WIDTH 15u
#define INTLOOM_VAVG_KERNEL_H_LSB 202u
#define INTLOOM_VAVG_KERNEL_H_WIDTH 8u
#define INTLOOM_VAVG_KERNEL_W_LSB 210u
#define INTLOOM_VAVG_KERNEL_W_WIDTH 8u
#define INTLOOM_VAVG_STRIDE_H_LSB 218u
#define INTLOOM_VAVG_STRIDE_H_WIDTH 4u
#define INTLOOM_VAVG_STRIDE_W_LSB 222u
#define INTLOOM_VAVG_STRIDE_W_WIDTH 4u
#define INTLOOM_VAVG_OUT_H_LSB 226u
#define INTLOOM_VAVG_OUT_H_WIDTH 14u
#define INTLOOM_VAVG_OUT_W_LSB 240u
#define INTLOOM_VAVG_OUT_W_WIDTH 14u
#define INTLOOM_VAVG_OUT_BASE_LSB 254u
#define INTLOOM_VAVG_OUT_BASE_WIDTH 20u
#define INTLOOM_VAVG_OUT_PLANE_LSB 274u
#define INTLOOM_VAVG_OUT_PLANE_WIDTH 20u
#define INTLOOM_VAVG_OUT_ROW_LSB 294u
#define INTLOOM_VAVG_OUT_ROW_WIDTH 16u
#define INTLOOM_VAVG_OUT_X_LSB 310u
#define INTLOOM_VAVG_OUT_X_WIDTH 4u
#define INTLOOM_VAVG_BLOCKS_LSB 314u
#define INTLOOM_VAVG_BLOCKS_WIDTH 12u
#define INTLOOM_VAVG_TABLE_LSB 326u
#define INTLOOM_VAVG_TABLE_WIDTH 1u
#define INTLOOM_VAVG_M1_LSB 327u
#define INTLOOM_VAVG_M1_WIDTH 32u
#define INTLOOM_VAVG_M2_LSB 359u
#define INTLOOM_VAVG_M2_WIDTH 32u
#define INTLOOM_VAVG_C_LSB 391u
#define INTLOOM_VAVG_C_WIDTH 48u
#define INTLOOM_VAVG_SHIFT_LSB 439u
#define INTLOOM_VAVG_SHIFT_WIDTH 6u
#define INTLOOM_VAVG_EVEN_LSB 445u
#define INTLOOM_VAVG_EVEN_WIDTH 1u
#define INTLOOM_VAVG_ZP_IN_LSB 446u
#define INTLOOM_VAVG_ZP_IN_WIDTH 8u

static inline void intloom_vavg_defaults(struct intloom_vavg *fields)
{
    memset(fields, 0, sizeof *fields);
    fields->in_h = 1u;
    fields->in_w = 1u;
    fields->kernel_h = 1u;
    fields->kernel_w = 1u;
    fields->stride_h = 1u;
    fields->stride_w = 1u;
    fields->out_h = 1u;
    fields->out_w = 1u;
    fields->out_x = 1u;
    fields->blocks = 1u;
}

static inline int intloom_vavg_encode(const struct intloom_vavg *fields, uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->a_base > 1048575u)
        return 5;
    if (fields->a_plane > 1048575u)
        return 6;
    if (fields->a_row > 65535u)
        return 7;
    if (fields->in_h < 1u || fields->in_h > 16383u)
        return 8;
    if (fields->in_w < 1u || fields->in_w > 16383u)
        return 9;
    if (fields->iy0 < (-16383 - 1) || fields->iy0 > 16383)
        return 10;
    if (fields->ix0 < (-16383 - 1) || fields->ix0 > 16383)
        return 11;
    if (fields->kernel_h < 1u || fields->kernel_h > 255u)
        return 12;
    if (fields->kernel_w < 1u || fields->kernel_w > 255u)
        return 13;
    if (fields->stride_h < 1u || fields->stride_h > 15u)
        return 14;
    if (fields->stride_w < 1u || fields->stride_w > 15u)
        return 15;
    if (fields->out_h < 1u || fields->out_h > 16383u)
        return 16;
    if (fields->out_w < 1u || fields->out_w > 16383u)
        return 17;
    if (fields->out_base > 1048575u)
        return 18;
    if (fields->out_plane > 1048575u)
        return 19;
    if (fields->out_row > 65535u)
        return 20;
    if (fields->out_x < 1u || fields->out_x > 15u)
        return 21;
    if (fields->blocks < 1u || fields->blocks > 4095u)
        return 22;
    if (fields->table > 1u)
        return 23;
    if (fields->c < (-140737488355327LL - 1) || fields->c > 140737488355327LL)
        return 26;
    if (fields->shift > 47u)
        return 27;
    if (fields->even > 1u)
        return 28;
    if (fields->zp_in < (-127 - 1) || fields->zp_in > 127)
        return 29;
    memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES);
    intloom_put(bytes, INTLOOM_VAVG_OPCODE_LSB, INTLOOM_VAVG_OPCODE_WIDTH, INTLOOM_OPCODE_VAVG);
    intloom_put(bytes, INTLOOM_VAVG_WAIT_LOAD_LSB, INTLOOM_VAVG_WAIT_LOAD_WIDTH, (uint64_t)fields->wait_load);
    intloom_put(bytes, INTLOOM_VAVG_WAIT_MAC_LSB, INTLOOM_VAVG_WAIT_MAC_WIDTH, (uint64_t)fields->wait_mac);
    intloom_put(bytes, INTLOOM_VAVG_WAIT_VEC_LSB, INTLOOM_VAVG_WAIT_VEC_WIDTH, (uint64_t)fields->wait_vec);
    intloom_put(bytes, INTLOOM_VAVG_WAIT_STORE_LSB, INTLOOM_VAVG_WAIT_STORE_WIDTH, (uint64_t)fields->wait_store);
    intloom_put(bytes, INTLOOM_VAVG_A_BASE_LSB, INTLOOM_VAVG_A_BASE_WIDTH, (uint64_t)fields->a_base);
    intloom_put(bytes, INTLOOM_VAVG_A_PLANE_LSB, INTLOOM_VAVG_A_PLANE_WIDTH, (uint64_t)fields->a_plane);
    intloom_put(bytes, INTLOOM_VAVG_A_ROW_LSB, INTLOOM_VAVG_A_ROW_WIDTH, (uint64_t)fields->a_row);
    intloom_put(bytes, INTLOOM_VAVG_IN_H_LSB, INTLOOM_VAVG_IN_H_WIDTH, (uint64_t)fields->in_h);
    intloom_put(bytes, INTLOOM_VAVG_IN_W_LSB, INTLOOM_VAVG_IN_W_WIDTH, (uint64_t)fields->in_w);
    intloom_put(bytes, INTLOOM_VAVG_IY0_LSB, INTLOOM_VAVG_IY0_WIDTH, (uint64_t)fields->iy0);
    intloom_put(bytes, INTLOOM_VAVG_IX0_LSB, INTLOOM_VAVG_IX0_WIDTH, (uint64_t)fields->ix0);
    intloom_put(bytes, INTLOOM_VAVG_KERNEL_H_LSB, INTLOOM_VAVG_KERNEL_H_WIDTH, (uint64_t)fields->kernel_h);
    intloom_put(bytes, INTLOOM_VAVG_KERNEL_W_LSB, INTLOOM_VAVG_KERNEL_W_WIDTH, (uint64_t)fields->kernel_w);
    intloom_put(bytes, INTLOOM_VAVG_STRIDE_H_LSB, INTLOOM_VAVG_STRIDE_H_WIDTH, (uint64_t)fields->stride_h);
    intloom_put(bytes, INTLOOM_VAVG_STRIDE_W_LSB, INTLOOM_VAVG_STRIDE_W_WIDTH, (uint64_t)fields->stride_w);
    intloom_put(bytes, INTLOOM_VAVG_OUT_H_LSB, INTLOOM_VAVG_OUT_H_WIDTH, (uint64_t)fields->out_h);
    intloom_put(bytes, INTLOOM_VAVG_OUT_W_LSB, INTLOOM_VAVG_OUT_W_WIDTH, (uint64_t)fields->out_w);
    intloom_put(bytes, INTLOOM_VAVG_OUT_BASE_LSB, INTLOOM_VAVG_OUT_BASE_WIDTH, (uint64_t)fields->out_base);
    intloom_put(bytes, INTLOOM_VAVG_OUT_PLANE_LSB, INTLOOM_VAVG_OUT_PLANE_WIDTH, (uint64_t)fields->out_plane);
    intloom_put(bytes, INTLOOM_VAVG_OUT_ROW_LSB, INTLOOM_VAVG_OUT_ROW_WIDTH, (uint64_t)fields->out_row);
    intloom_put(bytes, INTLOOM_VAVG_OUT_X_LSB, INTLOOM_VAVG_OUT_X_WIDTH, (uint64_t)fields->out_x);
    intloom_put(bytes, INTLOOM_VAVG_BLOCKS_LSB, INTLOOM_VAVG_BLOCKS_WIDTH, (uint64_t)fields->blocks);
    intloom_put(bytes, INTLOOM_VAVG_TABLE_LSB, INTLOOM_VAVG_TABLE_WIDTH, (uint64_t)fields->table);
    intloom_put(bytes, INTLOOM_VAVG_M1_LSB, INTLOOM_VAVG_M1_WIDTH, (uint64_t)fields->m1);
    intloom_put(bytes, INTLOOM_VAVG_M2_LSB, INTLOOM_VAVG_M2_WIDTH, (uint64_t)fields->m2);
    intloom_put(bytes, INTLOOM_VAVG_C_LSB, INTLOOM_VAVG_C_WIDTH, (uint64_t)fields->c);
    intloom_put(bytes, INTLOOM_VAVG_SHIFT_LSB, INTLOOM_VAVG_SHIFT_WIDTH, (uint64_t)fields->shift);
    intloom_put(bytes, INTLOOM_VAVG_EVEN_LSB, INTLOOM_VAVG_EVEN_WIDTH, (uint64_t)fields->even);
    intloom_put(bytes, INTLOOM_VAVG_ZP_IN_LSB, INTLOOM_VAVG_ZP_IN_WIDTH, (uint64_t)fields->zp_in);
    return 0;
}

static inline int intloom_vavg_decode(struct intloom_vavg *out, const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])
{
    struct intloom_vavg decoded, *fields = &decoded;
    if (bytes[0] != INTLOOM_OPCODE_VAVG)
        return -1;
    for (unsigned bit = 454u; bit < 8u * INTLOOM_INSTRUCTION_BYTES; bit++)
        if (intloom_get(bytes, bit, 1u))
            return -1;
    fields->wait_load = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_WAIT_LOAD_LSB, INTLOOM_VAVG_WAIT_LOAD_WIDTH);
    fields->wait_mac = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_WAIT_MAC_LSB, INTLOOM_VAVG_WAIT_MAC_WIDTH);
    fields->wait_vec = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_WAIT_VEC_LSB, INTLOOM_VAVG_WAIT_VEC_WIDTH);
    fields->wait_store = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_WAIT_STORE_LSB, INTLOOM_VAVG_WAIT_STORE_WIDTH);
    fields->a_base = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_A_BASE_LSB, INTLOOM_VAVG_A_BASE_WIDTH);
    fields->a_plane = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_A_PLANE_LSB, INTLOOM_VAVG_A_PLANE_WIDTH);
    fields->a_row = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_A_ROW_LSB, INTLOOM_VAVG_A_ROW_WIDTH);
    fields->in_h = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_IN_H_LSB, INTLOOM_VAVG_IN_H_WIDTH);
    fields->in_w = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_IN_W_LSB, INTLOOM_VAVG_IN_W_WIDTH);
    fields->iy0 = (int32_t)intloom_get_signed(bytes, INTLOOM_VAVG_IY0_LSB, INTLOOM_VAVG_IY0_WIDTH);
    fields->ix0 = (int32_t)intloom_get_signed(bytes, INTLOOM_VAVG_IX0_LSB, INTLOOM_VAVG_IX0_WIDTH);
    fields->kernel_h = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_KERNEL_H_LSB, INTLOOM_VAVG_KERNEL_H_WIDTH);
    fields->kernel_w = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_KERNEL_W_LSB, INTLOOM_VAVG_KERNEL_W_WIDTH);
    fields->stride_h = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_STRIDE_H_LSB, INTLOOM_VAVG_STRIDE_H_WIDTH);
    fields->stride_w = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_STRIDE_W_LSB, INTLOOM_VAVG_STRIDE_W_WIDTH);
    fields->out_h = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_OUT_H_LSB, INTLOOM_VAVG_OUT_H_WIDTH);
    fields->out_w = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_OUT_W_LSB, INTLOOM_VAVG_OUT_W_WIDTH);
    fields->out_base = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_OUT_BASE_LSB, INTLOOM_VAVG_OUT_BASE_WIDTH);
    fields->out_plane = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_OUT_PLANE_LSB, INTLOOM_VAVG_OUT_PLANE_WIDTH);
    fields->out_row = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_OUT_ROW_LSB, INTLOOM_VAVG_OUT_ROW_WIDTH);
    fields->out_x = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_OUT_X_LSB, INTLOOM_VAVG_OUT_X_WIDTH);
    fields->blocks = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_BLOCKS_LSB, INTLOOM_VAVG_BLOCKS_WIDTH);
    fields->table = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_TABLE_LSB, INTLOOM_VAVG_TABLE_WIDTH);
    fields->m1 = (int32_t)intloom_get_signed(bytes, INTLOOM_VAVG_M1_LSB, INTLOOM_VAVG_M1_WIDTH);
    fields->m2 = (int32_t)intloom_get_signed(bytes, INTLOOM_VAVG_M2_LSB, INTLOOM_VAVG_M2_WIDTH);
    fields->c = (int64_t)intloom_get_signed(bytes, INTLOOM_VAVG_C_LSB, INTLOOM_VAVG_C_WIDTH);
    fields->shift = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_SHIFT_LSB, INTLOOM_VAVG_SHIFT_WIDTH);
    fields->even = (uint32_t)intloom_get(bytes, INTLOOM_VAVG_EVEN_LSB, INTLOOM_VAVG_EVEN_WIDTH);
    fields->zp_in = (int32_t)intloom_get_signed(bytes, INTLOOM_VAVG_ZP_IN_LSB, INTLOOM_VAVG_ZP_IN_WIDTH);
    if (fields->wait_load > 1048575u)
        return 1;
    if (fields->wait_mac > 1048575u)
        return 2;
    if (fields->wait_vec > 1048575u)
        return 3;
    if (fields->wait_store > 1048575u)
        return 4;
    if (fields->a_base > 1048575u)
        return 5;
    if (fields->a_plane > 1048575u)
        return 6;
    if (fields->a_row > 65535u)
        return 7;
    if (fields->in_h < 1u || fields->in_h > 16383u)
        return 8;
    if (fields->in_w < 1u || fields->in_w > 16383u)
        return 9;
    if (fields->iy0 < (-16383 - 1) || fields->iy0 > 16383)
        return 10;
    if (fields->ix0 < (-16383 - 1) || fields->ix0 > 16383)
        return 11;
    if (fields->kernel_h < 1u || fields->kernel_h > 255u)
        return 12;
    if (fields->kernel_w < 1u || fields->kernel_w > 255u)
        return 13;
    if (fields->stride_h < 1u || fields->stride_h > 15u)
        return 14;
    if (fields->stride_w < 1u || fields->stride_w > 15u)
        return 15;
    if (fields->out_h < 1u || fields->out_h > 16383u)
        return 16;
    if (fields->out_w < 1u || fields->out_w > 16383u)
        return 17;
    if (fields->out_base > 1048575u)
        return 18;
    if (fields->out_plane > 1048575u)
        return 19;
    if (fields->out_row > 65535u)
        return 20;
    if (fields->out_x < 1u || fields->out_x > 15u)
        return 21;
    if (fields->blocks < 1u || fields->blocks > 4095u)
        return 22;
    if (fields->table > 1u)
        return 23;
    if (fields->c < (-140737488355327LL - 1) || fields->c > 140737488355327LL)
        return 26;
    if (fields->shift > 47u)
        return 27;
    if (fields->even > 1u)
        return 28;
    if (fields->zp_in < (-127 - 1) || fields->zp_in > 127)
        return 29;
    *out = decoded;
    return 0;
}

#endif
