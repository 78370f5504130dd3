/* libFuzzer's entry: any bytes as an image, with and without a correct checksum; see test_fuzz.py. */
#include "use_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct intloom_image image;

    if (size > 1u << 20)
        return 0;
    (void)intloom_open_image(&image, data, (uint32_t)size);
    if (!intloom_open_verified_image(&image, data, (uint32_t)size))
        use_image(&image, (uint32_t)size);
    else if (image.bytes)
        abort();
    return 0;
}
