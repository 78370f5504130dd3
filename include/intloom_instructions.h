/* Written by `make generated` from hw/spec: do not edit.
 *
 * Opcodes and fields of all instructions; every field has its meaning and its range.
 *
 * `INTLOOM_<NAME>_FIELDS(FIELD)` expands `FIELD(member, lsb, width, is_signed, minimum, maximum, initial)` for every field
 * after the opcode; `INTLOOM_<NAME>_WIDTH` is the number of bits up to the last field.
 */
#ifndef INTLOOM_INSTRUCTIONS_H
#define INTLOOM_INSTRUCTIONS_H

#include <stdint.h>

#define INTLOOM_INSTRUCTION_BYTES 64u
#define INTLOOM_CHECK_LSB 506u
#define INTLOOM_CHECK_BITS 6u
#define INTLOOM_CRC_BITS 32u
#define INTLOOM_CRC_INITIAL 4294967295u
#define INTLOOM_CRC_POLYNOMIAL 2197175160u
#define INTLOOM_END_CRC_LSB 88u

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
    INTLOOM_OPCODE_VEXP = 70,
    INTLOOM_OPCODE_VSOFTMAX = 71,
    INTLOOM_OPCODE_VNORM = 73,
    INTLOOM_OPCODE_VDEPTHWISE = 72,
};

enum intloom_target {
    INTLOOM_TARGET_SCRATCH = 0,
    INTLOOM_TARGET_WEIGHT = 1,
};

enum intloom_table_use {
    INTLOOM_TABLE_NONE = 0,
    INTLOOM_TABLE_KEEP = 1,
    INTLOOM_TABLE_LOAD = 2,
};

enum intloom_conv_mode {
    INTLOOM_CONV_BLOCKS = 0,
    INTLOOM_CONV_PACKED = 1,
};

/* First instruction of every program. Another version or fingerprint stops the accelerator with cause WRONG_PROGRAM. */
struct intloom_begin {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t version; /* Instruction set version. 0 to 65535 */
    uint32_t fingerprint; /* Fingerprint of the hardware parameters that the program was compiled for. 0 to 4294967295 */
};

#define INTLOOM_BEGIN_WIDTH 136u
#define INTLOOM_BEGIN_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(version, 88u, 16u, 0u, 0, 65535, 0) \
    FIELD(fingerprint, 104u, 32u, 0u, 0, 4294967295, 0)

/* Last instruction. The program is done when its waits are satisfied and all queues and units are empty. */
struct intloom_end {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t crc; /* CRC-32C of all bits of the program before this field; see Program check. 0 to 4294967295 */
};

#define INTLOOM_END_WIDTH 120u
#define INTLOOM_END_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(crc, 88u, 32u, 0u, 0, 4294967295, 0)

/* Copy n2 planes of n1 runs of n0 words from memory. Weight memory addresses wrap at its end. See Coded words and Check of constants. */
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
    uint32_t coded; /* Words in memory of each run, which are the code of its n0 words. 0: they are the n0 words. The hardware parameter word_code enables it. 0 to 65535 [words] */
    uint32_t crc; /* CRC-32 of all words that are read from memory, see Check of constants. 0: they are not checked. The hardware parameter constant_check enables it. 0 to 4294967295 */
};

#define INTLOOM_LOAD_WIDTH 345u
#define INTLOOM_LOAD_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(target, 88u, 1u, 0u, 0, 1, 0) \
    FIELD(dram, 89u, 32u, 0u, 0, 4294967295, 0) \
    FIELD(local, 121u, 20u, 0u, 0, 1048575, 0) \
    FIELD(n0, 141u, 20u, 0u, 1, 1048575, 1) \
    FIELD(n1, 161u, 16u, 0u, 1, 65535, 1) \
    FIELD(n2, 177u, 16u, 0u, 1, 65535, 1) \
    FIELD(dram_s1, 193u, 32u, 0u, 0, 4294967295, 0) \
    FIELD(dram_s2, 225u, 32u, 0u, 0, 4294967295, 0) \
    FIELD(local_s1, 257u, 20u, 0u, 0, 1048575, 0) \
    FIELD(local_s2, 277u, 20u, 0u, 0, 1048575, 0) \
    FIELD(coded, 297u, 16u, 0u, 0, 65535, 0) \
    FIELD(crc, 313u, 32u, 0u, 0, 4294967295, 0)

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

