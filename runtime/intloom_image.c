/* Images: checks, records, loading. */
#include <stddef.h>
#include <string.h>

#include "intloom_runtime.h"

#define INSTRUCTION_BYTES 64u
#define LARGEST_CHANNELS (1u << 17)
#define LARGEST_SIDE (1u << 14)

static uint32_t le32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* CRC-32 of IEEE 802.3, four bits at a time. */
uint32_t intloom_crc32(const void *data, uint32_t length)
{
    static const uint32_t table[16] = {
        0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u, 0x4db26158u, 0x5005713cu,
        0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu, 0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu,
    };
    const uint8_t *bytes = data;
    uint32_t crc = 0xffffffffu;

    for (uint32_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ table[crc & 15u];
        crc = crc >> 4 ^ table[crc & 15u];
    }
    return ~crc;
}

static int inside(uint32_t start, uint64_t bytes, uint32_t total)
{
    return start <= total && bytes <= total - start;
}

static int overlap(uint32_t a, uint32_t a_bytes, uint32_t b, uint32_t b_bytes)
{
    return a_bytes && b_bytes && (uint64_t)a < (uint64_t)b + b_bytes && (uint64_t)b < (uint64_t)a + a_bytes;
}

static int check_header(const uint8_t *bytes, uint32_t length, int with_crc)
{
    uint32_t whole;

    if (length < 12u)
        return INTLOOM_E_IMAGE_TRUNCATED;
    if (le32(bytes + INTLOOM_IMAGE_HEADER_MAGIC) != INTLOOM_IMAGE_MAGIC)
        return INTLOOM_E_IMAGE_MAGIC;
    if (le32(bytes + INTLOOM_IMAGE_HEADER_VERSION) != INTLOOM_IMAGE_VERSION)
        return INTLOOM_E_IMAGE_VERSION;
    whole = le32(bytes + INTLOOM_IMAGE_HEADER_LENGTH);
    if (length < whole || whole < INTLOOM_IMAGE_HEADER_SIZE)
        return INTLOOM_E_IMAGE_TRUNCATED;
    if (with_crc && intloom_crc32(bytes + INTLOOM_IMAGE_CHECKED_FROM, whole - INTLOOM_IMAGE_CHECKED_FROM) !=
                        le32(bytes + INTLOOM_IMAGE_HEADER_CRC))
        return INTLOOM_E_IMAGE_CRC;
    return INTLOOM_OK;
}

static int check_region(const struct intloom_image *image, const struct intloom_region *r, uint32_t length)
{
    int good = inside(r->window_at, r->window_bytes, image->window_bytes);

    good = good && r->window_at % INTLOOM_WINDOW_ALIGNMENT == 0 && r->code_to % INSTRUCTION_BYTES == 0;
    good = good && r->data_to % image->word_bytes == 0 && !overlap(r->code_to, r->code_bytes, r->data_to, r->data_bytes);
    good = good && (uint64_t)r->instructions * INSTRUCTION_BYTES == r->code_bytes && r->instructions;
    good = good && inside(r->code_at, r->code_bytes, length) && inside(r->code_to, r->code_bytes, r->window_bytes);
    good = good && inside(r->data_at, r->data_bytes, length) && inside(r->data_to, r->data_bytes, r->window_bytes);
    good = good && inside(r->first_tensor, r->tensors, image->tensors);
    return good ? INTLOOM_OK : INTLOOM_E_IMAGE_RECORD;
}

static uint64_t layout_bytes(const struct intloom_tensor *t)
{
    uint64_t words = t->layout == INTLOOM_LAYOUT_BLOCKED
                         ? (uint64_t)((t->channels + t->word_bytes - 1u) / t->word_bytes) * t->width
                         : (4u * t->width + t->word_bytes - 1u) / t->word_bytes;

    return words * t->height * t->word_bytes;
}

/* A positive finite scale, a zero point of int8, and a flag that is one. */
static int check_quantization(const uint8_t *record)
{
    const uint32_t scale = le32(record + INTLOOM_IMAGE_TENSOR_SCALE);
    const uint32_t shifted = le32(record + INTLOOM_IMAGE_TENSOR_ZERO_POINT) + 128u;

    return scale > 0u && scale < 0x7f800000u && shifted < 256u && le32(record + INTLOOM_IMAGE_TENSOR_UNSIGNED_TYPE) < 2u;
}

