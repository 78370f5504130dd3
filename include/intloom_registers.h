/* Written by `make generated` from hw/spec: do not edit.
 *
 * Registers: byte offsets from the AXI4-Lite base, fields, and codes.
 */
#ifndef INTLOOM_REGISTERS_H
#define INTLOOM_REGISTERS_H

#define INTLOOM_MAGIC 0x4d4f4f4cu
#define INTLOOM_REGISTER_VERSION 3u
#define INTLOOM_ISA_VERSION 3u

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
#define INTLOOM_REG_STATUS_CAUSE_MASK 0x00001f00u /* Error cause; see below. */
#define INTLOOM_REG_STATUS_UNIT_LSB 13u
#define INTLOOM_REG_STATUS_UNIT_MASK 0x0000e000u /* The unit that reported the error. */
#define INTLOOM_REG_ERROR_INDEX 0x018u /* ro: Index of the instruction that caused the error, from 0. With cause SCRATCH_PARITY or WEIGHT_PARITY: the word's address in the memory. */
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
#define INTLOOM_REG_BASE_LOW 0x02cu /* rw: Memory base, lower half: a byte address. Bits below the word size are 0. START latches it. */
#define INTLOOM_REG_BASE_HIGH 0x030u /* rw: Memory base, upper half. START latches it. */
#define INTLOOM_REG_WATCHDOG 0x034u /* rw: Cycles without a finished instruction or bus beat after which the program stops with an error that names the unit without progress; 0: disabled. */
#define INTLOOM_REG_LIMIT 0x038u /* rw: Words from the memory base that a program may address; START latches it. 0: no program can run. */
#define INTLOOM_REG_LOCK 0x03cu /* w1s: Locks against further writes. */
#define INTLOOM_REG_LOCK_WINDOW_LSB 0u
#define INTLOOM_REG_LOCK_WINDOW_MASK 0x00000001u /* BASE_LOW, BASE_HIGH and LIMIT keep their values until the reset input. */
#define INTLOOM_REG_OUTSTANDING 0x040u /* ro: What is in flight on the memory bus. The reset command ends when it is 0. */
#define INTLOOM_REG_OUTSTANDING_READS_LSB 0u
#define INTLOOM_REG_OUTSTANDING_READS_MASK 0x000000ffu /* Read bursts whose address was taken and whose last beat has not come. */
#define INTLOOM_REG_OUTSTANDING_WRITES_LSB 8u
#define INTLOOM_REG_OUTSTANDING_WRITES_MASK 0x0000ff00u /* Write bursts whose address was taken and whose response has not come. */
#define INTLOOM_REG_OUTSTANDING_OFFERED_LSB 16u
#define INTLOOM_REG_OUTSTANDING_OFFERED_MASK 0x00070000u /* An offer on AR, AW and W, from the lowest bit on, was not taken. */
#define INTLOOM_REG_CAP_ROWS 0x080u /* ro: Parameter rows. Input-channel lanes of the MAC array, and bytes in a word of every memory. A power of two, 4 to 32. */
#define INTLOOM_REG_CAP_COLS 0x084u /* ro: Parameter cols. Output-channel lanes of the MAC array. A power of two, 4 to 64. */
#define INTLOOM_REG_CAP_LANES 0x088u /* ro: Parameter lanes. Parallel requantizer lanes; an output pixel is read out of the accumulators in cols/lanes cycles. Divides rows and cols. */
#define INTLOOM_REG_CAP_STRIP 0x08cu /* ro: Parameter strip. Accumulators in a bank: the longest strip of pixels that is multiplied by one weight tile. A power of two, 16 to 256. */
#define INTLOOM_REG_CAP_SCRATCH_KIB 0x090u /* ro: Parameter scratch_kib. Scratchpad for activations, KiB. A power of two, 4 to 1024. */
#define INTLOOM_REG_CAP_SCRATCH_BANKS 0x094u /* ro: Parameter scratch_banks. Scratchpad banks, interleaved by word. A power of two, 2 to 16. */
#define INTLOOM_REG_CAP_WEIGHT_KIB 0x098u /* ro: Parameter weight_kib. Weight memory, KiB: a circular buffer. A power of two, 2 to 1024. */
#define INTLOOM_REG_CAP_AXI_DATA_BITS 0x09cu /* ro: Parameter axi_data_bits. AXI4 data width: 32, 64, 128 or 256; 0 means 8*rows, one word per beat. On a narrower port a word takes several beats, on a wider one a beat carries one word. */
#define INTLOOM_REG_CAP_AXI_ADDR_BITS 0x0a0u /* ro: Parameter axi_addr_bits. AXI4 address width, 32 to 64. */
#define INTLOOM_REG_CAP_AXI_BURST 0x0a4u /* ro: Parameter axi_burst. Longest AXI burst in beats. A power of two, 4 to 256; at least 4 words, and at most 4 KiB. */
#define INTLOOM_REG_CAP_AXI_OUTSTANDING 0x0a8u /* ro: Parameter axi_outstanding. Outstanding AXI bursts in each direction. A power of two, 1 to 32. */
#define INTLOOM_REG_CAP_AXI_PROT 0x0acu /* ro: Parameter axi_prot. AxPROT of all accesses, 0 to 7. Bit 1 is 0 for secure accesses. 2: data, non-secure, unprivileged. */
#define INTLOOM_REG_CAP_AXI_CACHE 0x0b0u /* ro: Parameter axi_cache. AxCACHE of all accesses, 0 to 15. 3: normal memory, not cacheable, bufferable. */
#define INTLOOM_REG_CAP_AXI_QOS 0x0b4u /* ro: Parameter axi_qos. AxQOS of all accesses, 0 to 15. */
#define INTLOOM_REG_CAP_AXI_USER_BITS 0x0b8u /* ro: Parameter axi_user_bits. Width of AxUSER, 0 to 32; 0: the accelerator has no such ports. */
#define INTLOOM_REG_CAP_AXI_USER 0x0bcu /* ro: Parameter axi_user. AxUSER of all accesses; it must fit axi_user_bits. */
#define INTLOOM_REG_CAP_REGISTER_ERRORS 0x0c0u /* ro: Parameter register_errors. The AXI4-Lite port answers SLVERR to accesses where no register is, and to writes of read-only registers; else OKAY. */
#define INTLOOM_REG_CAP_MANTISSA_BITS 0x0c4u /* ro: Parameter mantissa_bits. Significant bits of a requantization scale, 8 to 24; 24 represents an fp32 scale exactly. */
#define INTLOOM_REG_CAP_ACC_BITS 0x0c8u /* ro: Parameter acc_bits. Width of an accumulator, 20 to 32. */
#define INTLOOM_REG_CAP_MATCH 0x0ccu /* ro: Parameter match. Rounding mode of the requantizers: ort (as fp32 arithmetic) or exact (one rounding). */
#define INTLOOM_REG_CAP_QUEUE_DEPTH 0x0d0u /* ro: Parameter queue_depth. Depth of each unit's instruction queue. A power of two, 2 to 64. */
#define INTLOOM_REG_CAP_VECTOR_MULTIPLY 0x0d4u /* ro: Parameter vector_multiply. The vector unit can multiply tensors (VMUL). */
#define INTLOOM_REG_CAP_VECTOR_AVERAGE 0x0d8u /* ro: Parameter vector_average. The vector unit can average windows (VAVG). */
#define INTLOOM_REG_CAP_VECTOR_LANES 0x0dcu /* ro: Parameter vector_lanes. Bytes that the vector unit processes per cycle; a word takes rows/vector_lanes cycles. Divides rows; 0 means rows. */
#define INTLOOM_REG_CAP_LUT_PRODUCTS 0x0e0u /* ro: Parameter lut_products. Int8 products built from LUTs instead of DSP blocks in FPGA synthesis: first the 5*rows of VDEPTHWISE, then those of the array. A larger number means all. */
#define INTLOOM_REG_CAP_TRACE 0x0e4u /* ro: Parameter trace. The accelerator has a trace port that reports the start and end of every instruction. */
#define INTLOOM_REG_CAP_CLOCK_GATING 0x0e8u /* ro: Parameter clock_gating. Components without work have their clock stopped; cycles are the same either way. */
#define INTLOOM_REG_CAP_VECTOR_SOFTMAX 0x0ecu /* ro: Parameter vector_softmax. The vector unit can compute a Softmax (VEXP, VSOFTMAX). */
#define INTLOOM_REG_CAP_VECTOR_NORM 0x0f0u /* ro: Parameter vector_norm. The vector unit can compute a layer normalization (VNORM); false if vector_lanes is less than rows/4. */
#define INTLOOM_REG_CAP_WEIGHT_SUMS 0x0f4u /* ro: Parameter weight_sums. The MAC array can subtract zp_in times the sum of its weights (CONV field subtract_zp_in): products of two tensors. */
#define INTLOOM_REG_CAP_VECTOR_DEPTHWISE 0x0f8u /* ro: Parameter vector_depthwise. The vector unit can compute depthwise convolutions (VDEPTHWISE), while the array works; false if vector_lanes is less than rows/4. */
#define INTLOOM_REG_CAP_MEMORY_PARITY 0x0fcu /* ro: Parameter memory_parity. The scratchpad has a parity bit per byte, the weight memory one per word: a word with a flipped bit stops the program with an error. Cycles are the same either way. */
#define INTLOOM_REG_CAP_WORD_CODE 0x100u /* ro: Parameter word_code. The load unit can decode words (LOAD field coded): weights take fewer words in memory, without loss. */
#define INTLOOM_REG_CAP_CONSTANT_CHECK 0x104u /* ro: Parameter constant_check. The load unit can check the CRC of the words that it reads (LOAD field crc): flipped bits in constants stop the program with an error. Cycles are the same either way. */
#define INTLOOM_REG_CAP_MULTIPLIER_BITS 0x108u /* ro: Parameter multiplier_bits. Bits of the wider operand of the FPGA's multipliers, the other one has 18: 18 (ECP5, Gowin) or 25 (7 series, UltraScale+). With 25, two products of a pixel share a multiplier. Cycles are the same either way. */
#define INTLOOM_REG_CYCLES 0x180u /* ro: Cycles from start to done or error. */
#define INTLOOM_REG_READ_BEATS 0x184u /* ro: Beats of the AXI port read, including instruction fetch. */
#define INTLOOM_REG_WRITE_BEATS 0x188u /* ro: Beats of the AXI port written. */
#define INTLOOM_REG_LOAD_BUSY 0x18cu /* ro: Cycles in which the LOAD unit processed a word. */
#define INTLOOM_REG_LOAD_STALL_NO_INSTRUCTION 0x190u /* ro: Cycles in which the LOAD unit stalled: NO_INSTRUCTION. */
#define INTLOOM_REG_LOAD_STALL_WAIT 0x194u /* ro: Cycles in which the LOAD unit stalled: WAIT. */
#define INTLOOM_REG_LOAD_STALL_MEMORY 0x198u /* ro: Cycles in which the LOAD unit stalled: MEMORY. */
#define INTLOOM_REG_LOAD_STALL_WEIGHTS 0x19cu /* ro: Cycles in which the LOAD unit stalled: WEIGHTS. */
#define INTLOOM_REG_LOAD_STALL_ACCUMULATORS 0x1a0u /* ro: Cycles in which the LOAD unit stalled: ACCUMULATORS. */
#define INTLOOM_REG_LOAD_DONE 0x1a4u /* ro: Instructions that the LOAD unit has finished; waits refer to it. */
#define INTLOOM_REG_MAC_BUSY 0x1a8u /* ro: Cycles in which the MAC unit processed a word. */
#define INTLOOM_REG_MAC_STALL_NO_INSTRUCTION 0x1acu /* ro: Cycles in which the MAC unit stalled: NO_INSTRUCTION. */
#define INTLOOM_REG_MAC_STALL_WAIT 0x1b0u /* ro: Cycles in which the MAC unit stalled: WAIT. */
#define INTLOOM_REG_MAC_STALL_MEMORY 0x1b4u /* ro: Cycles in which the MAC unit stalled: MEMORY. */
#define INTLOOM_REG_MAC_STALL_WEIGHTS 0x1b8u /* ro: Cycles in which the MAC unit stalled: WEIGHTS. */
#define INTLOOM_REG_MAC_STALL_ACCUMULATORS 0x1bcu /* ro: Cycles in which the MAC unit stalled: ACCUMULATORS. */
#define INTLOOM_REG_MAC_DONE 0x1c0u /* ro: Instructions that the MAC unit has finished; waits refer to it. */
#define INTLOOM_REG_VEC_BUSY 0x1c4u /* ro: Cycles in which the VEC unit processed a word. */
#define INTLOOM_REG_VEC_STALL_NO_INSTRUCTION 0x1c8u /* ro: Cycles in which the VEC unit stalled: NO_INSTRUCTION. */
#define INTLOOM_REG_VEC_STALL_WAIT 0x1ccu /* ro: Cycles in which the VEC unit stalled: WAIT. */
#define INTLOOM_REG_VEC_STALL_MEMORY 0x1d0u /* ro: Cycles in which the VEC unit stalled: MEMORY. */
#define INTLOOM_REG_VEC_STALL_WEIGHTS 0x1d4u /* ro: Cycles in which the VEC unit stalled: WEIGHTS. */
#define INTLOOM_REG_VEC_STALL_ACCUMULATORS 0x1d8u /* ro: Cycles in which the VEC unit stalled: ACCUMULATORS. */
#define INTLOOM_REG_VEC_DONE 0x1dcu /* ro: Instructions that the VEC unit has finished; waits refer to it. */
#define INTLOOM_REG_STORE_BUSY 0x1e0u /* ro: Cycles in which the STORE unit processed a word. */
#define INTLOOM_REG_STORE_STALL_NO_INSTRUCTION 0x1e4u /* ro: Cycles in which the STORE unit stalled: NO_INSTRUCTION. */
#define INTLOOM_REG_STORE_STALL_WAIT 0x1e8u /* ro: Cycles in which the STORE unit stalled: WAIT. */
#define INTLOOM_REG_STORE_STALL_MEMORY 0x1ecu /* ro: Cycles in which the STORE unit stalled: MEMORY. */
#define INTLOOM_REG_STORE_STALL_WEIGHTS 0x1f0u /* ro: Cycles in which the STORE unit stalled: WEIGHTS. */
#define INTLOOM_REG_STORE_STALL_ACCUMULATORS 0x1f4u /* ro: Cycles in which the STORE unit stalled: ACCUMULATORS. */
#define INTLOOM_REG_STORE_DONE 0x1f8u /* ro: Instructions that the STORE unit has finished; waits refer to it. */

