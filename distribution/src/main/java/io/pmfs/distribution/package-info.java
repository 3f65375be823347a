/** Makes the files that packages contain besides the program. */
@NullMarked
package io.pmfs.distribution;

import org.jspecify.annotations.NullMarked;