#define INTLOOM_STORE_WIDTH 296u
#define INTLOOM_STORE_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(dram, 88u, 32u, 0u, 0, 4294967295, 0) \
    FIELD(local, 120u, 20u, 0u, 0, 1048575, 0) \
    FIELD(n0, 140u, 20u, 0u, 1, 1048575, 1) \
    FIELD(n1, 160u, 16u, 0u, 1, 65535, 1) \
    FIELD(n2, 176u, 16u, 0u, 1, 65535, 1) \
    FIELD(dram_s1, 192u, 32u, 0u, 0, 4294967295, 0) \
    FIELD(dram_s2, 224u, 32u, 0u, 0, 4294967295, 0) \
    FIELD(local_s1, 256u, 20u, 0u, 0, 1048575, 0) \
    FIELD(local_s2, 276u, 20u, 0u, 0, 1048575, 0)

/* Convolve one tile: loop over output blocks, strips of pixels, kernel rows, kernel columns and input blocks. Each step multiplies a strip by one weight tile. After the last step of a strip, its sums are requantized and written. Input words outside in_h x in_w read as zp_in. */
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
    uint32_t mode; /* 0: array rows are input channels. 1: packed; input words hold rows/4 pixels of 4 channels, and kernel_w counts groups of rows/4 pixels. 0 to 1 */
    uint32_t kernel_h; /* Kernel rows. 1 to 15 */
    uint32_t kernel_w; /* Kernel columns. 1 to 15 */
    uint32_t stride_h; /* Input rows from one output row to the next. 1 to 4 */
    uint32_t stride_w; /* Input pixels from one output pixel to the next. 1 to 4 */
    uint32_t dilation_h; /* Input rows from one kernel row to the next. 1 to 15 */
    uint32_t dilation_w; /* Input pixels from one kernel column to the next. 1 to 15 */
    uint32_t in_blocks; /* Input channel blocks that contribute to each output block. 1 to 4095 */
    uint32_t out_blocks; /* Output channel blocks, of cols channels each. 1 to 4095 */
    uint32_t weight_zero_points; /* The constants hold a zero point for each output channel, which is subtracted from its weights. 0 to 1 */
    uint32_t weights; /* First word of the constants in the weight memory; see Constants of CONV. 0 to 262143 [words] */
    int32_t zp_in; /* Zero point of the input, the value of padding. -128 to 127 */
    uint32_t subtract_zp_in; /* Subtract zp_in times the sum of its weights from each sum. 0: the bias contains this product. The hardware parameter weight_sums enables it. 0 to 1 */
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
    uint32_t res_shift; /* Right shift of the residual addition. 0 to 43 [bits] */
    uint32_t res_even; /* The residual addition rounds ties to even; else up. 0 to 1 */
    uint32_t continue_sums; /* Start from the sums of the CONV before, of as many pixels: both have one output block and one strip. 0 to 1 */
};

