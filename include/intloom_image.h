/* Written by `make generated` from hw/spec: do not edit.
 *
 * The device image: byte offsets of the members of its records; all are 32-bit and little-endian.
 */
#ifndef INTLOOM_IMAGE_H
#define INTLOOM_IMAGE_H

#define INTLOOM_IMAGE_MAGIC 0x494d4f4cu
#define INTLOOM_IMAGE_VERSION 1u
#define INTLOOM_IMAGE_CHECKED_FROM 16u
#define INTLOOM_NO_TENSOR 0xffffffffu

enum intloom_role {
    INTLOOM_ROLE_INPUT = 0,
    INTLOOM_ROLE_OUTPUT = 1,
};

enum intloom_layout {
    INTLOOM_LAYOUT_BLOCKED = 0,
    INTLOOM_LAYOUT_PIXELS4 = 1,
};

/* Start of the image. */
#define INTLOOM_IMAGE_HEADER_SIZE 56u
#define INTLOOM_IMAGE_HEADER_MAGIC 0u /* `LOMI` in ASCII, lowest byte first. */
#define INTLOOM_IMAGE_HEADER_VERSION 4u /* Version of this format. */
#define INTLOOM_IMAGE_HEADER_LENGTH 8u /* Bytes of the whole image. */
#define INTLOOM_IMAGE_HEADER_CRC 12u /* CRC-32 (IEEE 802.3) of the image from byte 16 on. */
#define INTLOOM_IMAGE_HEADER_ISA_VERSION 16u /* Instruction set version of the programs. */
#define INTLOOM_IMAGE_HEADER_FINGERPRINT 20u /* Fingerprint of the hardware parameters that the programs were compiled for. */
#define INTLOOM_IMAGE_HEADER_WORD_BYTES 24u /* Bytes of a word of the accelerator. */
#define INTLOOM_IMAGE_HEADER_WINDOW_BYTES 28u /* Bytes of shared memory that all regions take together. */
#define INTLOOM_IMAGE_HEADER_REGIONS 32u /* Number of regions. */
#define INTLOOM_IMAGE_HEADER_REGIONS_AT 36u /* Offset of the region records in the image. */
#define INTLOOM_IMAGE_HEADER_TENSORS 40u /* Number of tensors of all regions. */
#define INTLOOM_IMAGE_HEADER_TENSORS_AT 44u /* Offset of the tensor records in the image. */
#define INTLOOM_IMAGE_HEADER_NAMES_AT 48u /* Offset of the names in the image; each ends with a zero byte. */
#define INTLOOM_IMAGE_HEADER_NAMES_BYTES 52u /* Bytes of all names. */

/* A program and its memory. The host runs its own parts of the model between regions. */
#define INTLOOM_IMAGE_REGION_SIZE 48u
#define INTLOOM_IMAGE_REGION_WINDOW_AT 0u /* Start of the region's memory in the window; a multiple of 4096. */
#define INTLOOM_IMAGE_REGION_WINDOW_BYTES 4u /* Bytes of the region's memory. */
#define INTLOOM_IMAGE_REGION_INSTRUCTIONS 8u /* Number of instructions. */
#define INTLOOM_IMAGE_REGION_CODE_AT 12u /* Offset of the instructions in the image. */
#define INTLOOM_IMAGE_REGION_CODE_BYTES 16u /* Bytes of the instructions. */
#define INTLOOM_IMAGE_REGION_CODE_TO 20u /* Where the instructions go in the region's memory. */
#define INTLOOM_IMAGE_REGION_DATA_AT 24u /* Offset of the constants in the image. */
#define INTLOOM_IMAGE_REGION_DATA_BYTES 28u /* Bytes of the constants. */
#define INTLOOM_IMAGE_REGION_DATA_TO 32u /* Where the constants go in the region's memory. */
#define INTLOOM_IMAGE_REGION_FIRST_TENSOR 36u /* Index of the region's first tensor. */
#define INTLOOM_IMAGE_REGION_TENSORS 40u /* Number of the region's tensors. */
#define INTLOOM_IMAGE_REGION_CYCLES 44u /* Predicted cycles, or 4294967295 if there are more. */

/* An input or output of a region: an int8 tensor of one batch. */
#define INTLOOM_IMAGE_TENSOR_SIZE 48u
#define INTLOOM_IMAGE_TENSOR_NAME_AT 0u /* Offset of the name among the names. */
#define INTLOOM_IMAGE_TENSOR_ROLE 4u /* 0: input, 1: output. */
#define INTLOOM_IMAGE_TENSOR_LAYOUT 8u /* 0: blocks of channels, 1: pixels of four bytes. */
#define INTLOOM_IMAGE_TENSOR_CHANNELS 12u /* Channels. */
#define INTLOOM_IMAGE_TENSOR_HEIGHT 16u /* Rows. */
#define INTLOOM_IMAGE_TENSOR_WIDTH 20u /* Pixels in a row. */
#define INTLOOM_IMAGE_TENSOR_WINDOW_AT 24u /* Start of the tensor in the window. */
#define INTLOOM_IMAGE_TENSOR_BYTES 28u /* Bytes of the tensor in the window. */
#define INTLOOM_IMAGE_TENSOR_SCALE 32u /* Scale of the quantization: the bits of an IEEE 754 single. */
#define INTLOOM_IMAGE_TENSOR_ZERO_POINT 36u /* Zero point of the int8 values, in two's complement. */
#define INTLOOM_IMAGE_TENSOR_UNSIGNED_TYPE 40u /* 1: the model's type is uint8, 128 more than the int8 values; 0: it is int8. */
#define INTLOOM_IMAGE_TENSOR_SOURCE 44u /* For inputs: index of the tensor of an earlier region with this content, or 4294967295. */

#endif
