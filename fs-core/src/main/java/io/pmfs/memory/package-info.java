/**
 * Memory outside the heap, and the bytes of a read that lie in it. {@link
 * io.pmfs.memory.DirectMemory} lends all memory for requests and tasks; {@link
 * io.pmfs.memory.ReadResult} is what a read yields, wherever its bytes are.
 */
@NullMarked
package io.pmfs.memory;

import org.jspecify.annotations.NullMarked;