#define INTLOOM_CONV_WIDTH 506u
#define INTLOOM_CONV_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(in_base, 88u, 20u, 0u, 0, 1048575, 0) \
    FIELD(in_row_off, 108u, 20u, 0u, 0, 1048575, 0) \
    FIELD(in_ring, 128u, 20u, 0u, 0, 1048575, 0) \
    FIELD(in_plane, 148u, 20u, 0u, 0, 1048575, 0) \
    FIELD(in_row, 168u, 16u, 0u, 0, 65535, 0) \
    FIELD(in_block_step, 184u, 20u, 0u, 0, 1048575, 0) \
    FIELD(in_h, 204u, 14u, 0u, 1, 16383, 1) \
    FIELD(in_w, 218u, 14u, 0u, 1, 16383, 1) \
    FIELD(iy0, 232u, 15u, 1u, -16384, 16383, 0) \
    FIELD(ix0, 247u, 15u, 1u, -16384, 16383, 0) \
    FIELD(mode, 262u, 2u, 0u, 0, 1, 0) \
    FIELD(kernel_h, 264u, 4u, 0u, 1, 15, 1) \
    FIELD(kernel_w, 268u, 4u, 0u, 1, 15, 1) \
    FIELD(stride_h, 272u, 3u, 0u, 1, 4, 1) \
    FIELD(stride_w, 275u, 3u, 0u, 1, 4, 1) \
    FIELD(dilation_h, 278u, 4u, 0u, 1, 15, 1) \
    FIELD(dilation_w, 282u, 4u, 0u, 1, 15, 1) \
    FIELD(in_blocks, 286u, 12u, 0u, 1, 4095, 1) \
    FIELD(out_blocks, 298u, 12u, 0u, 1, 4095, 1) \
    FIELD(weight_zero_points, 310u, 1u, 0u, 0, 1, 0) \
    FIELD(weights, 311u, 18u, 0u, 0, 262143, 0) \
    FIELD(zp_in, 329u, 8u, 1u, -128, 127, 0) \
    FIELD(subtract_zp_in, 337u, 1u, 0u, 0, 1, 0) \
    FIELD(zp_out, 338u, 8u, 1u, -128, 127, 0) \
    FIELD(table, 346u, 2u, 0u, 0, 2, 0) \
    FIELD(out_h, 348u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_w, 362u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_base, 376u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_plane, 396u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_row, 416u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_x, 432u, 4u, 0u, 1, 15, 1) \
    FIELD(out_lane, 436u, 5u, 0u, 0, 31, 0) \
    FIELD(residual, 441u, 1u, 0u, 0, 1, 0) \
    FIELD(res_base, 442u, 20u, 0u, 0, 1048575, 0) \
    FIELD(res_plane, 462u, 20u, 0u, 0, 1048575, 0) \
    FIELD(res_row, 482u, 16u, 0u, 0, 65535, 0) \
    FIELD(res_shift, 498u, 6u, 0u, 0, 43, 0) \
    FIELD(res_even, 504u, 1u, 0u, 0, 1, 0) \
    FIELD(continue_sums, 505u, 1u, 0u, 0, 1, 0)

/* Load the vector unit's 256-byte table from the scratchpad. */
struct intloom_vtable {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t a_base; /* First word of the table. 0 to 1048575 [words] */
};

#define INTLOOM_VTABLE_WIDTH 108u
#define INTLOOM_VTABLE_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_base, 88u, 20u, 0u, 0, 1048575, 0)

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

#define INTLOOM_VCOPY_WIDTH 277u
#define INTLOOM_VCOPY_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_base, 88u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_plane, 108u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_row, 128u, 16u, 0u, 0, 65535, 0) \
    FIELD(a_x, 144u, 8u, 0u, 0, 255, 0) \
    FIELD(out_h, 152u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_w, 166u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_base, 180u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_plane, 200u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_row, 220u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_x, 236u, 4u, 0u, 1, 15, 1) \
    FIELD(blocks, 240u, 12u, 0u, 1, 4095, 1) \
    FIELD(table, 252u, 1u, 0u, 0, 1, 0) \
    FIELD(up_h, 253u, 4u, 0u, 1, 15, 1) \
    FIELD(up_w, 257u, 4u, 0u, 1, 15, 1) \
    FIELD(rotate, 261u, 5u, 0u, 0, 31, 0) \
    FIELD(first_byte, 266u, 5u, 0u, 0, 31, 0) \
    FIELD(byte_count, 271u, 6u, 0u, 1, 32, 1)

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
    int32_t m1; /* Factor of the first operand. -16777216 to 16777215 */
    int32_t m2; /* Factor of the second operand. -16777216 to 16777215 */
    int64_t c; /* Constant added before the shift. -8796093022208 to 8796093022207 */
    uint32_t shift; /* Right shift. 0 to 43 [bits] */
    uint32_t even; /* Round ties to even; else up. 0 to 1 */
};

