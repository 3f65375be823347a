/** What a mount does, for people and scripts: {@code status}, its watch and {@code profile}. */
@NullMarked
package io.pmfs.cli.status;

import org.jspecify.annotations.NullMarked;
