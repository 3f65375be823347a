/** {@code pmfs doctor}: checks what pmfs needs of a machine and of a mount, one by one. */
@NullMarked
package io.pmfs.cli.doctor;

import org.jspecify.annotations.NullMarked;