#define INTLOOM_VADD_WIDTH 402u
#define INTLOOM_VADD_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_base, 88u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_plane, 108u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_row, 128u, 16u, 0u, 0, 65535, 0) \
    FIELD(b_base, 144u, 20u, 0u, 0, 1048575, 0) \
    FIELD(b_plane, 164u, 20u, 0u, 0, 1048575, 0) \
    FIELD(b_row, 184u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_h, 200u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_w, 214u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_base, 228u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_plane, 248u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_row, 268u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_x, 284u, 4u, 0u, 1, 15, 1) \
    FIELD(blocks, 288u, 12u, 0u, 1, 4095, 1) \
    FIELD(table, 300u, 1u, 0u, 0, 1, 0) \
    FIELD(m1, 301u, 25u, 1u, -16777216, 16777215, 0) \
    FIELD(m2, 326u, 25u, 1u, -16777216, 16777215, 0) \
    FIELD(c, 351u, 44u, 1u, -8796093022208, 8796093022207, 0) \
    FIELD(shift, 395u, 6u, 0u, 0, 43, 0) \
    FIELD(even, 401u, 1u, 0u, 0, 1, 0)

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
    int32_t m1; /* Factor of the first operand. -16777216 to 16777215 */
    int32_t m2; /* Factor of the second operand. -16777216 to 16777215 */
    int64_t c; /* Constant added before the shift. -8796093022208 to 8796093022207 */
    uint32_t shift; /* Right shift. 0 to 43 [bits] */
    uint32_t even; /* Round ties to even; else up. 0 to 1 */
    int32_t zp_a; /* Zero point of A. -128 to 127 */
    int32_t zp_b; /* Zero point of B. -128 to 127 */
};

#define INTLOOM_VMUL_WIDTH 418u
#define INTLOOM_VMUL_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_base, 88u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_plane, 108u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_row, 128u, 16u, 0u, 0, 65535, 0) \
    FIELD(b_base, 144u, 20u, 0u, 0, 1048575, 0) \
    FIELD(b_plane, 164u, 20u, 0u, 0, 1048575, 0) \
    FIELD(b_row, 184u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_h, 200u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_w, 214u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_base, 228u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_plane, 248u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_row, 268u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_x, 284u, 4u, 0u, 1, 15, 1) \
    FIELD(blocks, 288u, 12u, 0u, 1, 4095, 1) \
    FIELD(table, 300u, 1u, 0u, 0, 1, 0) \
    FIELD(m1, 301u, 25u, 1u, -16777216, 16777215, 0) \
    FIELD(m2, 326u, 25u, 1u, -16777216, 16777215, 0) \
    FIELD(c, 351u, 44u, 1u, -8796093022208, 8796093022207, 0) \
    FIELD(shift, 395u, 6u, 0u, 0, 43, 0) \
    FIELD(even, 401u, 1u, 0u, 0, 1, 0) \
    FIELD(zp_a, 402u, 8u, 1u, -128, 127, 0) \
    FIELD(zp_b, 410u, 8u, 1u, -128, 127, 0)

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

#define INTLOOM_VMAX_WIDTH 327u
#define INTLOOM_VMAX_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_base, 88u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_plane, 108u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_row, 128u, 16u, 0u, 0, 65535, 0) \
    FIELD(in_h, 144u, 14u, 0u, 1, 16383, 1) \
    FIELD(in_w, 158u, 14u, 0u, 1, 16383, 1) \
    FIELD(iy0, 172u, 15u, 1u, -16384, 16383, 0) \
    FIELD(ix0, 187u, 15u, 1u, -16384, 16383, 0) \
    FIELD(kernel_h, 202u, 8u, 0u, 1, 255, 1) \
    FIELD(kernel_w, 210u, 8u, 0u, 1, 255, 1) \
    FIELD(stride_h, 218u, 4u, 0u, 1, 15, 1) \
    FIELD(stride_w, 222u, 4u, 0u, 1, 15, 1) \
    FIELD(out_h, 226u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_w, 240u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_base, 254u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_plane, 274u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_row, 294u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_x, 310u, 4u, 0u, 1, 15, 1) \
    FIELD(blocks, 314u, 12u, 0u, 1, 4095, 1) \
    FIELD(table, 326u, 1u, 0u, 0, 1, 0)

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
    int32_t m1; /* Factor of the first operand. -16777216 to 16777215 */
    int32_t m2; /* Factor of the second operand. -16777216 to 16777215 */
    int64_t c; /* Constant added before the shift. -8796093022208 to 8796093022207 */
    uint32_t shift; /* Right shift. 0 to 43 [bits] */
    uint32_t even; /* Round ties to even; else up. 0 to 1 */
    int32_t zp_in; /* Value of input outside the tensor. -128 to 127 */
};

