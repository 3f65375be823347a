/** Commands and screens: what a person types and reads. */
@NullMarked
package io.pmfs.cli;

import org.jspecify.annotations.NullMarked;