static int check_tensor(const struct intloom_image *image, uint32_t index, uint32_t names_bytes)
{
    struct intloom_tensor t, source;
    const uint8_t *record = image->bytes + image->tensors_at + index * INTLOOM_IMAGE_TENSOR_SIZE;
    int good = le32(record + INTLOOM_IMAGE_TENSOR_NAME_AT) < names_bytes && check_quantization(record) &&
               !intloom_get_tensor(image, index, &t);

    good = good && (t.role == INTLOOM_ROLE_INPUT || t.role == INTLOOM_ROLE_OUTPUT);
    good = good && (t.layout == INTLOOM_LAYOUT_BLOCKED || (t.layout == INTLOOM_LAYOUT_PIXELS4 && t.channels <= 4u));
    good = good && t.channels && t.height && t.width;
    good = good && t.channels <= LARGEST_CHANNELS && t.height <= LARGEST_SIDE && t.width <= LARGEST_SIDE;
    good = good && layout_bytes(&t) == t.bytes && inside(t.window_at, t.bytes, image->window_bytes);
    good = good && (t.source == INTLOOM_NO_TENSOR || t.source < index);
    if (good && t.source != INTLOOM_NO_TENSOR) {
        good = !intloom_get_tensor(image, t.source, &source);
        good = good && source.channels == t.channels && source.height == t.height && source.width == t.width;
    }
    return good ? INTLOOM_OK : INTLOOM_E_IMAGE_RECORD;
}

static int check_tables(const struct intloom_image *image, uint32_t length)
{
    const uint32_t names_bytes = le32(image->bytes + INTLOOM_IMAGE_HEADER_NAMES_BYTES);
    int good = image->word_bytes >= 4u && image->word_bytes <= INTLOOM_WINDOW_ALIGNMENT && image->regions;

    good = good && (image->word_bytes & (image->word_bytes - 1u)) == 0;
    good = good && inside(image->regions_at, (uint64_t)image->regions * INTLOOM_IMAGE_REGION_SIZE, length);
    good = good && inside(image->tensors_at, (uint64_t)image->tensors * INTLOOM_IMAGE_TENSOR_SIZE, length);
    good = good && inside(image->names_at, names_bytes, length);
    /* The last name ends inside, so every name does. */
    good = good && (names_bytes == 0 || image->bytes[image->names_at + names_bytes - 1u] == 0);
    for (uint32_t i = 0; good && i < image->regions; i++) {
        struct intloom_region region;
        good = !intloom_get_region(image, i, &region) && !check_region(image, &region, length);
    }
    for (uint32_t i = 0; good && i < image->tensors; i++)
        good = !check_tensor(image, i, names_bytes);
    return good ? INTLOOM_OK : INTLOOM_E_IMAGE_RECORD;
}

static int open_image(struct intloom_image *image, const void *data, uint32_t length, int with_crc)
{
    static const struct intloom_image empty;
    const uint8_t *bytes = data;
    int result;

    if (!image)
        return INTLOOM_E_ARGUMENT;
    *image = empty;
    if (!bytes)
        return INTLOOM_E_ARGUMENT;
    result = check_header(bytes, length, with_crc);
    if (result)
        return result;
    image->bytes = bytes;
    image->isa_version = le32(bytes + INTLOOM_IMAGE_HEADER_ISA_VERSION);
    image->fingerprint = le32(bytes + INTLOOM_IMAGE_HEADER_FINGERPRINT);
    image->word_bytes = le32(bytes + INTLOOM_IMAGE_HEADER_WORD_BYTES);
    image->window_bytes = le32(bytes + INTLOOM_IMAGE_HEADER_WINDOW_BYTES);
    image->regions = le32(bytes + INTLOOM_IMAGE_HEADER_REGIONS);
    image->regions_at = le32(bytes + INTLOOM_IMAGE_HEADER_REGIONS_AT);
    image->tensors = le32(bytes + INTLOOM_IMAGE_HEADER_TENSORS);
    image->tensors_at = le32(bytes + INTLOOM_IMAGE_HEADER_TENSORS_AT);
    image->names_at = le32(bytes + INTLOOM_IMAGE_HEADER_NAMES_AT);
    result = check_tables(image, le32(bytes + INTLOOM_IMAGE_HEADER_LENGTH));
    if (result)
        *image = empty;
    return result;
}

int intloom_open_image(struct intloom_image *image, const void *bytes, uint32_t length)
{
    return open_image(image, bytes, length, 1);
}

int intloom_open_verified_image(struct intloom_image *image, const void *bytes, uint32_t length)
{
    return open_image(image, bytes, length, 0);
}

