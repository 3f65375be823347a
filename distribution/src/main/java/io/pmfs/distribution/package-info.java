/** Makes what packages hold besides the program. */
@NullMarked
package io.pmfs.distribution;

import org.jspecify.annotations.NullMarked;
