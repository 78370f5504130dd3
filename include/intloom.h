/* Written by `make generated` from hw/spec: do not edit.
 *
 * All headers of the accelerator. C99 or later; also C++11 or later.
 */
#ifndef INTLOOM_H
#define INTLOOM_H

#include "intloom_registers.h"
#include "intloom_parameters.h"
#include "intloom_instructions.h"
#include "intloom_codec.h"
#include "intloom_image.h"

#endif