int intloom_get_region(const struct intloom_image *image, uint32_t index, struct intloom_region *region)
{
    const uint8_t *r;

    if (!image || !region || index >= image->regions)
        return INTLOOM_E_ARGUMENT;
    r = image->bytes + image->regions_at + index * INTLOOM_IMAGE_REGION_SIZE;
    region->window_at = le32(r + INTLOOM_IMAGE_REGION_WINDOW_AT);
    region->window_bytes = le32(r + INTLOOM_IMAGE_REGION_WINDOW_BYTES);
    region->instructions = le32(r + INTLOOM_IMAGE_REGION_INSTRUCTIONS);
    region->code_at = le32(r + INTLOOM_IMAGE_REGION_CODE_AT);
    region->code_bytes = le32(r + INTLOOM_IMAGE_REGION_CODE_BYTES);
    region->code_to = le32(r + INTLOOM_IMAGE_REGION_CODE_TO);
    region->data_at = le32(r + INTLOOM_IMAGE_REGION_DATA_AT);
    region->data_bytes = le32(r + INTLOOM_IMAGE_REGION_DATA_BYTES);
    region->data_to = le32(r + INTLOOM_IMAGE_REGION_DATA_TO);
    region->first_tensor = le32(r + INTLOOM_IMAGE_REGION_FIRST_TENSOR);
    region->tensors = le32(r + INTLOOM_IMAGE_REGION_TENSORS);
    region->cycles = le32(r + INTLOOM_IMAGE_REGION_CYCLES);
    return INTLOOM_OK;
}

int intloom_get_tensor(const struct intloom_image *image, uint32_t index, struct intloom_tensor *tensor)
{
    const uint8_t *t;
    uint32_t scale, zero_point;

    if (!image || !tensor || index >= image->tensors)
        return INTLOOM_E_ARGUMENT;
    t = image->bytes + image->tensors_at + index * INTLOOM_IMAGE_TENSOR_SIZE;
    scale = le32(t + INTLOOM_IMAGE_TENSOR_SCALE);
    zero_point = le32(t + INTLOOM_IMAGE_TENSOR_ZERO_POINT);
    tensor->name = (const char *)image->bytes + image->names_at + le32(t + INTLOOM_IMAGE_TENSOR_NAME_AT);
    tensor->role = (enum intloom_role)le32(t + INTLOOM_IMAGE_TENSOR_ROLE);
    tensor->layout = (enum intloom_layout)le32(t + INTLOOM_IMAGE_TENSOR_LAYOUT);
    tensor->channels = le32(t + INTLOOM_IMAGE_TENSOR_CHANNELS);
    tensor->height = le32(t + INTLOOM_IMAGE_TENSOR_HEIGHT);
    tensor->width = le32(t + INTLOOM_IMAGE_TENSOR_WIDTH);
    tensor->window_at = le32(t + INTLOOM_IMAGE_TENSOR_WINDOW_AT);
    tensor->bytes = le32(t + INTLOOM_IMAGE_TENSOR_BYTES);
    tensor->word_bytes = image->word_bytes;
    memcpy(&tensor->scale, &scale, sizeof tensor->scale);
    memcpy(&tensor->zero_point, &zero_point, sizeof tensor->zero_point);
    tensor->unsigned_type = le32(t + INTLOOM_IMAGE_TENSOR_UNSIGNED_TYPE) != 0;
    tensor->source = le32(t + INTLOOM_IMAGE_TENSOR_SOURCE);
    return INTLOOM_OK;
}

int intloom_find_tensor(const struct intloom_image *image, const char *name, enum intloom_role role,
                        struct intloom_tensor *tensor)
{
    if (!image || !name || !tensor)
        return INTLOOM_E_ARGUMENT;
    for (uint32_t i = 0; i < image->tensors; i++)
        if (!intloom_get_tensor(image, i, tensor) && tensor->role == role && !strcmp(tensor->name, name))
            return INTLOOM_OK;
    return INTLOOM_E_NO_TENSOR;
}

static void copy(struct intloom_device *device, uint32_t to, const uint8_t *from, uint32_t bytes)
{
    uint8_t *memory = device->window.memory + to;

    memcpy(memory, from, bytes);
    if (device->transport.flush)
        device->transport.flush(device->transport.context, memory, bytes);
}

int intloom_load_image(struct intloom_device *device, const struct intloom_image *image)
{
    struct intloom_region region;

    if (!device || !image || !image->bytes)
        return INTLOOM_E_ARGUMENT;
    if (image->isa_version != device->isa_version)
        return INTLOOM_E_ISA_VERSION;
    if (image->fingerprint != device->fingerprint || image->word_bytes != device->word_bytes)
        return INTLOOM_E_FINGERPRINT;
    if (image->window_bytes > device->window.bytes)
        return INTLOOM_E_WINDOW_BYTES;
    for (uint32_t i = 0; i < image->regions && !intloom_get_region(image, i, &region); i++) {
        copy(device, region.window_at + region.code_to, image->bytes + region.code_at, region.code_bytes);
        copy(device, region.window_at + region.data_to, image->bytes + region.data_at, region.data_bytes);
    }
    /* A dirty line of the window, whoever wrote it, would be evicted over results of the accelerator later. */
    if (device->transport.flush)
        device->transport.flush(device->transport.context, device->window.memory, image->window_bytes);
    if (device->transport.invalidate)
        device->transport.invalidate(device->transport.context, device->window.memory, image->window_bytes);
    device->image = image;
    return INTLOOM_OK;
}
