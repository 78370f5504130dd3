/* Written by `make generated` from hw/spec: do not edit.
 *
 * Positions, defaults, encoders and decoders of all instructions; intloom_instructions.h has the fields.
 *
 * `intloom_<name>_encode` and `intloom_<name>_decode` return 0, or the number, counted from 1, of the first field that is
 * out of range (-1: another opcode, or bits set above the last field). On an error they write nothing.
 * C99 or later; also C++11 or later.
 */
#ifndef INTLOOM_CODEC_H
#define INTLOOM_CODEC_H

#include <stdint.h>
#include <string.h>
#include "intloom_instructions.h"

#define INTLOOM_INSTRUCTION_BYTES 64u

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
