/**
 * What the operating system gives, and how it fails: error numbers, threads, descriptors, mounted
 * file systems. Starts no thread of its own and knows nothing of datasets.
 */
@NullMarked
package io.pmfs.posix;

import org.jspecify.annotations.NullMarked;