/* The counters are consecutive registers. */
#define INTLOOM_COUNTERS 31u
#define INTLOOM_FIRST_COUNTER INTLOOM_REG_CYCLES
#define INTLOOM_COUNTER_NAMES {"CYCLES", "READ_BEATS", "WRITE_BEATS", "LOAD_BUSY", "LOAD_STALL_NO_INSTRUCTION", "LOAD_STALL_WAIT", "LOAD_STALL_MEMORY", "LOAD_STALL_WEIGHTS", "LOAD_STALL_ACCUMULATORS", "LOAD_DONE", "MAC_BUSY", "MAC_STALL_NO_INSTRUCTION", "MAC_STALL_WAIT", "MAC_STALL_MEMORY", "MAC_STALL_WEIGHTS", "MAC_STALL_ACCUMULATORS", "MAC_DONE", "VEC_BUSY", "VEC_STALL_NO_INSTRUCTION", "VEC_STALL_WAIT", "VEC_STALL_MEMORY", "VEC_STALL_WEIGHTS", "VEC_STALL_ACCUMULATORS", "VEC_DONE", "STORE_BUSY", "STORE_STALL_NO_INSTRUCTION", "STORE_STALL_WAIT", "STORE_STALL_MEMORY", "STORE_STALL_WEIGHTS", "STORE_STALL_ACCUMULATORS", "STORE_DONE"}

