/* build/cpu.h - what this CPU can do, as bytes for a key.
 *
 * Objects are compiled for the machine they run on (-march=native). A home directory may be shared
 * by different machines, and an object of the newer one would die of an illegal instruction on the
 * older one: so these bytes are part of each key. */
#ifndef CC_BUILD_CPU_H
#define CC_BUILD_CPU_H

#include <stddef.h>
#include <stdint.h>

enum { BUILD_CPU_WORDS = 16 };

/* Fill in vendor, model and feature bits, the operating system's part of them included. The same on
 * every core and in every process of one machine. */
void build_cpu(uint32_t word[BUILD_CPU_WORDS]);

#endif
