/*
 * Encoders, decoders and default values of all instructions, from the field lists of intloom_instructions.h.
 *
 * `intloom_<name>_encode` and `intloom_<name>_decode` return 0, or the number, counted from 1, of the first field that is
 * out of range (-1: another opcode, or bits set between the last field and the check bits). On an error they write
 * nothing. `intloom_add_check` writes the check bits and END's CRC of a complete program; the accelerator requires them.
 * C99 or later; also C++11 or later.
 */
#ifndef INTLOOM_CODEC_H
#define INTLOOM_CODEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "intloom_instructions.h"

static inline void intloom_put(uint8_t *bytes, unsigned lsb, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++) {
        unsigned bit = lsb + i;
        uint8_t mask = (uint8_t)(1u << (bit & 7u));
        bytes[bit >> 3] = (uint8_t)((value >> i & 1u) ? bytes[bit >> 3] | mask : bytes[bit >> 3] & (uint8_t)~mask);
    }
}

static inline int64_t intloom_get(const uint8_t *bytes, unsigned lsb, unsigned width, unsigned is_signed)
{
    uint64_t value = 0;
    uint64_t sign = is_signed ? (uint64_t)1 << (width - 1u) : 0;
    for (unsigned i = 0; i < width; i++) {
        unsigned bit = lsb + i;
        value |= (uint64_t)(bytes[bit >> 3] >> (bit & 7u) & 1u) << i;
    }
    return (int64_t)(value ^ sign) - (int64_t)sign;
}

/* The expansions of FIELD. */
#define INTLOOM_INITIAL_(member, lsb, width, is_signed, minimum, maximum, initial) fields->member = initial;
#define INTLOOM_CHECK_(member, lsb, width, is_signed, minimum, maximum, initial) \
    number++; \
    if ((int64_t)fields->member < INT64_C(minimum) || (int64_t)fields->member > INT64_C(maximum)) \
        return number;
#define INTLOOM_PUT_(member, lsb, width, is_signed, minimum, maximum, initial) \
    intloom_put(bytes, lsb, width, (uint64_t)fields->member);
#define INTLOOM_GET_(member, lsb, width, is_signed, minimum, maximum, initial) \
    fields->member = intloom_get(bytes, lsb, width, is_signed);

#define INTLOOM_CODEC_(name, NAME) \
    static inline void intloom_##name##_defaults(struct intloom_##name *fields) \
    { \
        INTLOOM_##NAME##_FIELDS(INTLOOM_INITIAL_) \
    } \
    static inline int intloom_##name##_check(const struct intloom_##name *fields) \
    { \
        int number = 0; \
        INTLOOM_##NAME##_FIELDS(INTLOOM_CHECK_) \
        return 0; \
    } \
    static inline int intloom_##name##_encode(const struct intloom_##name *fields, \
                                              uint8_t bytes[INTLOOM_INSTRUCTION_BYTES]) \
    { \
        int illegal = intloom_##name##_check(fields); \
        if (illegal) \
            return illegal; \
        memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES); \
        bytes[0] = INTLOOM_OPCODE_##NAME; \
        INTLOOM_##NAME##_FIELDS(INTLOOM_PUT_) \
        return 0; \
    } \
    static inline int intloom_##name##_decode(struct intloom_##name *out, \
                                              const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES]) \
    { \
        struct intloom_##name decoded, *fields = &decoded; \
        int illegal; \
        if (bytes[0] != INTLOOM_OPCODE_##NAME) \
            return -1; \
        for (unsigned bit = INTLOOM_##NAME##_WIDTH; bit < INTLOOM_CHECK_LSB; bit++) \
            if (intloom_get(bytes, bit, 1u, 0u)) \
                return -1; \
        INTLOOM_##NAME##_FIELDS(INTLOOM_GET_) \
        illegal = intloom_##name##_check(fields); \
        if (!illegal) \
            *out = decoded; \
        return illegal; \
    }

INTLOOM_INSTRUCTIONS(INTLOOM_CODEC_)

/* Adds the bits of `bytes` below bit `bits` to a CRC-32C. */
static inline uint32_t intloom_crc(uint32_t crc, const uint8_t *bytes, unsigned bits)
{
    for (unsigned i = 0; i < bits; i++) {
        uint32_t odd = (crc ^ (uint32_t)(bytes[i >> 3] >> (i & 7u))) & 1u;
        crc = crc >> 1 ^ (odd ? INTLOOM_CRC_POLYNOMIAL : 0u);
    }
    return crc;
}

static inline void intloom_add_check(uint8_t *program, uint32_t instructions)
{
    uint32_t crc = INTLOOM_CRC_INITIAL;
    for (uint32_t i = 0; i < instructions; i++) {
        uint8_t *bytes = program + (size_t)i * INTLOOM_INSTRUCTION_BYTES;
        uint32_t parity = 0;
        intloom_put(bytes, INTLOOM_CHECK_LSB, INTLOOM_CHECK_BITS, 0);
        if (bytes[0] == INTLOOM_OPCODE_END)
            intloom_put(bytes, INTLOOM_END_CRC_LSB, INTLOOM_CRC_BITS, intloom_crc(crc, bytes, INTLOOM_END_CRC_LSB));
        crc = intloom_crc(crc, bytes, 8u * INTLOOM_INSTRUCTION_BYTES);
        for (uint32_t rest = crc; rest; rest &= rest - 1u)
            parity ^= 1u;
        intloom_put(bytes, INTLOOM_CHECK_LSB, INTLOOM_CHECK_BITS, (uint64_t)crc << 1 | parity);
    }
}

#endif