enum intloom_unit {
    INTLOOM_UNIT_LOAD = 0,
    INTLOOM_UNIT_MAC = 1,
    INTLOOM_UNIT_VEC = 2,
    INTLOOM_UNIT_STORE = 3,
    INTLOOM_UNIT_CONTROL = 4,
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
    INTLOOM_CAUSE_PROGRAM_CHECK = 12,
    INTLOOM_CAUSE_SCRATCH_PARITY = 13,
    INTLOOM_CAUSE_WEIGHT_PARITY = 14,
    INTLOOM_CAUSE_OUTSIDE_WINDOW = 15,
    INTLOOM_CAUSE_CONSTANT_CHECK = 16,
};

enum intloom_stall {
    INTLOOM_STALL_NO_INSTRUCTION = 0,
    INTLOOM_STALL_WAIT = 1,
    INTLOOM_STALL_MEMORY = 2,
    INTLOOM_STALL_WEIGHTS = 3,
    INTLOOM_STALL_ACCUMULATORS = 4,
};

#define INTLOOM_CAUSES 17u
#define INTLOOM_CAUSE_NAMES {"NONE", "BAD_OPCODE", "BAD_FIELD", "WRONG_PROGRAM", "SCRATCH_RANGE", "READ_SLVERR", "READ_DECERR", "WRITE_SLVERR", "WRITE_DECERR", "WATCHDOG", "NO_END", "FETCH_ERROR", "PROGRAM_CHECK", "SCRATCH_PARITY", "WEIGHT_PARITY", "OUTSIDE_WINDOW", "CONSTANT_CHECK"}

#endif