#define INTLOOM_VAVG_WIDTH 436u
#define INTLOOM_VAVG_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_base, 88u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_plane, 108u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_row, 128u, 16u, 0u, 0, 65535, 0) \
    FIELD(in_h, 144u, 14u, 0u, 1, 16383, 1) \
    FIELD(in_w, 158u, 14u, 0u, 1, 16383, 1) \
    FIELD(iy0, 172u, 15u, 1u, -16384, 16383, 0) \
    FIELD(ix0, 187u, 15u, 1u, -16384, 16383, 0) \
    FIELD(kernel_h, 202u, 8u, 0u, 1, 255, 1) \
    FIELD(kernel_w, 210u, 8u, 0u, 1, 255, 1) \
    FIELD(stride_h, 218u, 4u, 0u, 1, 15, 1) \
    FIELD(stride_w, 222u, 4u, 0u, 1, 15, 1) \
    FIELD(out_h, 226u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_w, 240u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_base, 254u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_plane, 274u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_row, 294u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_x, 310u, 4u, 0u, 1, 15, 1) \
    FIELD(blocks, 314u, 12u, 0u, 1, 4095, 1) \
    FIELD(table, 326u, 1u, 0u, 0, 1, 0) \
    FIELD(m1, 327u, 25u, 1u, -16777216, 16777215, 0) \
    FIELD(m2, 352u, 25u, 1u, -16777216, 16777215, 0) \
    FIELD(c, 377u, 44u, 1u, -8796093022208, 8796093022207, 0) \
    FIELD(shift, 421u, 6u, 0u, 0, 43, 0) \
    FIELD(even, 427u, 1u, 0u, 0, 1, 0) \
    FIELD(zp_in, 428u, 8u, 1u, -128, 127, 0)

/* Load one byte of each of the 256 exponentials of VSOFTMAX from the scratchpad. */
struct intloom_vexp {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t a_base; /* First word of the bytes. 0 to 1048575 [words] */
    uint32_t part; /* Which byte of an exponential, from the lowest on. 0 to 2 */
};

#define INTLOOM_VEXP_WIDTH 110u
#define INTLOOM_VEXP_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_base, 88u, 20u, 0u, 0, 1048575, 0) \
    FIELD(part, 108u, 2u, 0u, 0, 2, 0)

/* Softmax over the channels of each pixel: with e = exponential[255 + x - maximum] and s the sum of all e, at most 2^32 - 1, the result is clamp(floor((e*(256-less) + floor(s/2)) / s) + zp_out + 128) - 128, and 127 if s is 0. The clamp is from 0 to 255. Bytes beyond the channels count as e = 0. */
struct intloom_vsoftmax {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t a_base; /* First word of operand A. 0 to 1048575 [words] */
    uint32_t a_plane; /* Step of A from one channel block to the next. 0 to 1048575 [words] */
    uint32_t a_row; /* Step of A from one row to the next. 0 to 65535 [words] */
    uint32_t out_h; /* Output rows. 1 to 4095 [pixels] */
    uint32_t out_w; /* Output pixels in a row. 1 to 16383 [pixels] */
    uint32_t out_base; /* First output word. 0 to 1048575 [words] */
    uint32_t out_plane; /* Step from one output channel block to the next. 0 to 1048575 [words] */
    uint32_t out_row; /* Step from one output row to the next. 0 to 65535 [words] */
    uint32_t out_x; /* Step from one output pixel to the next. 1 to 15 [words] */
    uint32_t blocks; /* Channel blocks. 1 to 255 */
    uint32_t table; /* Pass every result byte through the vector table. 0 to 1 */
    uint32_t last_bytes; /* Channels in the last block. 1 to 32 */
    uint32_t less; /* 256 minus the result that stands for 1. 0 to 3 */
    int32_t zp_out; /* Zero point of the result. -128 to 127 */
};

