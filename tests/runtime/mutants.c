/* Images with wrong records and a correct checksum: `mutants IMAGE SEED COUNT`. Whatever is accepted must be usable
 * without an access outside image and window, which the sanitizers check. Prints how many were rejected. */
#include "use_image.h"

static uint32_t crc_of(const uint8_t *data, uint32_t length)
{
    uint32_t crc = 0xffffffffu;

    for (uint32_t i = 0; i < length; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1u ? 0xedb88320u : 0u);
    }
    return ~crc;
}

static uint32_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * below >> 32);
}

static void put(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4u; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t odd_value(uint32_t before)
{
    static const uint32_t limits[] = {0, 1, 3, 0x7fffffffu, 0x80000000u, 0xffffffffu, 0xfffffffeu, 0x10000u};

    switch (draw(4)) {
    case 0:
        return limits[draw(sizeof limits / sizeof limits[0])];
    case 1:
        return before + draw(129) - 64u;
    case 2:
        return before ^ 1u << draw(32);
    default:
        return before * 2u;
    }
}

int main(int argc, char **argv)
{
    uint32_t length, rejected = 0;
    struct intloom_image image;
    uint8_t *data, *copy;

    if (argc != 4)
        return 1;
    data = read_file(argv[1], &length);
    if (intloom_open_image(&image, data, length))
        return 2;
    state = (uint32_t)strtoul(argv[2], NULL, 10);
    copy = malloc(length);
    if (!copy)
        return 3;
    for (unsigned long left = strtoul(argv[3], NULL, 10); left; left--) {
        /* Header and records; instructions and constants are not interpreted. */
        const uint32_t at = 16u + 4u * draw((image.names_at - 16u) / 4u);
        uint32_t before;

        memcpy(copy, data, length);
        before = (uint32_t)copy[at] | (uint32_t)copy[at + 1] << 8 | (uint32_t)copy[at + 2] << 16 |
                 (uint32_t)copy[at + 3] << 24;
        put(copy + at, odd_value(before));
        put(copy + INTLOOM_IMAGE_HEADER_CRC, crc_of(copy + 16, length - 16u));
        if (intloom_open_image(&image, copy, length))
            rejected++;
        else
            use_image(&image, length);
        (void)intloom_open_image(&image, data, length);
    }
    printf("%u\n", (unsigned)rejected);
    free(copy);
    free(data);
    return 0;
}