#define INTLOOM_VSOFTMAX_WIDTH 255u
#define INTLOOM_VSOFTMAX_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_base, 88u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_plane, 108u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_row, 128u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_h, 144u, 12u, 0u, 1, 4095, 1) \
    FIELD(out_w, 156u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_base, 170u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_plane, 190u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_row, 210u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_x, 226u, 4u, 0u, 1, 15, 1) \
    FIELD(blocks, 230u, 8u, 0u, 1, 255, 1) \
    FIELD(table, 238u, 1u, 0u, 0, 1, 0) \
    FIELD(last_bytes, 239u, 6u, 0u, 1, 32, 1) \
    FIELD(less, 245u, 2u, 0u, 0, 3, 0) \
    FIELD(zp_out, 247u, 8u, 1u, -128, 127, 0)

/* Layer normalization over the channels of each pixel, or RMS normalization without center. See Operation of VNORM. */
struct intloom_vnorm {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t a_base; /* First word of operand A. 0 to 1048575 [words] */
    uint32_t a_plane; /* Step of A from one channel block to the next. 0 to 1048575 [words] */
    uint32_t a_row; /* Step of A from one row to the next. 0 to 65535 [words] */
    uint32_t out_h; /* Output rows. 1 to 4095 [pixels] */
    uint32_t out_w; /* Output pixels in a row. 1 to 32 [pixels] */
    uint32_t out_base; /* First output word. 0 to 1048575 [words] */
    uint32_t out_plane; /* Step from one output channel block to the next. 0 to 1048575 [words] */
    uint32_t out_row; /* Step from one output row to the next. 0 to 65535 [words] */
    uint32_t out_x; /* Step from one output pixel to the next. 1 to 15 [words] */
    uint32_t blocks; /* Channel blocks. 1 to 255 */
    uint32_t table; /* Pass every result byte through the vector table. 0 to 1 */
    uint32_t b_base; /* First word of the constants. 0 to 1048575 [words] */
    uint32_t last_bytes; /* Channels in the last block. 1 to 32 */
    uint32_t center; /* Subtract the mean; 0: the mean counts as 0. 0 to 1 */
    int32_t zp_in; /* Zero point of the input. -128 to 127 */
    uint64_t epsilon; /* Added to 256 times the variance of the sum of channels. 0 to 35184372088831 */
};

#define INTLOOM_VNORM_WIDTH 311u
#define INTLOOM_VNORM_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_base, 88u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_plane, 108u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_row, 128u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_h, 144u, 12u, 0u, 1, 4095, 1) \
    FIELD(out_w, 156u, 6u, 0u, 1, 32, 1) \
    FIELD(out_base, 162u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_plane, 182u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_row, 202u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_x, 218u, 4u, 0u, 1, 15, 1) \
    FIELD(blocks, 222u, 8u, 0u, 1, 255, 1) \
    FIELD(table, 230u, 1u, 0u, 0, 1, 0) \
    FIELD(b_base, 231u, 20u, 0u, 0, 1048575, 0) \
    FIELD(last_bytes, 251u, 6u, 0u, 1, 32, 1) \
    FIELD(center, 257u, 1u, 0u, 0, 1, 0) \
    FIELD(zp_in, 258u, 8u, 1u, -128, 127, 0) \
    FIELD(epsilon, 266u, 45u, 0u, 0, 35184372088831, 0)

/* Depthwise convolution of one channel block with a kernel of up to five columns. Sums are requantized as those of CONV. Input outside in_h x in_w reads as zp_in. See Constants of VDEPTHWISE. */
struct intloom_vdepthwise {
    uint32_t wait_load; /* Issue only when the LOAD unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_mac; /* Issue only when the MAC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_vec; /* Issue only when the VEC unit has finished this many instructions. 0 to 1048575 */
    uint32_t wait_store; /* Issue only when the STORE unit has finished this many instructions. 0 to 1048575 */
    uint32_t a_base; /* First word of the input buffer. 0 to 1048575 [words] */
    uint32_t a_row_off; /* Offset in the buffer of input row iy0, modulo a_ring when that is not 0. 0 to 1048575 [words] */
    uint32_t a_ring; /* Words after which row offsets wrap to 0; 0: they never wrap. 0 to 1048575 [words] */
    uint32_t a_row; /* Step from one input row to the next. 0 to 65535 [words] */
    uint32_t in_h; /* Rows of the whole input. 1 to 16383 [pixels] */
    uint32_t in_w; /* Pixels in an input row. 1 to 16383 [pixels] */
    int32_t iy0; /* Input row under the kernel's first row at output row 0. -16384 to 16383 [pixels] */
    int32_t ix0; /* Input column under the kernel's first column at output column 0. -16384 to 16383 [pixels] */
    uint32_t kernel_h; /* Kernel rows. 1 to 15 */
    uint32_t kernel_w; /* Kernel columns. 1 to 5 */
    uint32_t stride_h; /* Input rows from one output row to the next. 1 to 4 */
    uint32_t stride_w; /* Input pixels from one output pixel to the next. 1 to 4 */
    uint32_t b_base; /* First word of the constants. 0 to 1048575 [words] */
    int32_t zp_in; /* Zero point of the input, the value of padding. -128 to 127 */
    int32_t zp_out; /* Zero point that the requantizer adds. -128 to 127 */
    uint32_t out_h; /* Output rows. 1 to 16383 [pixels] */
    uint32_t out_w; /* Output pixels in a row. 1 to 16383 [pixels] */
    uint32_t out_base; /* First output word. 0 to 1048575 [words] */
    uint32_t out_row; /* Step from one output row to the next. 0 to 65535 [words] */
    uint32_t out_x; /* Step from one output pixel to the next. 1 to 15 [words] */
    uint32_t table; /* Pass every result byte through the vector table. 0 to 1 */
};

#define INTLOOM_VDEPTHWISE_WIDTH 340u
#define INTLOOM_VDEPTHWISE_FIELDS(FIELD) \
    FIELD(wait_load, 8u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_mac, 28u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_vec, 48u, 20u, 0u, 0, 1048575, 0) \
    FIELD(wait_store, 68u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_base, 88u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_row_off, 108u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_ring, 128u, 20u, 0u, 0, 1048575, 0) \
    FIELD(a_row, 148u, 16u, 0u, 0, 65535, 0) \
    FIELD(in_h, 164u, 14u, 0u, 1, 16383, 1) \
    FIELD(in_w, 178u, 14u, 0u, 1, 16383, 1) \
    FIELD(iy0, 192u, 15u, 1u, -16384, 16383, 0) \
    FIELD(ix0, 207u, 15u, 1u, -16384, 16383, 0) \
    FIELD(kernel_h, 222u, 4u, 0u, 1, 15, 1) \
    FIELD(kernel_w, 226u, 3u, 0u, 1, 5, 1) \
    FIELD(stride_h, 229u, 3u, 0u, 1, 4, 1) \
    FIELD(stride_w, 232u, 3u, 0u, 1, 4, 1) \
    FIELD(b_base, 235u, 20u, 0u, 0, 1048575, 0) \
    FIELD(zp_in, 255u, 8u, 1u, -128, 127, 0) \
    FIELD(zp_out, 263u, 8u, 1u, -128, 127, 0) \
    FIELD(out_h, 271u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_w, 285u, 14u, 0u, 1, 16383, 1) \
    FIELD(out_base, 299u, 20u, 0u, 0, 1048575, 0) \
    FIELD(out_row, 319u, 16u, 0u, 0, 65535, 0) \
    FIELD(out_x, 335u, 4u, 0u, 1, 15, 1) \
    FIELD(table, 339u, 1u, 0u, 0, 1, 0)

#define INTLOOM_INSTRUCTIONS(INSTRUCTION) \
    INSTRUCTION(begin, BEGIN) \
    INSTRUCTION(end, END) \
    INSTRUCTION(load, LOAD) \
    INSTRUCTION(store, STORE) \
    INSTRUCTION(conv, CONV) \
    INSTRUCTION(vtable, VTABLE) \
    INSTRUCTION(vcopy, VCOPY) \
    INSTRUCTION(vadd, VADD) \
    INSTRUCTION(vmul, VMUL) \
    INSTRUCTION(vmax, VMAX) \
    INSTRUCTION(vavg, VAVG) \
    INSTRUCTION(vexp, VEXP) \
    INSTRUCTION(vsoftmax, VSOFTMAX) \
    INSTRUCTION(vnorm, VNORM) \
    INSTRUCTION(vdepthwise, VDEPTHWISE)

#endif
